"""What a transaction is asked to be (isolation, read-only), and what it leaves of the role's settings."""

import pytest

import hf_tx
from counting import LABEL, counter, increment
from hf import Status
from hf_tx import Isolation, refusal, transact


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("label", [LABEL, None, ["Count:1", "Count:2"]], ids=["one", "none", "two"])
def test_isolation_level_is_what_was_asked_for(tx_server, server_store, isolation, label):
    shown = transact(server_store, label, lambda tx: tx.value("show transaction_isolation"),
                     isolation=isolation)
    assert shown == isolation.name.lower().replace("_", " ")


@pytest.mark.parametrize("label", [LABEL, None], ids=["label", "no label"])
def test_read_only_takes_no_transaction_id_and_leaves_no_marker(tx_server, server_store, label):
    def body(tx):
        assert tx.value("show transaction_read_only") == "on"
        assert tx.value("select pg_current_xact_id_if_assigned()") is None

    transact(server_store, label, body, read_only=True)
    if tx_server.kind != "pg15":
        assert tx_server.database.value("select count(*) from holdfast.commits") == 0


def test_read_only_cannot_write(store):
    call = hf_tx.Call(store, LABEL, increment, read_only=True)
    assert call.status != Status.OK
    assert counter(store) == 0


def test_marker_is_left_where_the_schema_is_installed(tx_server, server_store):
    transact(server_store, LABEL, increment)
    refusal(server_store, LABEL, lambda tx: tx.query("select broken"))
    installed = tx_server.database.value("select to_regclass('holdfast.commits') is not null")
    assert installed == (tx_server.kind != "pg15")
    if installed:
        assert tx_server.database.value("select count(*) from holdfast.commits") == 1


def test_statements_have_the_role_s_search_path_and_durability(tx_server, transaction_pooler):
    database = tx_server.database
    database.sql(f"alter database {database.name} set search_path = side, public")
    database.sql("create schema side authorization app")
    database.sql("create table side.thing as select 5 as n", user="app")
    transaction_pooler.admin("reconnect")  # its sessions began under the old settings
    with tx_server.open() as store:
        assert transact(store, LABEL, lambda tx: tx.value("select n from thing")) == "5"
        assert transact(store, LABEL, lambda tx: tx.value("show synchronous_commit")) == "on"

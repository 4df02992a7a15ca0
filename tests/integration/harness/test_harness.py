"""The throwaway servers do what the other tests rely on."""

import ctypes
import os
import socket
import subprocess
import sys

import psycopg2
import pytest

import hf
import servers
from awaiting import eventually, stays


def test_server_answers_over_socket_and_tcp(db):
    assert db.value("select current_database()") == db.name
    for url in (db.url(), db.url(host="127.0.0.1"), db.url(port=db.server.port)):
        psycopg2.connect(url).close()


def test_guarded_role_needs_its_password(pg):
    psycopg2.connect(pg.url(user="guarded", password="open sesame")).close()
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(pg.url(user="guarded", password="wrong"))


def test_server_survives_kill_9_of_everything(own_pg):
    own_pg.sql("create table t as select 1 as a")
    own_pg.kill9()
    own_pg.start()
    assert own_pg.value("select a from t") == 1
    own_pg.kill9_postmaster()
    own_pg.start()
    assert own_pg.value("select a from t") == 1


def test_standby_follows_and_can_be_promoted(own_pg):
    with own_pg.make_standby() as standby:
        assert standby.value("select pg_is_in_recovery()")
        own_pg.sql("create table t as select 1 as a")
        eventually(lambda: standby.value("select to_regclass('t')"))
        standby.promote()
        assert not standby.value("select pg_is_in_recovery()")


def test_frozen_server_keeps_sockets_open_and_says_nothing(own_pg):
    connection = own_pg.connect()
    with own_pg.frozen():
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(own_pg.url(connect_timeout=2))
    with connection.cursor() as cursor:
        cursor.execute("select 1")
    connection.close()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_pooler_pools_in_its_mode(request, db15, mode):
    pooler = request.getfixturevalue(f"{mode}_pooler")
    connection = psycopg2.connect(pooler.url(db15.name))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        assert cursor.fetchone()[0] != connection.info.backend_pid
    connection.close()


def test_proxy_counts_swallows_and_cuts(db):
    with servers.Proxy(db.server.port) as proxy:
        connection = psycopg2.connect(db.url(port=proxy.port))
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("select 1")
        assert (proxy.accepted, proxy.open) == (1, 1)
        proxy.blackhole()
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(db.url(port=proxy.port, connect_timeout=2))
        proxy.cut()
        with pytest.raises(psycopg2.OperationalError):
            cursor.execute("select 1")
        eventually(lambda: proxy.open == 0)
        psycopg2.connect(db.url(port=proxy.port)).close()


def plain_client(proxy, db):
    """A connection whose socket can be looked at, and its backend."""
    connection = psycopg2.connect(db.url(port=proxy.port))
    end = socket.socket(fileno=os.dup(connection.fileno()))
    end.settimeout(20)
    return connection, end, connection.info.backend_pid


def sessions(db):
    return [pid for pid, in db.sql("select pid from pg_stat_activity where datname = current_database()"
                                   " and pid <> pg_backend_pid()")]


def test_proxy_resets_both_ends(db):
    with servers.Proxy(db.server.port) as proxy:
        _connection, end, pid = plain_client(proxy, db)
        mark = db.server.log_size()
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            end.recv(1)
        eventually(lambda: pid not in sessions(db))
        eventually(lambda: "could not receive data from client: Connection reset" in db.server.log(mark))


@pytest.mark.parametrize("which", ["client", "server"])
def test_proxy_leaves_one_end_half_open(db, which):
    with servers.Proxy(db.server.port) as proxy:
        _connection, end, pid = plain_client(proxy, db)
        end.settimeout(0.3)
        proxy.leave(which)
        if which == "client":
            eventually(lambda: pid not in sessions(db))
            with pytest.raises(TimeoutError):
                end.recv(1)
            proxy.heal()
        else:
            assert end.recv(1) == b""
            stays(lambda: pid in sessions(db), 0.3)
            proxy.heal()
            eventually(lambda: pid not in sessions(db))


def test_nothing_is_left_of_a_closed_server(template15):
    server = servers.Postgres.copy_of(template15, "brief").start()
    children = servers.processes_of(server.process.pid)
    assert children
    server.close()
    assert not any(map(servers.is_alive, children))
    assert not server.folder.exists()


C_NAMES = {hf.CError: "hf_error", hf.StoreOptions: "hf_store_options", hf.Target: "hf_target",
           hf.LockSpec: "hf_lock_spec", hf.LockView: "hf_lock_view"}


def test_binding_has_the_layout_of_the_header(tmp_path):
    lines, expected = [], []
    for binding, name in C_NAMES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(binding)}")
        for field, _ in binding._fields_:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
            expected.append(f"{name}.{field} {getattr(binding, field).offset}")
    for enum, prefix in ((hf.Status, "HF_"), (hf.Derivation, "HF_"), (hf.State, "HF_STATE_"),
                         (hf.Level, "HF_LEVEL_")):
        for member in enum:
            lines.append(f'printf("{prefix}{member.name} %d\\n", {prefix}{member.name});')
            expected.append(f"{prefix}{member.name} {member.value}")
    source = tmp_path / "layout.c"
    source.write_text('#include <stdio.h>\n#include "holdfast/holdfast.h"\nint main(void) {'
                      + "\n".join(lines) + "}\n")
    subprocess.run(["cc", f"-I{hf.ROOT / 'include'}", source, "-o", tmp_path / "layout"], check=True)
    printed = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == expected


def test_signals_that_are_ignored_in_the_background_are_not_ignored_by_what_the_tests_start():
    script = ("import servers, subprocess; servers.hear_ignored_signals();"
              " subprocess.run(['grep', 'SigIgn', '/proc/self/status'])")
    done = subprocess.run(["env", "--ignore-signal=HUP,INT,QUIT", sys.executable, "-c", script], text=True,
                          env={**os.environ, "PYTHONPATH": str(hf.HARNESS)}, stdout=subprocess.PIPE, check=True)
    assert int(done.stdout.split()[1], 16) & 0b111 == 0, done.stdout

"""The examples in C, built as their readers would, on every store with records."""

import os
import pathlib
import subprocess

import pytest

import hf
import sanitizers
from awaiting import eventually
from hf_tx import transact

ROOT = pathlib.Path(__file__).parents[3]
TABLES = ("create table account (name text primary key, balance int not null)",
          "insert into account values ('alice', 100), ('bob', 0)",
          "create table booking (tenant text, day text, room text)",
          "create table session (expires int not null)",
          "insert into session values (1), (2), (200)",
          "create table ledger (sequence text primary key)")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder, library = tmp_path_factory.mktemp("examples"), pathlib.Path(hf.built("src/lib/libholdfast.so")).parent
    for source in sorted((ROOT / "examples/c").glob("*.c")):
        assert len(source.read_text().splitlines()) < 60
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", *sanitizers.FLAGS, f"-I{ROOT}/include", source,
                        f"-L{library}", f"-Wl,-rpath,{library}", "-lholdfast", "-o", folder / source.stem], check=True)
    return folder


@pytest.fixture
def store(recorded):
    with recorded.open() as opened:
        transact(opened, None, lambda tx: [tx.query(statement) for statement in TABLES])
        yield opened


@pytest.fixture
def start(programs, recorded, store, tmp_path):
    """Starts an example; its environment names the store."""
    def start(name, *args):
        return subprocess.Popen([programs / name, *map(str, args)], env={**os.environ, "HOLDFAST_URL": recorded.url},
                                cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


def ends(*running, status=0):
    return ["".join(outputs) for process in running
            for outputs in [process.communicate(timeout=60)] if process.returncode == status or pytest.fail(str(outputs))]


def rows(store, sql):
    return transact(store, None, lambda tx: [tuple(row) for row in tx.query(sql)], read_only=True)


def test_transfers_lose_nothing(start, store):
    ends(*[start("transfer_funds", "alice", "bob", 5) for _ in range(6)],
         *[start("transfer_funds", "bob", "alice", 0) for _ in range(3)])
    assert rows(store, "select name, balance from account order by 1") == [("alice", "70"), ("bob", "30")]
    assert ends(start("transfer_funds", "alice", "bob", 71), status=1) == ["alice cannot pay 71\n"]
    assert rows(store, "select sum(balance) from account") == [("100",)]


def test_a_room_is_booked_once(start, store):
    booked = [process.wait(60) for process in [start("booking", "acme", "2026-11-16", "blue") for _ in range(5)]]
    assert sorted(booked) == [0, 1, 1, 1, 1]
    ends(start("booking", "acme", "2026-11-17", "blue"))
    assert len(rows(store, "select 1 from booking")) == 2


def test_one_instance_cleans_and_the_others_leave_it_to_it(start, store):
    with store.acquire("Cleanup:sessions"):
        assert "skipped: not acquired: 'Cleanup:sessions' is held" in ends(start("cleanup_scheduler", 0, 1))[0]
    assert ends(start("cleanup_scheduler", 0, 2)) == ["cleaned\ncleaned\n"]
    assert rows(store, "select expires from session") == [("200",)]


def test_blocks_of_a_shared_table_do_not_mix(start, tmp_path):
    writers = [start("table_insert_lock", "events", "events.txt", *[f"{w}-{i}" for i in range(50)]) for w in "abcd"]
    ends(*writers)
    lines = [line.split() for line in (tmp_path / "events.txt").read_text().splitlines()]
    assert len({key for key, _ in lines}) == 1 and len(lines) == 200
    blocks = [line[1].split("-")[0] for line in lines]
    assert sum(1 for one, two in zip(blocks, blocks[1:]) if one != two) == 3


def test_a_standby_ingests_when_the_first_is_gone(start, store):
    with store.acquire("Ingest:testnet"):
        standby = start("ingester_guard", "testnet", 3)
        assert "standing by: " in standby.stdout.readline()
        assert rows(store, "select * from ledger") == []
    ends(standby)
    eventually(lambda: len(rows(store, "select * from ledger")) == 3)

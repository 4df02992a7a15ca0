"""Leases and what goes wrong around them: failovers, silence, clocks, lost answers."""

import contextlib
import os
import subprocess
import sys
import time

import pytest

import hf
import hf_tx
import servers
from awaiting import eventually, stays
from hf import HfError, State, Status

LEASE = {"lifetime": hf.LEASE, "lease_ms": 15000}
SHORT = {"lifetime": hf.LEASE, "lease_ms": 1500}


@pytest.fixture(name="recorded_own")
def installed(own_pg):
    database = own_pg.create_database()
    hf.install(database.url())
    return database


@pytest.fixture(name="proxied")
def behind_a_proxy(recorded_db, pg):
    with servers.Proxy(pg.port) as proxy:
        yield proxy, recorded_db, recorded_db.url(host="127.0.0.1", port=proxy.port)


def test_lease_survives_the_promotion_of_a_synchronous_standby(own_pg, recorded_own):
    with own_pg.make_standby() as standby:
        own_pg.await_standbys("*")
        url = f"postgresql://app@127.0.0.1:{own_pg.port},127.0.0.1:{standby.port}/{recorded_own.name}"
        with hf.Store(url) as store:
            lock = store.acquire("job", **LEASE)
            term = lock.token
            own_pg.kill9()
            standby.promote()
            promoted = servers.Database(standby, recorded_own.name)
            promoted.sql("select holdfast.check_lease('job', %s)", term)
            assert lock.state is State.HELD
            with hf.Store(promoted.url()) as other:
                for how in (LEASE, {}):
                    assert other.refusal("job", **how).status is Status.NOT_ACQUIRED
                before = promoted.value("select until from holdfast.tenures")
                eventually(lambda: promoted.value("select max(until) from holdfast.tenures") > before)
                assert lock.state is State.HELD
                hf_tx.OnLock(lock, lambda tx: tx.query("select 1")).result()
                lock.end()
                with other.acquire("job", **LEASE) as second:
                    assert second.token > term


def test_loss_is_told_before_the_server_may_give_the_lease_away(proxied):
    proxy, database, url = proxied
    told = []
    with hf.Store(url, kill_ms=400) as store, hf.Store(database.url()) as other:
        lock = store.acquire("job", on_lost=lambda *_: told.append(time.monotonic()), **SHORT)
        proxy.blackhole()
        with other.acquire("job", wait_ms=20000, **LEASE):
            taken = time.monotonic()
            assert lock.state is State.LOST
            eventually(lambda: told)
            assert told[0] < taken
        proxy.heal()


def test_short_silence_does_not_cost_the_lease(proxied):
    proxy, database, url = proxied
    with hf.Store(url, kill_ms=100) as store:
        lock = store.acquire("job", lifetime=hf.LEASE, lease_ms=6000)
        proxy.cut()
        before = database.value("select until from holdfast.tenures")
        eventually(lambda: database.value("select until from holdfast.tenures") > before)
        assert lock.state is State.HELD
        lock.end()


def test_release_that_is_not_answered_is_done_with_the_next_renewal(proxied):
    proxy, database, url = proxied
    with hf.Store(url, ping_deadline_ms=300, kill_ms=100) as store, hf.Store(database.url()) as other:
        lock, kept = store.acquire("job", **LEASE), store.acquire("kept", lifetime=hf.LEASE, lease_ms=15000)
        proxy.blackhole()
        lock.release()
        assert other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
        proxy.heal()
        other.acquire("job", wait_ms=20000, **LEASE).end()
        assert kept.state is State.HELD


@pytest.mark.parametrize("shift", ["-1h", "+1h"])
def test_clock_of_the_client_does_not_matter(recorded_db, holdfast, shift):
    at = holdfast.at(recorded_db.url())
    holder = at.start("run", "--lease", "1500ms", "job", "--", "sh", "-c", "echo held; exec sleep 600",
                      prefix=["faketime", "-f", shift], env={"FAKETIME_DONT_FAKE_MONOTONIC": "1"})
    holder.await_line("held")
    with hf.Store(recorded_db.url()) as other:
        stays(lambda: other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED, 2)
        left = recorded_db.value("select extract(epoch from until - clock_timestamp()) from holdfast.tenures")
        assert 0 < left <= 1.5
        holder.end()


def test_kill_at_any_moment_of_taking_and_releasing_leaves_nothing_for_longer_than_a_lease(recorded_db):
    with hf.Store(recorded_db.url()) as other:
        for moment in (0.0, 0.003, 0.01, 0.03):
            script = ("import sys; sys.path.insert(0, sys.argv[1]); import hf\n"
                      "store = hf.Store(sys.argv[2])\nprint('on', flush=True)\n"
                      "while True: store.acquire('job', wait_ms=-1, lifetime=hf.LEASE, lease_ms=1000).end()")
            with contextlib.ExitStack() as stack:
                victim = stack.enter_context(Victim(script, recorded_db.url()))
                victim.await_start()
                time.sleep(moment)
                victim.kill()
            with other.acquire("job", wait_ms=10000, **LEASE) as lock:
                assert recorded_db.sql("select term from holdfast.leases where key = %s", lock.key) == [(lock.token,)]


class Victim:
    """Another process that takes and releases until it is killed."""

    def __init__(self, script, url):
        self.process = subprocess.Popen([sys.executable, "-c", script, str(hf.HARNESS), url], text=True,
                                        stdout=subprocess.PIPE, env={**os.environ, "HOLDFAST_BUILD": str(hf.BUILD)})

    def await_start(self):
        assert self.process.stdout.readline() == "on\n"

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.stdout.close()


def test_lease_that_was_deleted_by_hand_is_lost_at_its_release(recorded_db):
    with hf.Store(recorded_db.url()) as store:
        lock = store.acquire("job", **LEASE)
        recorded_db.sql("delete from holdfast.leases")
        with pytest.raises(HfError) as raised:
            lock.release()
        assert raised.value.status is Status.LOST

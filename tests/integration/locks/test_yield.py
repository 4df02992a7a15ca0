"""Yielding: who asks for a lock goes before all others, and the holder hands over when it has finished."""

import contextlib
import threading
import time

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import ASK, FOREVER, SHARED, HfError, State, Status
from stores import StoreKind

LEASE = {"lifetime": hf.LEASE, "lease_ms": 5000}
HOWS = {"session": {}, "private": {"flags": hf.PRIVATE}, "lease": LEASE}
TOLD = 5  # seconds within which a holder has heard of an ask: it looks once a second, and twice


class Asked:
    """Collects what on_yield was told."""

    def __init__(self):
        self.heard = []

    def __call__(self, lock, who):
        self.heard.append(who)

    def wait(self, count=1):
        eventually(lambda: len(self.heard) >= count, timeout=TOLD * 2, what="the holder is asked")
        return self.heard[count - 1]


def asking(store, what="job", wait_ms=FOREVER, **how):
    return Background(store.acquire, what, wait_ms, **{**how, "flags": how.get("flags", 0) | ASK})


@pytest.fixture(name="way", params=HOWS.values(), ids=HOWS)
def given_way(request):
    return request.param


# --- handing over -------------------------------------------------------------------------------------


def test_holder_is_asked_once_and_told_who_asks(recorded, way):
    asked = Asked()
    with recorded.open() as holder, recorded.open(application="successor") as store:
        lock = holder.acquire("job", on_yield=asked, **way)
        successor = asking(store, **way)
        who = asked.wait()
        assert "'job' is wanted by successor" in who.message and "pid" in who.message
        stays(lambda: len(asked.heard) == 1 and successor.running, 2.5)
        assert lock.state is State.HELD  # whoever is asked may go on
        lock.end()
        second = successor.result()
        assert second.state is State.HELD
        second.end()


def test_who_asks_is_granted_before_all_who_waited_before(recorded, way):
    asked = Asked()
    with contextlib.ExitStack() as opened:
        holder, store = opened.enter_context(recorded.open()), opened.enter_context(recorded.open())
        lock = holder.acquire("job", on_yield=asked, **way)
        waiters = [opened.enter_context(recorded.open()) for _ in range(3)]
        before = [Background(waiter.acquire, "job", FOREVER, **way) for waiter in waiters]
        stays(lambda: all(waiting.running for waiting in before), 2.5)
        successor = asking(store, **way)
        asked.wait()
        lock.end()
        second = successor.result()
        stays(lambda: all(waiting.running for waiting in before), 1)
        second.end()
        while before:  # and then these
            eventually(lambda: any(not waiting.running for waiting in before))
            granted = next(waiting for waiting in before if not waiting.running)
            before.remove(granted)
            granted.result().end()


def test_who_asks_is_granted_before_newcomers(recorded):
    """They queue for a moment in the server, or block in the kernel: not before one who asks."""
    asked, stop = Asked(), threading.Event()
    order = []

    def keep_coming(store):
        while not stop.is_set():
            with contextlib.suppress(HfError), store.acquire("job", 300):
                order.append("newcomer")

    with contextlib.ExitStack() as opened:
        holder, store = opened.enter_context(recorded.open()), opened.enter_context(recorded.open())
        comers = [opened.enter_context(recorded.open()) for _ in range(3)]
        lock = holder.acquire("job", on_yield=asked)
        coming = [Background(keep_coming, comer) for comer in comers]
        successor = asking(store)
        asked.wait()
        lock.end()
        with successor.result():
            assert order == []
            stop.set()
        for comer in coming:
            comer.result()


def test_who_has_yielded_does_not_take_it_back_before_who_asked(recorded, way):
    """As a leader does that stands by again at once."""
    asked = Asked()
    with recorded.open() as holder, recorded.open() as store:
        for _ in range(3):
            lock = holder.acquire("job", 5000, on_yield=asked, **way)
            heard = len(asked.heard)
            successor = asking(store, **way)
            asked.wait(heard + 1)
            lock.end()
            again = Background(holder.acquire, "job", FOREVER, **way)
            second = successor.result()
            assert again.running
            second.end()
            again.result().end()


@pytest.mark.parametrize("wait_ms", [0, 60])
def test_who_asks_for_a_lease_is_granted_before_newcomers(recorded, wait_ms):
    asked, stop, order = Asked(), threading.Event(), []

    def keep_coming(store):
        while not stop.is_set():
            with contextlib.suppress(HfError), store.acquire("job", wait_ms, **LEASE):
                order.append("newcomer")

    with recorded.open() as holder, recorded.open() as store, recorded.open() as comer:
        lock = holder.acquire("job", on_yield=asked, **LEASE)
        coming = Background(keep_coming, comer)
        successor = asking(store, **LEASE)
        asked.wait()
        lock.end()
        with successor.result():
            assert order == []
            stop.set()
        coming.result()


def test_who_asks_is_not_kept_out_by_those_who_share(recorded, way):
    """Readers that overlap never leave the key free, and give way to one who asks."""
    stop = threading.Event()

    def keep_reading(store, start):
        stop.wait(start)
        while not stop.is_set():
            with contextlib.suppress(HfError), store.acquire("job", 200, mode=SHARED, **way):
                stop.wait(0.4)

    with contextlib.ExitStack() as opened:
        store = opened.enter_context(recorded.open())
        readers = [Background(keep_reading, opened.enter_context(recorded.open()), 0.13 * number) for number in range(3)]
        stop.wait(1)
        asking(store, wait_ms=20000, **way).result().end()
        stop.set()
        for reader in readers:
            reader.result()


def test_who_asks_behind_a_thread_that_waits_at_the_store_waits_for_that_alone(recorded, way):
    """The ask is of the same process as the wait that would stand aside for it."""
    with recorded.open() as holder, recorded.open() as other, recorded.open() as store:
        lock = holder.acquire("job", **way)
        first = asking(other, wait_ms=2000, **way)
        stays(lambda: first.running, 0.3)
        asker = asking(store, **way)  # behind the other's ask
        stays(lambda: asker.running, 0.3)
        waiter = Background(store.acquire, "job", FOREVER, **way)
        with pytest.raises(HfError):
            first.result()
        lock.end()
        granted = []
        for _ in range(2):
            eventually(lambda: any(not waiting.running for waiting in (asker, waiter) if waiting not in granted), timeout=10,
                       what="one of them gets it")
            done = next(waiting for waiting in (asker, waiter) if waiting not in granted and not waiting.running)
            granted.append(done)
            done.result().end()


def test_holder_yields_from_its_callback(recorded, way):
    with recorded.open() as holder, recorded.open() as store:
        lock = holder.acquire("job", on_yield=lambda lock, who: lock.release(), **way)
        asking(store, **way).result().end()
        assert lock.state is State.RELEASED


def test_threads_of_the_holder_do_not_get_it_before_who_asked_outside(recorded):
    asked = Asked()
    with recorded.open() as holder, recorded.open() as store:
        lock = holder.acquire("job", on_yield=asked)
        thread = Background(holder.acquire, "job", FOREVER)
        stays(lambda: thread.running, 0.2)
        successor = asking(store)
        asked.wait()
        lock.end()
        second = successor.result()
        stays(lambda: thread.running, 0.5)
        second.end()
        thread.result().end()


def test_thread_of_the_same_store_may_ask(recorded):
    asked = Asked()
    with recorded.open() as store:
        lock = store.acquire("job", on_yield=asked)
        thread = Background(store.acquire, "job", FOREVER)
        stays(lambda: thread.running, 0.2)
        successor = asking(store)
        asked.wait()
        lock.end()
        second = successor.result()
        assert thread.running
        second.end()
        thread.result().end()


def test_those_who_ask_come_one_after_the_other_and_each_is_told_of(recorded):
    asked, again = Asked(), Asked()
    with recorded.open() as holder, recorded.open() as one, recorded.open() as two:
        lock = holder.acquire("job", on_yield=asked)
        first = asking(one, on_yield=again)
        asked.wait()
        second = asking(two)
        stays(lambda: second.running and first.running, 1.5)
        lock.end()
        first.result()
        again.wait()  # it holds the lock now, and is asked in its turn
        first.result().end()
        second.result().end()


def test_all_who_share_are_asked(recorded):
    heard = [Asked(), Asked()]
    with recorded.open() as one, recorded.open() as two, recorded.open() as store:
        locks = [at.acquire("job", mode=SHARED, on_yield=asked) for at, asked in zip((one, two), heard)]
        successor = asking(store)
        for asked in heard:
            asked.wait()
        for lock in locks:
            lock.end()
        successor.result().end()


def test_ask_for_what_is_free_asks_nobody(recorded, way):
    with recorded.open() as store:
        lock = store.acquire("job", 1000, **{**way, "flags": way.get("flags", 0) | ASK})
        lock.end()


# --- going on -----------------------------------------------------------------------------------------


def test_holder_that_does_not_listen_is_waited_for(recorded):
    with recorded.open() as holder, recorded.open() as store:
        lock = holder.acquire("job")
        successor = asking(store)
        stays(lambda: successor.running, 2.5)
        lock.end()
        successor.result().end()


def test_who_gives_up_asking_leaves_nothing_behind(recorded, way):
    asked = Asked()
    with recorded.open() as holder, recorded.open() as store, recorded.open() as other:
        lock = holder.acquire("job", on_yield=asked, **way)
        with pytest.raises(HfError) as refused:
            asking(store, wait_ms=3500, **way).result()
        assert refused.value.status is Status.NOT_ACQUIRED and "held by" in refused.value.message
        assert len(asked.heard) == 1
        lock.end()
        with other.acquire("job", 5000, **way):
            pass


def test_later_ask_is_told_of_again(recorded):
    asked = Asked()
    with recorded.open() as holder, recorded.open() as store:
        lock = holder.acquire("job", on_yield=asked)
        for count in (1, 2):
            with hf.Cancel() as cancel:
                successor = asking(store, cancel=cancel)
                asked.wait(count)
                cancel.trigger()
                with pytest.raises(HfError):
                    successor.result()
            time.sleep(2.5)  # until the holder has seen that nobody asks: nothing tells of that
        lock.end()


def test_who_asks_right_behind_another_is_told_of_too(recorded):
    asked = Asked()
    with recorded.open() as holder, recorded.open(application="one") as one, recorded.open(application="two") as two:
        lock = holder.acquire("job", on_yield=asked)
        with hf.Cancel() as cancel:
            first = asking(one, cancel=cancel)
            assert "wanted by one" in asked.wait().message
            second = asking(two)
            cancel.trigger()
            with pytest.raises(HfError):
                first.result()
        assert "wanted by two" in asked.wait(2).message
        lock.end()
        second.result().end()


def test_who_dies_asking_lets_the_others_in(recorded):
    with recorded.open() as holder, recorded.open() as other:
        asked = Asked()
        lock = holder.acquire("job", on_yield=asked)
        with recorded.peer() as peer:
            peer.begin("acquire", "job", FOREVER, flags=ASK)
            asked.wait()
            waiter = Background(other.acquire, "job", FOREVER)
            stays(lambda: waiter.running, 0.5)
            peer.kill9()
        lock.end()
        waiter.result().end()


def test_loss_is_told_also_while_somebody_asks(recorded):
    asked, lost = Asked(), Asked()
    with recorded.open(ping_interval_ms=200, ping_deadline_ms=1000) as holder, recorded.open() as store:
        lock = holder.acquire("job", on_yield=asked, on_lost=lost)
        successor = asking(store)
        asked.wait()
        recorded.lose(lock.key)
        lost.wait()
        assert lock.state is State.LOST
        successor.result().end()
        with pytest.raises(HfError) as raised:
            lock.end()
        assert raised.value.status is Status.LOST


# --- behind a pooler ----------------------------------------------------------------------------------


def test_leases_are_yielded_through_a_transaction_pooler(pg15, transaction_pooler):
    database = pg15.create_database()
    hf.install(database.url())
    pooled = StoreKind("pgbouncer-transaction", transaction_pooler.url(database.name), database)
    asked = Asked()
    with pooled.open() as holder, pooled.open() as store, pooled.open() as other:
        lock = holder.acquire("job", on_yield=asked, **LEASE)
        before = Background(other.acquire, "job", FOREVER, **LEASE)
        stays(lambda: before.running, 1)
        successor = asking(store, **LEASE)
        asked.wait()
        lock.end()
        second = successor.result()
        assert before.running
        second.end()
        before.result().end()
    database.drop()


# --- misuse -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [
    {"what": ["a", "b"], "wait_ms": 100, "flags": ASK},
    {"what": "a", "wait_ms": 100, "flags": ASK, "slots": 2},
    {"what": "a", "wait_ms": 0, "flags": ASK},
    {"what": ["a", "b"], "on_yield": lambda lock, who: None},
    {"what": "a", "slots": 2, "on_yield": lambda lock, who: None},
], ids=["set", "slots", "no-wait", "yielding-set", "yielding-slots"])
def test_what_cannot_be_asked_for_is_refused(store, how):
    with pytest.raises(HfError) as refused:
        store.acquire(**how)
    assert refused.value.status is Status.INVALID


def test_asks_are_not_shown_as_locks(recorded):
    with recorded.open() as holder, recorded.open() as store:
        with holder.acquire("job", on_yield=lambda lock, who: None):
            successor = asking(store, wait_ms=4000)
            eventually(lambda: any(view.waiting for view in holder.locks()))
            assert {view.key for view in holder.locks()} == {hf.derive("job")}
            with pytest.raises(HfError):
                successor.result()


def test_session_lock_asks_for_a_lease(recorded):
    """They exclude each other, and no queue of the server knows of the lease."""
    asked = Asked()
    with recorded.open() as holder, recorded.open() as store:
        lock = holder.acquire("job", on_yield=asked, **LEASE)
        successor = asking(store)
        asked.wait()
        assert successor.running
        lock.end()
        successor.result().end()

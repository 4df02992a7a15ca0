"""What every kind of store holds to: sets of labels, and slots."""

import random
import threading

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import FOREVER, SHARED, State, Status


# --- sets -------------------------------------------------------------------------------------------


def test_set_is_one_lock_on_all_its_keys(store, peer):
    lock = store.acquire([7, -3, 5])
    assert lock.key == -3
    for key in (7, -3, 5):
        assert peer.refusal(key).status is Status.NOT_ACQUIRED
    lock.end()
    peer.acquire([5, -3, 7])


def test_set_takes_a_repeated_label_once(store, peer):
    lock = store.acquire(["a", "b", "a"])
    lock.end()
    peer.acquire(["a", "b"])


def test_refused_set_leaves_nothing_held(store, peer):
    peer.acquire(5)
    error = store.refusal([3, 5, 7])
    assert error.status is Status.NOT_ACQUIRED
    assert "5" in error.message
    peer.acquire(3)
    peer.acquire(7)


@pytest.mark.parametrize("wait_ms", [200, 2600])
def test_set_that_timed_out_leaves_nothing_held(store, peer, wait_ms):
    peer.acquire(5)
    assert store.refusal([3, 5, 7], wait_ms).status is Status.NOT_ACQUIRED
    peer.acquire(3)
    peer.acquire(7)


def test_set_waits_for_all_its_keys(store, peer):
    third, seventh = peer.acquire(3), peer.acquire(7)
    waiter = Background(store.acquire, [3, 5, 7], FOREVER)
    stays(lambda: waiter.running, 0.3)
    peer.release(third)
    stays(lambda: waiter.running, 0.3)
    peer.release(seventh)
    assert waiter.result().state is State.HELD
    for key in (3, 5, 7):
        assert peer.refusal(key).status is Status.NOT_ACQUIRED


def test_sets_in_opposite_orders_never_deadlock(store, peer, tmp_path):
    tally = tmp_path / "tally"
    tally.write_text("0")
    elsewhere = peer.begin("hammer", ["a", "b", "c"], 50, FOREVER, str(tally))

    def here():
        for _ in range(50):
            lock = store.acquire(["c", "b", "a"], FOREVER)
            tally.write_text(str(int(tally.read_text()) + 1))
            lock.end()

    Background(here).result(40)
    elsewhere.result(40)
    assert int(tally.read_text()) == 100


def test_waiting_set_is_in_nobodys_way_who_keeps_to_the_order(kind, store):
    """One waits for 2 and holds 1; a thread that holds 2 goes on to 3, which a set of 1 and 3 is to get later."""
    with kind.peer() as peer:
        peer.acquire(1)
        second = store.acquire(2)
        theirs = peer.begin("acquire", 2, FOREVER)
        eventually(lambda: [view for view in store.locks() if view.waiting and view.key == 2] or not kind.records)
        waiting = Background(store.acquire, [1, 3], FOREVER)
        eventually(lambda: [view for view in store.locks() if view.waiting and view.key == 1] or not kind.records)
        third = store.acquire(3, 20000)
        third.end()
        second.end()
        theirs.result()
        peer.release(2)
        peer.release(1)
        waiting.result().end()


def test_sets_that_overlap_in_a_process_take_turns(store):
    tally = [0]

    def take(labels):
        for _ in range(50):
            lock = store.acquire(labels, FOREVER)
            before = tally[0]
            threading.Event().wait(0.0001)
            tally[0] = before + 1
            lock.end()

    takers = [Background(take, labels) for labels in (["a", "b"], ["b", "c"], ["b"], ["c", "b", "a"])]
    for taker in takers:
        taker.result(40)
    assert tally[0] == 200


@pytest.mark.parametrize("mode", [hf.EXCLUSIVE, SHARED], ids=["handed over", "joined"])
def test_waiting_set_keeps_no_key_that_its_process_passed_on(store, peer, mode):
    """
    The set waits for 1, which the peer holds while it waits, in order, for 5. Were the set to keep
    the 5 that its process held before, both would wait for ever.
    """
    five = store.acquire(5, mode=mode)
    one = peer.acquire(1)
    theirs = peer.begin("acquire", 5, FOREVER)
    waiter = Background(store.acquire, [1, 5], FOREVER, mode=mode)
    stays(lambda: theirs.running and waiter.running, 0.5)
    five.end()
    peer.release(theirs.result(15))
    peer.release(one)
    assert waiter.result(15).state is State.HELD


class Occupancy:
    """Who is inside each key at the moment, checked at every step."""

    def __init__(self):
        self._guard = threading.Lock()
        self._inside = {}

    def enter(self, keys, mode):
        with self._guard:
            for key in keys:
                others = self._inside.setdefault(key, [])
                assert not others if mode == hf.EXCLUSIVE else hf.EXCLUSIVE not in others, \
                    f"key {key} was given out in mode {mode} while held in {others}"
                others.append(mode)

    def leave(self, keys, mode):
        with self._guard:
            for key in keys:
                self._inside[key].remove(mode)


def test_overlapping_sets_exclude_and_all_end(kind, store):
    """Shared and exclusive, one key and several, over few connections; nobody breaks the order."""
    inside = Occupancy()
    with kind.open(max_waits=1) as other:
        def loop(opened, seed):
            chance = random.Random(seed)
            for _ in range(30):
                keys = chance.sample(range(6), chance.choice([1, 1, 2, 3]))
                mode = chance.choice([hf.EXCLUSIVE, SHARED])
                lock = opened.acquire(keys, FOREVER, mode=mode)
                inside.enter(keys, mode)
                if chance.random() < 0.2:
                    threading.Event().wait(0.001)
                inside.leave(keys, mode)
                lock.end()

        for round_ in range(4):
            loops = [Background(loop, opened, 100 * round_ + seed)
                     for seed, opened in enumerate([store, other] * 4)]
            for one in loops:
                one.result(50)


def test_set_may_mix_labels_numbers_and_pairs(store, peer):
    store.acquire(["a", 42, (1, 2)])
    assert peer.refusal("a").status is Status.NOT_ACQUIRED
    assert peer.refusal(42).status is Status.NOT_ACQUIRED
    assert peer.refusal({"pair": (1, 2)}).status is Status.NOT_ACQUIRED


def test_set_of_a_thousand_labels(kind, store, peer):
    labels = [f"row {number}" for number in range(1000)]
    lock = store.acquire(labels)
    for label in labels[::97]:
        assert peer.refusal(label).status is Status.NOT_ACQUIRED
    lock.end()
    peer.acquire(labels)


def test_shared_set_shares(store, peer):
    store.acquire(["a", "b"], mode=SHARED)
    peer.acquire(["b", "a"], mode=SHARED)
    assert peer.refusal("a").status is Status.NOT_ACQUIRED


# --- slots ------------------------------------------------------------------------------------------


def test_as_many_hold_as_there_are_slots(store, other, peer):
    first, second = store.acquire("pool", slots=3), other.acquire("pool", slots=3)
    third = peer.acquire("pool", slots=3)
    assert sorted([first.slot, second.slot, peer.slot(third)]) == [1, 2, 3]
    for taker in (store, other, peer):
        error = taker.refusal("pool", slots=3)
        assert error.status is Status.NOT_ACQUIRED
    assert "pool" in error.message
    first.end()
    fourth = peer.acquire("pool", slots=3)
    assert 1 <= peer.slot(fourth) <= 3


def test_threads_of_a_store_share_the_slots(store):
    locks = [store.acquire("pool", slots=2) for _ in range(2)]
    assert {lock.slot for lock in locks} == {1, 2}
    assert store.refusal("pool", slots=2).status is Status.NOT_ACQUIRED
    assert store.refusal("pool", 200, slots=2).status is Status.NOT_ACQUIRED


def test_plain_lock_has_no_slot(store):
    assert store.acquire("job").slot == 0


@pytest.mark.parametrize("freed", [0, 1, 2])
def test_waiter_gets_whichever_slot_is_freed(store, peer, freed):
    locks = [store.acquire("pool", slots=3) for _ in range(3)]
    waiter = peer.begin("acquire", "pool", FOREVER, slots=3)
    stays(lambda: waiter.running, 0.3)
    slot = locks[freed].slot
    locks[freed].end()
    assert peer.slot(waiter.result()) == slot


def test_slot_waiter_that_has_waited_long_gets_in(store, peer):
    locks = [store.acquire("pool", slots=2) for _ in range(2)]
    waiter = peer.begin("acquire", "pool", FOREVER, slots=2)
    stays(lambda: waiter.running, 3)
    locks[1].end()
    waiter.result()


def test_another_number_of_slots_is_refused(store, peer):
    lock = store.acquire("pool", slots=3)
    for wait_ms in (0, 200):
        error = peer.refusal("pool", wait_ms, slots=2)
        assert error.status is Status.SLOTS
        assert "pool" in error.message
    assert store.refusal("pool", slots=4).status is Status.SLOTS
    lock.end()
    peer.acquire("pool", slots=2)


def test_killed_holder_frees_its_slot(kind, store):
    with kind.peer() as peer:
        peer.acquire("pool", slots=1)
        waiter = Background(store.acquire, "pool", FOREVER, slots=1)
        stays(lambda: waiter.running, 0.2)
        peer.kill9()
        assert waiter.result().slot == 1


def test_slot_waiter_is_not_starved(store, peer):
    """Two slots, three busy threads, and one in another process that wants in thrice."""
    done = threading.Event()

    def keep_busy():
        while not done.is_set():
            store.acquire("pool", FOREVER, slots=2).end()

    busy = [Background(keep_busy) for _ in range(3)]
    try:
        for _ in range(3):
            peer.release(peer.acquire("pool", FOREVER, slots=2, timeout=20))
    finally:
        done.set()
        for thread in busy:
            thread.result()


def test_slots_are_never_overbooked(store, peer, other):
    inside, most, guard = [0], [0], threading.Lock()
    two_met = threading.Event()

    def work(opened):
        for _ in range(40):
            lock = opened.acquire("pool", FOREVER, slots=2)
            with guard:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                if most[0] == 2:
                    two_met.set()
            assert two_met.wait(20)
            threading.Event().wait(0.0005)
            with guard:
                inside[0] -= 1
            lock.end()

    workers = [Background(work, opened) for opened in (store, store, other, other)]
    for worker in workers:
        worker.result(50)
    assert most[0] == 2


def begin_slot_wait(opened, **how):
    """An acquire that found all slots taken and waits for one."""
    waits = threading.Event()
    waiting = Background(opened.acquire, "pool", FOREVER, on_wait=lambda _: waits.set(), **how)
    assert waits.wait(20)
    return waiting


def test_stopped_slot_waiter_does_not_keep_others_from_free_slots(kind, store, other):
    """First in line for two slots, stopped there; both become free."""
    locks = [store.acquire("pool", slots=2) for _ in range(2)]
    with kind.peer() as peer:
        pending = peer.begin("acquire", "pool", FOREVER, slots=2)
        # It is first in line: whoever comes after it does not get to the gate.
        stays(lambda: pending.running, 0.5)
        peer.stop()
        behind = begin_slot_wait(other, slots=2)
        assert store.refusal("pool", slots=2).status is Status.NOT_ACQUIRED
        for lock in locks:
            lock.end()
        store.acquire("pool", slots=2)
        behind.result()
        refusal = store.refusal("pool", slots=2)
        assert refusal.status is Status.NOT_ACQUIRED
        assert str(peer.pid) not in refusal.message
        peer.cont()
        stays(lambda: pending.running, 0.3)
        behind.result().end()
        pending.result()


def test_another_number_is_refused_while_the_first_in_line_is_stopped(kind, store):
    lock = store.acquire("pool", slots=1)
    with kind.peer() as peer:
        pending = peer.begin("acquire", "pool", FOREVER, slots=1)
        stays(lambda: pending.running, 0.5)
        peer.stop()
        assert store.refusal("pool", slots=2).status is Status.SLOTS
        lock.end()
        peer.cont()
        pending.result()


@pytest.mark.parametrize("how", [{"slots": hf.SLOTS_MAX + 1}, {"slots": 2, "mode": SHARED},
                                 {"slots": 2, "lifetime": hf.TRANSACTION}])
def test_slots_that_make_no_sense_are_refused(store, how):
    assert store.refusal("pool", **how).status is Status.INVALID


def test_slots_on_a_set_are_refused(store):
    assert store.refusal(["a", "b"], slots=2).status is Status.INVALID


def test_greatest_number_of_slots_works(store, peer):
    store.acquire("pool", slots=hf.SLOTS_MAX)
    peer.acquire("pool", slots=hf.SLOTS_MAX)

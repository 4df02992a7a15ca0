"""What every store must keep, whichever it is."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import hf
import sanitizers
from awaiting import Background, eventually, stays
from hf import ANY_ORDER, FOREVER, NEED_TOKEN, REENTRANT, SHARED, HfError, State, Status



# --- exclusion --------------------------------------------------------------------------------------


def test_exclusive_excludes_another_process(store, peer):
    lock = store.acquire("job")
    assert peer.refusal("job").status is Status.NOT_ACQUIRED
    lock.end()
    peer.acquire("job")
    assert store.refusal("job").status is Status.NOT_ACQUIRED


def test_exclusive_excludes_another_store_of_the_process(store, other):
    lock = store.acquire("job")
    assert other.refusal("job").status is Status.NOT_ACQUIRED
    lock.end()
    other.acquire("job").end()


def test_exclusive_excludes_another_thread_on_the_same_store(store):
    lock = store.acquire("job")
    assert Background(store.refusal, "job").result().status is Status.NOT_ACQUIRED
    lock.end()
    Background(store.acquire, "job").result().end()


def test_second_acquire_in_the_same_thread_waits_like_any_other(store):
    lock = store.acquire("job")
    assert store.refusal("job").status is Status.NOT_ACQUIRED
    assert store.refusal("job", wait_ms=200).status is Status.NOT_ACQUIRED
    lock.end()
    store.acquire("job").end()


def test_labels_do_not_exclude_each_other(store, peer):
    store.acquire("job")
    peer.acquire("another job")


def test_shared_holders_share_across_processes_and_threads(store, other, peer):
    store.acquire("job", mode=SHARED)
    other.acquire("job", mode=SHARED)
    peer.acquire("job", mode=SHARED)
    Background(store.acquire, "job", mode=SHARED).result()


def test_shared_excludes_exclusive_until_the_last_is_gone(store, peer):
    first = store.acquire("job", mode=SHARED)
    second = Background(store.acquire, "job", mode=SHARED).result()
    assert peer.refusal("job").status is Status.NOT_ACQUIRED
    assert store.refusal("job").status is Status.NOT_ACQUIRED
    first.end()
    assert peer.refusal("job").status is Status.NOT_ACQUIRED
    assert store.refusal("job").status is Status.NOT_ACQUIRED
    second.end()
    peer.acquire("job")


def test_sharers_of_a_process_take_no_more_turns_once_somebody_waits_outside(store, peer):
    store.acquire("job", mode=SHARED)
    waiter = peer.begin("acquire", "job", FOREVER)
    shared = []

    def is_refused():
        try:
            shared.append(store.acquire("job", mode=SHARED))
        except HfError as error:
            return error.status is Status.NOT_ACQUIRED
        return False
    eventually(is_refused)
    assert waiter.running


def test_exclusive_excludes_shared(store, peer):
    lock = store.acquire("job")
    assert peer.refusal("job", mode=SHARED).status is Status.NOT_ACQUIRED
    assert store.refusal("job", mode=SHARED).status is Status.NOT_ACQUIRED
    lock.end()
    peer.acquire("job", mode=SHARED)


def test_a_thousand_rounds_of_processes_and_threads_lose_no_update(kind, store, peer, tmp_path):
    tally = tmp_path / "tally"
    tally.write_text("0")
    elsewhere = [peer.begin("hammer", "job", 200, FOREVER, str(tally)) for _ in range(2)]

    def here():
        for _ in range(200):
            lock = store.acquire("job", FOREVER)
            tally.write_text(str(int(tally.read_text()) + 1))
            lock.end()

    threads = [Background(here) for _ in range(3)]
    for thread in threads:
        thread.result(50)
    for pending in elsewhere:
        pending.result(50)
    assert int(tally.read_text()) == 1000


# --- keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32), 0x7FFFFFFF])
def test_fixed_keys_of_any_value_exclude(store, peer, key):
    lock = store.acquire(key)
    assert lock.key == key
    assert peer.refusal(key).status is Status.NOT_ACQUIRED
    neighbour = key + 1 if key < 2**63 - 1 else key - 1
    peer.acquire(neighbour)


@pytest.mark.parametrize("derivation", [d for d in hf.Derivation if d < hf.Derivation.FIXED])
def test_label_excludes_the_number_that_it_derives_to(store, peer, derivation):
    lock = store.acquire(("Zürich", derivation))
    assert lock.key == hf.derive("Zürich", derivation)
    assert peer.refusal(lock.key).status is Status.NOT_ACQUIRED


@pytest.mark.parametrize("pair", [(1, 2), (-1, -1), (2**31 - 1, -(2**31)), (0, 0)])
def test_pairs_exclude_each_other_and_never_a_bigint(store, peer, pair):
    bigint = (pair[0] << 32) | (pair[1] & 0xFFFFFFFF)
    store.acquire(pair)
    assert peer.refusal({"pair": pair}).status is Status.NOT_ACQUIRED
    peer.acquire(bigint)
    assert store.refusal(bigint).status is Status.NOT_ACQUIRED


def test_pair_is_not_its_mirror_image(store, peer):
    store.acquire((1, 2))
    peer.acquire({"pair": (2, 1)})


def test_longest_label_is_taken_and_a_longer_one_refused(store, peer):
    longest = "x" * hf.LABEL_MAX
    store.acquire(longest)
    assert peer.refusal(longest).status is Status.NOT_ACQUIRED
    error = store.refusal(longest + "x")
    assert error.status in (Status.INVALID, Status.BAD_DATA)
    assert str(hf.LABEL_MAX) in error.text.replace(" ", "").replace(",", "") or "64 KiB" in error.text
    assert len(error.message) < 400


def test_empty_label_is_refused(store):
    error = store.refusal(hf.Target(label=b"", label_size=0))
    assert error.status in (Status.INVALID, Status.BAD_DATA)
    assert "empty" in error.message


@pytest.mark.parametrize("label, shown", [("night\nly", "night\\nly"), ("bell\a", "\\x07"),
                                          ("\x1b[31mred", "\\x1b"), ("tab\t", "\\t"), (b"nul\0", "\\x00")])
def test_control_characters_are_refused_and_shown_escaped(store, label, shown):
    error = store.refusal(label)
    assert error.status in (Status.INVALID, Status.BAD_DATA)
    assert shown in error.message
    assert error.hint
    assert all(character.isprintable() for character in error.message)


def test_a_minted_key_is_refused_where_no_such_table_is_registered(kind, store):
    expected = Status.INVALID if kind.records else Status.NO_SCHEMA
    assert store.refusal(("table", hf.Derivation.MINTED)).status is expected


def test_unknown_flags_are_refused(store):
    assert store.refusal("job", flags=0x100).status is Status.INVALID


def test_there_is_nothing_to_ask_of_no_lock():
    token = ctypes.c_int64()
    assert hf.lib().hf_lock_release(None, None) == Status.INVALID
    assert hf.lib().hf_lock_token(None, ctypes.byref(token), None) == Status.INVALID
    assert hf.lib().hf_lock_get_state(None) == State.RELEASED


def test_no_target_is_refused(store):
    assert store.refusal([]).status is Status.INVALID


# --- waiting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait_ms", [1, 20, 300, 2600])
def test_timed_wait_gives_up_no_sooner_than_asked(store, peer, wait_ms):
    peer.acquire("job")
    began = time.monotonic()
    error = store.refusal("job", wait_ms)
    assert error.status is Status.NOT_ACQUIRED
    assert time.monotonic() - began >= wait_ms / 1000


@pytest.mark.parametrize("wait_ms", [50, 2600])
def test_timeout_leaves_nothing_held(kind, store, peer, wait_ms):
    held = peer.acquire("job")
    assert store.refusal("job", wait_ms).status is Status.NOT_ACQUIRED
    peer.release(held)
    with kind.open() as third:
        third.acquire("job").end()


@pytest.mark.parametrize("seconds", [0.3, 3], ids=["short", "long"])
def test_release_lets_a_waiter_of_another_process_in(store, peer, seconds):
    held = peer.acquire("job")
    waiter = Background(store.acquire, "job", FOREVER)
    stays(lambda: waiter.running, seconds)
    peer.release(held)
    assert waiter.result().state is State.HELD
    assert peer.refusal("job").status is Status.NOT_ACQUIRED


def test_release_lets_a_waiter_of_the_same_store_in(store):
    lock = store.acquire("job")
    waiter = Background(store.acquire, "job", FOREVER)
    stays(lambda: waiter.running, 0.3)
    lock.end()
    assert waiter.result().state is State.HELD


def test_timed_wait_succeeds_when_freed_in_time(store, peer):
    held = peer.acquire("job")
    waiter = Background(store.acquire, "job", 30000)
    stays(lambda: waiter.running, 0.2)
    peer.release(held)
    assert waiter.result().state is State.HELD


def test_shared_waiters_enter_together(store, peer):
    held = peer.acquire("job")
    waiters = [Background(store.acquire, "job", FOREVER, mode=SHARED) for _ in range(3)]
    stays(lambda: all(waiter.running for waiter in waiters), 0.2)
    peer.release(held)
    locks = [waiter.result() for waiter in waiters]
    assert [lock.state for lock in locks] == [State.HELD] * 3
    peer.acquire("job", mode=SHARED)


def test_waiters_of_a_process_are_served_in_their_order(store):
    lock = store.acquire("job")
    order, waiters = [], []

    def wait_as(number, waiting):
        granted = store.acquire("job", FOREVER, on_wait=lambda _: waiting.set())
        order.append(number)
        granted.end()

    for number in range(5):
        waiting = threading.Event()
        waiters.append(Background(wait_as, number, waiting))
        assert waiting.wait(20)
        stays(lambda: waiters[-1].running, 0.25)  # it enters the queue after it has told
    lock.end()
    for waiter in waiters:
        waiter.result()
    assert order == [0, 1, 2, 3, 4]


def test_process_with_many_waiters_does_not_shut_out_another(store, peer):
    done = threading.Event()

    def keep_busy():
        while not done.is_set():
            store.acquire("job", FOREVER).end()

    busy = [Background(keep_busy) for _ in range(4)]
    try:
        for _ in range(3):
            peer.release(peer.acquire("job", FOREVER, timeout=20))
    finally:
        done.set()
        for thread in busy:
            thread.result()


def test_whoever_waits_is_told_once_and_for_whom(store, peer):
    held = peer.acquire("job")
    told = []
    waiter = Background(store.acquire, "job", FOREVER, on_wait=told.append)
    eventually(lambda: told)
    stays(lambda: waiter.running, 0.5)
    peer.release(held)
    waiter.result()
    assert len(told) == 1
    assert "job" in told[0].message


def test_nobody_is_told_of_a_wait_that_does_not_happen(store):
    told = []
    store.acquire("job", FOREVER, on_wait=told.append)
    assert store.refusal("job", on_wait=told.append).status is Status.NOT_ACQUIRED
    assert told == []


def test_interrupt_ends_waits_now_and_later(store, peer):
    peer.acquire("job")
    waiters = [Background(store.acquire, "job", FOREVER), Background(store.acquire, "job", 30000)]
    stays(lambda: all(waiter.running for waiter in waiters), 0.2)
    store.interrupt()
    for waiter in waiters:
        with pytest.raises(HfError) as raised:
            waiter.result()
        assert raised.value.status is Status.INTERRUPTED
    assert store.refusal("job", FOREVER).status is Status.INTERRUPTED


def test_interrupt_ends_a_long_wait(store, peer):
    peer.acquire("job")
    waiter = Background(store.acquire, "job", FOREVER)
    stays(lambda: waiter.running, 3)
    store.interrupt()
    with pytest.raises(HfError) as raised:
        waiter.result()
    assert raised.value.status is Status.INTERRUPTED


def test_refusal_names_label_and_holder(kind, store):
    with kind.peer(application="night shift") as peer:
        peer.acquire("nightly")
        error = store.refusal("nightly")
    assert error.status is Status.NOT_ACQUIRED
    assert "'nightly'" in error.message
    assert "night shift" in error.message
    if kind.records:
        assert f"pid {peer.pid}" in error.message
        assert socket.gethostname() in error.message
        assert "since" in error.message
    assert "\n" not in error.message


def test_refusal_within_a_process_names_the_process_itself(kind, store):
    store.acquire("nightly")
    error = Background(store.refusal, "nightly").result()
    assert "'nightly'" in error.message
    assert str(os.getpid()) in error.message or "this process" in error.message


# --- the life of a handle ---------------------------------------------------------------------------


def test_states_of_a_handle(store):
    lock = store.acquire("job")
    assert lock.state is State.HELD
    lock.release()
    assert lock.state is State.RELEASED
    with pytest.raises(HfError) as raised:
        lock.release()
    assert raised.value.status is Status.INVALID
    assert lock.state is State.RELEASED
    lock.free()


def test_free_releases(store, peer):
    store.acquire("job").free()
    peer.acquire("job")
    hf.lib().hf_lock_free(None)


def test_close_releases(kind, peer):
    opened = kind.open()
    opened.acquire("job")
    opened.close()
    peer.acquire("job", wait_ms=20000)
    hf.lib().hf_store_close(None)


def test_lock_may_be_released_from_another_thread(store, peer):
    lock = store.acquire("job")
    Background(lock.release).result()
    peer.acquire("job")


def test_store_is_of_the_kind_that_the_url_says(kind, store):
    assert store.is_local == kind.local
    assert store.name.startswith("local:" if kind.local else "postgresql://")
    assert store.has_records == kind.records


def test_spec_that_was_never_initialised_is_refused(store):
    """HF_LOCK_SPEC_INIT says how large the caller's struct is; zero is nobody's."""
    spec = store.spec("job")
    spec.size = 0
    pointer, error = hf.c_void_p(), hf.CError()
    status = hf.lib().hf_lock_acquire(store.pointer, hf.byref(spec), hf.byref(pointer), hf.byref(error))
    assert status == Status.INVALID
    assert not pointer


# --- reentrancy and order ---------------------------------------------------------------------------


def test_reentrant_lock_is_had_again_by_its_thread_only(store, peer):
    outer = store.acquire("job")
    inner = store.acquire("job", flags=REENTRANT)
    assert Background(store.refusal, "job", flags=REENTRANT).result().status is Status.NOT_ACQUIRED
    outer.end()
    assert inner.state is State.HELD
    assert peer.refusal("job").status is Status.NOT_ACQUIRED
    inner.end()
    peer.acquire("job")


def test_reentrant_wait_for_ever_does_not_wait(store):
    with store.acquire("job"), store.acquire("job", FOREVER, flags=REENTRANT) as inner:
        assert inner.state is State.HELD


def test_waiting_out_of_order_is_refused(store, peer):
    peer.acquire(5)
    store.acquire(10)
    error = store.refusal(5, 1000)
    assert error.status is Status.ORDER
    assert error.hint
    assert store.refusal(5, FOREVER).status is Status.ORDER


def test_waiting_in_order_is_allowed(store, peer):
    held = peer.acquire(15)
    store.acquire(10)
    assert store.refusal(15, 100).status is Status.NOT_ACQUIRED
    peer.release(held)
    store.acquire(15, 1000)


def test_trying_out_of_order_is_allowed(store, peer):
    store.acquire(10)
    store.acquire(5)
    peer.acquire(3)
    assert store.refusal(3).status is Status.NOT_ACQUIRED


def test_waiting_out_of_order_is_allowed_when_asked_for(store, peer):
    held = peer.acquire(5)
    store.acquire(10)
    assert store.refusal(5, 100, flags=ANY_ORDER).status is Status.NOT_ACQUIRED
    peer.release(held)
    store.acquire(5, 1000, flags=ANY_ORDER)


def test_order_is_a_threads_own_affair(store, peer):
    held = peer.acquire(5)
    store.acquire(10)
    waiter = Background(store.acquire, 5, 10000)
    stays(lambda: waiter.running, 0.2)
    peer.release(held)
    waiter.result()


def test_order_counts_only_what_is_still_held(store, peer):
    held = peer.acquire(5)
    store.acquire(10).end()
    waiter = Background(store.acquire, 5, 10000)
    stays(lambda: waiter.running, 0.1)
    peer.release(held)
    waiter.result()
    assert store.refusal(5, 50).status is Status.NOT_ACQUIRED


# --- the callback form ------------------------------------------------------------------------------


def test_callback_form_holds_while_it_runs_and_releases_after(store, peer):
    seen = []

    def body(lock):
        seen.append((lock.state, peer.refusal("job").status))

    store.locked("job", body)
    assert seen == [(State.HELD, Status.NOT_ACQUIRED)]
    peer.acquire("job")


def test_callback_form_releases_when_the_body_fails(store, peer):
    def body(_):
        return Status.BAD_DATA

    with pytest.raises(HfError) as raised:
        store.locked("job", body)
    assert raised.value.status is Status.BAD_DATA
    peer.acquire("job")


def test_callback_form_does_not_call_without_the_lock(store, peer):
    peer.acquire("job")
    called = []
    with pytest.raises(HfError) as raised:
        store.locked("job", called.append)
    assert raised.value.status is Status.NOT_ACQUIRED
    assert called == []


def test_callback_form_bears_a_release_inside(store, peer):
    store.locked("job", lambda lock: lock.release())
    peer.acquire("job")


@sanitizers.with_cancelled_threads
def test_callback_form_releases_when_its_thread_is_cancelled(kind, peer, compiled):
    assert subprocess.run([compiled("with_cancel.c"), kind.url, "job"], timeout=20).returncode == 0
    peer.acquire("job", wait_ms=20000)


def test_callback_form_releases_when_an_exception_passes(kind, peer, compiled):
    assert subprocess.run([compiled("with_exception.cpp"), kind.url, "job"], timeout=20).returncode == 0
    peer.acquire("job", wait_ms=20000)


# --- processes that die or fork ---------------------------------------------------------------------


def test_killed_holder_frees_its_lock(kind, store):
    with kind.peer() as peer:
        peer.acquire("job")
        assert store.refusal("job").status is Status.NOT_ACQUIRED
        waiter = Background(store.acquire, "job", FOREVER)
        stays(lambda: waiter.running, 0.2)
        peer.kill9()
        waiter.result()


def test_killed_waiter_gets_nothing(kind, store):
    lock = store.acquire("job")
    with kind.peer() as peer:
        waiter = peer.begin("acquire", "job", FOREVER)
        stays(lambda: waiter.running, 0.3)
        peer.kill9()
    lock.end()
    store.acquire("job", 20000).end()


def test_stopped_holder_keeps_its_lock(kind, store, peer):
    peer.acquire("job")
    peer.stop()
    try:
        assert store.refusal("job", 1500).status is Status.NOT_ACQUIRED
    finally:
        peer.cont()


FORK = """
import os, sys
sys.path.insert(0, {here!r})
import hf
store = hf.Store({url!r}, **{options!r})
lock = store.acquire("job")
child = os.fork()
if child == 0:
    code = 1
    try:
        {in_child}
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0, "the child failed"
assert lock.state is hf.State.HELD
print("forked", flush=True)
sys.stdin.readline()
assert lock.state is hf.State.HELD
lock.release()
print("released", flush=True)
"""


@pytest.mark.parametrize("in_child", [
    "pass",
    "hf.lib().hf_store_close(store.pointer)",
    "assert store.refusal('other').status is hf.Status.FORKED",
    "assert store.refusal('other', 100).status is hf.Status.FORKED",
    "lock.free(); hf.lib().hf_store_close(store.pointer)",
    """
        try: lock.release()
        except hf.HfError as error: assert error.status is hf.Status.FORKED, error
        else: raise AssertionError('released in the child')
        lock.free()""",
], ids=["exit", "close", "try", "wait", "free", "release"])
def test_forks_child_cannot_end_the_parents_lock(kind, store, in_child):
    script = FORK.format(here=str(hf.HARNESS), url=kind.url, options=kind.options, in_child=in_child)
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout.readline() == "forked\n"
        assert store.refusal("job", 300).status is Status.NOT_ACQUIRED
        out, _ = parent.communicate("\n", timeout=20)
        assert out == "released\n"
        store.acquire("job", 20000)
    finally:
        parent.kill()
        parent.wait()


def test_forks_child_cannot_interrupt_the_parents_waits(kind, store):
    wait = "assert store.refusal('taken', 300, flags=hf.ANY_ORDER).status is hf.Status.NOT_ACQUIRED\n"
    script = FORK.format(here=str(hf.HARNESS), url=kind.url, options=kind.options, in_child="store.interrupt()")
    with store.acquire("taken"):
        done = subprocess.run([sys.executable, "-c", script + wait], input="\n", text=True, capture_output=True,
                              timeout=20)
    assert (done.returncode, done.stdout) == (0, "forked\nreleased\n"), done.stderr


def test_child_may_open_a_store_of_its_own(kind, store):
    script = FORK.format(here=str(hf.HARNESS), url=kind.url, options=kind.options, in_child="""
        hf.lib().hf_store_close(store.pointer)
        mine = hf.Store({url!r}, **{options!r})
        mine.acquire("child's").end()
        assert mine.refusal("job").status is hf.Status.NOT_ACQUIRED
        mine.close()""".format(url=kind.url, options=kind.options))
    done = subprocess.run([sys.executable, "-c", script], input="\n", text=True,
                          capture_output=True, timeout=20)
    assert (done.returncode, done.stdout) == (0, "forked\nreleased\n"), done.stderr


def test_holder_killed_after_a_fork_frees_its_lock(kind, store):
    script = FORK.format(here=str(hf.HARNESS), url=kind.url, options=kind.options,
                         in_child="hf.lib().hf_store_close(store.pointer)")
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "forked\n"
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    store.acquire("job", 20000)


# --- tokens -----------------------------------------------------------------------------------------


def test_without_a_schema_there_is_no_token(kind, store):
    if store.has_records:
        assert store.acquire("job", flags=NEED_TOKEN).token > 0
        return
    with store.acquire("job") as lock:
        with pytest.raises(HfError) as raised:
            lock.token
        assert raised.value.status is Status.NO_SCHEMA
        assert "holdfast init" in raised.value.hint
    error = store.refusal("job", flags=NEED_TOKEN)
    assert error.status is Status.NO_SCHEMA
    assert "holdfast init" in error.hint
    if kind.database:
        assert kind.database.advisory_locks() == []


def test_records_can_be_declined(recorded):
    with recorded.open(records=hf.RECORDS_OFF) as store:
        assert not store.has_records
        with store.acquire("job") as lock, pytest.raises(HfError) as raised:
            lock.token
        assert raised.value.status is Status.NO_SCHEMA


# --- labels on record -------------------------------------------------------------------------------


def test_two_labels_of_one_key_are_a_collision_that_names_both(recorded):
    with recorded.open() as store:
        store.acquire(("costarring", hf.Derivation.FNV1A32)).end()
        error = store.refusal(("liquid", hf.Derivation.FNV1A32))
        assert error.status is Status.COLLISION
        assert "costarring" in error.message and "liquid" in error.message
        store.acquire(("costarring", hf.Derivation.FNV1A32)).end()


def test_collision_is_found_across_processes_and_leaves_nothing_held(recorded):
    with recorded.open() as store, recorded.peer() as peer:
        peer.release(peer.acquire({"label": "alpha", "key": 42}))
        error = store.refusal([hf.named_key("beta", 42), 41, 43])
        assert error.status is Status.COLLISION
        assert "alpha" in error.message and "beta" in error.message
        peer.acquire([41, 42, 43])


def test_collision_within_one_set_is_found(recorded):
    with recorded.open() as store:
        error = store.refusal([hf.named_key("alpha", 42), hf.named_key("beta", 42)])
        assert error.status is Status.COLLISION


# --- quota ------------------------------------------------------------------------------------------


def test_quota_bounds_the_keys_held_at_once(kind, peer):
    with kind.open(max_keys=3) as store:
        locks = [store.acquire(key) for key in (1, 2, 3)]
        error = store.refusal(4)
        assert error.status is Status.QUOTA
        assert "3" in error.message
        peer.acquire(4)
        locks.pop().end()
        store.acquire(5)


def test_set_beyond_the_quota_leaves_nothing_held(kind, peer):
    with kind.open(max_keys=3) as store:
        assert store.refusal([1, 2, 3, 4]).status is Status.QUOTA
        peer.acquire([1, 2, 3, 4])
        assert store.refusal([5, 6, 7, 8], 100).status is Status.QUOTA


# --- schedules --------------------------------------------------------------------------------------


def test_schedule_is_due_once_per_period_over_all(recorded):
    with recorded.open() as store, recorded.open() as other:
        assert store.claim("report", 60000) == (True, 0)
        due, left = other.claim("report", 60000)
        assert not due and 50000 < left <= 60000
        assert store.claim("another", 60000)[0]
        eventually(lambda: other.claim("report", 300)[0])


def test_one_of_many_gets_the_run(recorded):
    with recorded.open() as store:
        claims = [Background(store.claim, "report", 60000) for _ in range(8)]
        assert sum(claim.result()[0] for claim in claims) == 1


def test_schedule_without_a_schema_is_refused(db):
    with hf.Store(db.url()) as store, pytest.raises(HfError) as raised:
        store.claim("report", 1000)
    assert raised.value.status is Status.NO_SCHEMA

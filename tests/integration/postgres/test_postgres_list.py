"""What the list of locks shows of other programs' sessions, and of those that sleep while they wait."""

import pytest

import hf
import strangers
from awaiting import eventually
from peer import Peer

KEY = 4711


@pytest.fixture
def viewer(db15):
    with hf.Store(db15.url()) as opened:
        yield opened


def views(store, key=KEY):
    return [view for view in store.locks() if view.key == key]


@pytest.mark.parametrize("name", [
    "psql", "", "a on b", "(pid 5)", "a (pid 5)", "a (pid 5) on b", "a on b (pid 5", "a on b (pid 5) x",
    "a on b (pid x)", "a on b (pid -5)", " on  (pid "])
def test_a_name_that_only_looks_like_ours_is_shown_as_it_is(viewer, db15, name):
    with strangers.sessions(db15, 1) as [stranger]:
        strangers.run(stranger, "set application_name = %s", name)
        strangers.run(stranger, "select pg_advisory_lock(%s)", KEY)
        [view] = views(viewer)
        assert (view.application, view.pid, view.backend_pid) == (name, 0, stranger.info.backend_pid)
        error = viewer.refusal(KEY)
        assert error.status is hf.Status.NOT_ACQUIRED
        assert str(stranger.info.backend_pid) in error.text


def test_whoever_waits_is_blocked_by_those_whose_lock_conflicts(viewer, db15):
    with strangers.sessions(db15, 5) as [first, second, writer, reader, beside]:
        for holder in (first, second):
            strangers.run(holder, "select pg_advisory_lock_shared(%s)", KEY)
        strangers.run(beside, "select pg_advisory_lock(%s)", KEY + 1)  # the next in order
        strangers.begin(writer, "select pg_advisory_lock(%s)", KEY)
        eventually(lambda: len(views(viewer)) == 3)
        strangers.begin(reader, "select pg_advisory_lock_shared(%s)", KEY)
        eventually(lambda: len(views(viewer)) == 4)
        waiting = {view.backend_pid: view.blocked_by for view in views(viewer) if view.waiting}
        both = {str(holder.info.backend_pid) for holder in (first, second)}
        assert set(waiting[writer.info.backend_pid].split(",")) == both
        assert waiting[reader.info.backend_pid] == ""  # only the writer is in its way, and holds nothing


def test_whoever_sleeps_until_it_is_woken_is_shown_as_waiting(viewer, db15):
    with strangers.sessions(db15, 1) as [holder], Peer(db15.url()) as sleeper:
        strangers.run(holder, "select pg_advisory_lock(%s)", KEY)
        sleeper.begin("acquire", KEY, hf.FOREVER)
        asleep = eventually(lambda: [view for view in views(viewer) if view.waiting and view.age_is_bound])
        assert [view.pid for view in asleep] == [sleeper.pid]
        assert asleep[0].blocked_by == str(holder.info.backend_pid)


def test_two_numbers_of_a_stranger_are_shown_as_a_pair(viewer, db15):
    with strangers.sessions(db15, 2) as [holder, waiter]:
        strangers.run(holder, "select pg_advisory_lock_shared(3, 4)")
        strangers.begin(waiter, "select pg_advisory_lock(3, 4)")
        pair = eventually(lambda: [view for view in views(viewer, (3 << 32) | 4) if view.waiting])
        assert [(view.space, view.blocked_by) for view in pair] == [(hf.PAIR, str(holder.info.backend_pid))]

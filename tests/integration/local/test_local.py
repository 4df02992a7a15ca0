"""The local store: folders and files that are not as they should be, and the kernel's locks."""

import contextlib
import fcntl
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import ANY_ORDER, FOREVER, SHARED, HfError, State, Status
from peer import Peer
from servers import small_disk


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def url(folder):
    return f"local:{folder}"


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_folder_is_made_with_its_parents_and_for_its_owner_only(tmp_path):
    folder = tmp_path / "a" / "b" / "state"
    with hf.Store(f"local:{folder}") as store:
        store.acquire("job")
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o077 == 0


def test_file_in_place_of_the_folder_is_refused(folder, url):
    folder.write_text("not a folder")
    error = hf.open_error(url)
    assert error.status in (Status.CONFIG, Status.SYSTEM)
    assert str(folder) in error.message
    assert error.hint


def test_one_who_creates_a_store_and_never_ends_is_not_waited_for(folder, url):
    (folder / "locks").mkdir(parents=True)
    with open(folder / "locks" / "create", "w", encoding="ascii") as gate:
        fcntl.lockf(gate, fcntl.LOCK_EX)  # as one that is stopped while it creates the schema
        opening = Background(hf.Store, url)
        with opening.result() as store:
            store.acquire("job").end()


def in_subprocess(script, prefix=(), **popen):
    """Runs Python with our binding."""
    return subprocess.run([*prefix, sys.executable, "-c",
                           f"import sys; sys.path.insert(0, {str(hf.HARNESS)!r})\nimport hf\n{script}"],
                          capture_output=True, text=True, timeout=30,
                          env={**os.environ, "HOLDFAST_BUILD": str(hf.BUILD), "PYTHONDONTWRITEBYTECODE": "1"},
                          **popen)


@pytest.fixture
def public_folder():
    """A folder that other users may look into; those of pytest are not."""
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        yield pathlib.Path(base)


@pytest.fixture
def as_nobody():
    """Runs Python as another user. It loads all it needs before, as others may not reach the build."""
    if os.geteuid() != 0:
        pytest.skip("only root can use another user's store")
    become = """
import hf_tx, os, pwd
hf_tx.lib()
user = pwd.getpwnam("nobody")
os.setgroups([])
os.setgid(user.pw_gid)
os.setuid(user.pw_uid)
"""
    return lambda script: in_subprocess(become + script)


def test_folder_that_cannot_be_written_is_refused(unprivileged, folder):
    folder.mkdir(mode=0o555)
    done = in_subprocess(f"""
error = hf.open_error("local:{folder}")
assert error.status in (hf.Status.CONFIG, hf.Status.SYSTEM), error
assert "{folder}" in error.message, error
assert error.hint, error
""", prefix=unprivileged)
    assert done.returncode == 0, done.stderr
    assert files_of(folder) == []


TAKE_MANY = """
with hf.Store("local:{folder}") as store:
    for number in range(300):
        store.acquire(number).end()
    import hf_tx
    hf_tx.transact(store, [], lambda tx: tx.query("create table if not exists t (a int)"))
"""


@pytest.mark.parametrize("first", ["root", "owner"])
def test_root_leaves_a_store_usable_for_its_owner(as_nobody, public_folder, first):
    home = public_folder / "home"
    home.mkdir()
    folder = home / "state"
    shutil.chown(home, "nobody", "nogroup")
    if first == "owner":
        done = as_nobody(f"hf.Store('local:{folder}').acquire('job').end()")
        assert done.returncode == 0, done.stderr
    for run in (in_subprocess, as_nobody):
        done = run(TAKE_MANY.format(folder=folder))
        assert done.returncode == 0, done.stderr
    assert {path.owner() for path in folder.rglob("*")} == {"nobody"}


def test_doctor_sees_files_that_cannot_be_used(as_nobody, public_folder):
    folder = public_folder / "state"
    with hf.Store(f"local:{folder}") as store:
        store.acquire("job").end()
    for path in [folder, *folder.rglob("*")]:
        shutil.chown(path, "nobody", "nogroup")
    spoilt = next(path for path in (folder / "locks").iterdir() if path.name.startswith(("b+", "b-")))
    shutil.chown(spoilt, "root", "root")
    examine = f"print(hf.Store('local:{folder}').examine())"
    done = as_nobody(examine)
    assert done.returncode == 0, done.stderr
    assert spoilt.name in done.stdout and "files" in done.stdout
    assert spoilt.name in in_subprocess(examine).stdout
    shutil.chown(spoilt, "nobody", "nogroup")
    assert spoilt.name not in as_nobody(examine).stdout


def test_database_that_is_none_is_refused_and_left_alone(folder, url):
    with hf.Store(url) as store:
        store.acquire("job").end()
    path, = [path for path in files_of(folder) if path.read_bytes().startswith(b"SQLite format 3")]
    for leftover in path.parent.glob(path.name + "-*"):
        leftover.unlink()
    contents = b"this is not a database" * 500
    path.write_bytes(contents)
    with pytest.raises(HfError) as raised:
        with hf.Store(url) as store:
            store.acquire("job")
    assert raised.value.status in (Status.BAD_DATA, Status.CONFIG)
    assert str(path) in raised.value.message
    assert raised.value.hint
    assert path.read_bytes() == contents
    path.unlink()
    with hf.Store(url) as store:
        store.acquire("job").end()


def test_full_folder_is_reported_and_holds_nothing(folder, url):
    with hf.Store(url) as store:
        store.acquire("job").end()
    done = in_subprocess(f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    store = hf.Store({url!r})
    lock = store.acquire("another label " * 100)
    token = lock.token
except hf.HfError as error:
    assert error.status in (hf.Status.SYSTEM, hf.Status.CONFIG, hf.Status.UNREACHABLE), error
    assert error.message and error.hint, error
    print("refused")
else:
    print("held", token)
""")
    assert done.stdout == "refused\n", done.stdout + done.stderr
    with hf.Store(url) as store:
        store.acquire("another label " * 100).end()


def test_full_disk_is_reported_and_the_store_works_again_with_room(tmp_path):
    disk = tmp_path / "disk"
    script = f"""
import os, pathlib
store = hf.Store("local:{disk}/state")
store.acquire("job").end()
filler = pathlib.Path("{disk}/filler")
with open(filler, "wb", buffering=0) as out:
    try:
        while True: out.write(b"x" * 4096)
    except OSError:
        pass
refused = None
for number in range(200):
    try:
        lock = store.acquire("label %d " % number * 200)
        lock.token
        lock.end()
    except hf.HfError as error:
        refused = error
        break
assert refused is not None, "never noticed that the disk is full"
assert refused.status in (hf.Status.SYSTEM, hf.Status.CONFIG, hf.Status.UNREACHABLE), refused
assert refused.hint, refused
filler.unlink()
store.acquire("label %d " % number * 200).end()
store.acquire("job").end()
print("fine")
"""
    disk.mkdir()
    done = in_subprocess(script, prefix=small_disk("400k", disk))
    assert done.stdout == "fine\n", done.stdout + done.stderr


def test_lock_files_that_are_removed_under_a_holder_let_nobody_else_in(folder, url):
    """A tidy-up job that empties the folder must not make two holders."""
    with hf.Store(url) as store, Peer(url) as peer:
        lock = store.acquire("job")
        for path in files_of(folder):
            if not path.read_bytes().startswith(b"SQLite") and not path.name.endswith(("-wal", "-shm")):
                path.unlink()
        lost = eventually(lambda: lock.state is State.LOST or peer_is_refused(peer, "job"))
        assert lost
        if lock.state is State.HELD:
            assert peer_is_refused(peer, "job")
            with hf.Store(url) as late:
                assert late.refusal("job").status is Status.NOT_ACQUIRED


def remove_lock_files(folder):
    for path in (folder / "locks").iterdir():
        path.unlink()


def begin_wait(store, label, **how):
    """An acquire that has found the label taken and waits for it."""
    waits = threading.Event()
    waiting = Background(store.acquire, label, FOREVER, on_wait=lambda _: waits.set(), **how)
    assert waits.wait(20)
    return waiting


def test_ping_interval_says_how_often_lock_files_are_looked_at(folder, url):
    with hf.Store(url, ping_interval_ms=600000) as seldom, hf.Store(url, ping_interval_ms=200) as often:
        lock = seldom.acquire("other")
        told = threading.Event()
        often.acquire("job", on_lost=lambda *_: told.set())
        remove_lock_files(folder)
        assert told.wait(20)
        assert lock.state is State.HELD


def test_lock_whose_file_was_removed_is_not_handed_over(folder, url):
    """The waiter would share it with who came in by the new file, and with the greater token."""
    with hf.Store(url) as store, Peer(url) as peer:
        lock = store.acquire("job")
        waiting = begin_wait(store, "job")
        remove_lock_files(folder)
        rival = peer.acquire("job")
        rivals_token = peer.token(rival)
        with pytest.raises(HfError) as lost:
            lock.release()
        assert lost.value.status is Status.LOST
        assert "was removed" in lost.value.message
        stays(lambda: waiting.running, 0.3)
        peer.release(rival)
        assert waiting.result().token > rivals_token


def test_shared_lock_whose_file_was_removed_is_not_joined(folder, url):
    with hf.Store(url) as store, Peer(url) as peer:
        one, two = (store.acquire("job", mode=SHARED) for _ in range(2))
        remove_lock_files(folder)
        rival = peer.acquire("job")
        assert store.refusal("job", mode=SHARED).status is Status.NOT_ACQUIRED
        for lock in (one, two):
            with pytest.raises(HfError) as lost:
                lock.release()
            assert lost.value.status is Status.LOST
        peer.release(rival)
        store.acquire("job", mode=SHARED).end()


def test_release_of_a_shared_lock_whose_file_was_removed_tells_so(folder, url):
    with hf.Store(url) as store:
        one, two = (store.acquire("job", mode=SHARED) for _ in range(2))
        remove_lock_files(folder)
        for lock in (one, two):
            with pytest.raises(HfError) as lost:
                lock.release()
            assert lost.value.status is Status.LOST


def peer_is_refused(peer, label):
    try:
        peer.release(peer.acquire(label))
    except HfError as error:
        return error.status is Status.NOT_ACQUIRED
    return False


def test_folder_that_is_removed_under_a_store_is_reported(folder, url):
    with hf.Store(url) as store:
        store.acquire("job").end()
        shutil.rmtree(folder)
        try:
            lock = store.acquire("job")
        except HfError as error:
            assert error.status in (Status.SYSTEM, Status.CONFIG, Status.LOST, Status.UNREACHABLE)
            assert error.hint
        else:
            with hf.Store(url) as other:
                assert other.refusal("job").status is Status.NOT_ACQUIRED
            lock.free()


def test_two_folders_are_two_stores(tmp_path):
    with hf.Store(f"local:{tmp_path / 'a'}") as a, hf.Store(f"local:{tmp_path / 'b'}") as b:
        a.acquire("job")
        b.acquire("job")


def test_one_folder_under_two_names_is_one_store(folder, url, tmp_path):
    folder.mkdir()
    (tmp_path / "alias").symlink_to(folder)
    with hf.Store(url) as store, hf.Store(f"local:{tmp_path / 'alias'}") as alias:
        store.acquire("job")
        assert alias.refusal("job").status is Status.NOT_ACQUIRED


@pytest.mark.parametrize("name", ["with space", "with'quote", "with%percent", "ünïcode", "a;b?c#d"])
def test_folders_of_any_name(tmp_path, name):
    folder = tmp_path / name
    with hf.Store(f"local:{folder}") as store, Peer(f"local:{folder}") as peer:
        store.acquire("job")
        assert peer.refusal("job").status is Status.NOT_ACQUIRED
    assert [path.name for path in tmp_path.iterdir()] == [name]


@contextlib.contextmanager
def stopped_waiter(url, store, label):
    """Another process, first in line for the label, that was stopped there."""
    with Peer(url) as peer:
        pending = peer.begin("acquire", label, FOREVER)
        eventually(lambda: peer.pid in [view.pid for view in store.locks() if view.waiting])
        peer.stop()
        yield peer, pending


def waits_in_the_kernel(folder):
    """How many locks of the store's files are waited for."""
    inodes = {str(path.stat().st_ino) for path in (folder / "locks").rglob("*") if path.is_file()}
    waiting = [line.split() for line in pathlib.Path("/proc/locks").read_text().splitlines() if " -> " in line]
    return sum(words[6].split(":")[-1] in inodes for words in waiting)


def test_waiters_of_different_processes_are_served_in_their_order(holdfast, tmp_path):
    command, order = holdfast.at(f"local:{tmp_path / 'state'}"), tmp_path / "order"
    holder = command.hold("build")
    waiters = []
    for name in "abcdef":
        waiters.append(command.start("run", "build", "--", "sh", "-c", f"echo {name} >>{order}"))
        eventually(lambda: waits_in_the_kernel(tmp_path / "state") == len(waiters), 20, f"{name} is in line")
    holder.signal(signal.SIGTERM)
    assert [waiter.wait() for waiter in waiters] == [0] * len(waiters)
    assert order.read_text().split() == list("abcdef")


def test_stopped_waiter_does_not_keep_others_from_a_free_lock(url):
    with hf.Store(url) as store:
        lock = store.acquire("job")
        with stopped_waiter(url, store, "job") as (peer, pending):
            refusal = store.refusal("job")
            assert str(os.getpid()) in refusal.message
            lock.end()
            taken = store.acquire("job")
            with hf.Store(url) as late:
                refusal = late.refusal("job")
            assert str(os.getpid()) in refusal.message and str(peer.pid) not in refusal.message
            taken.end()
            with hf.Store(url) as patient:
                patient.acquire("job", FOREVER).end()
            peer.cont()
            pending.result()


def test_waiters_behind_a_stopped_one_get_in(url):
    with hf.Store(url) as store, hf.Store(url) as behind:
        lock = store.acquire("job")
        with stopped_waiter(url, store, "job") as (peer, pending):
            waiting = begin_wait(behind, "job")
            eventually(lambda: len([view for view in store.locks() if view.waiting]) == 2)
            lock.end()
            waiting.result().end()
            peer.cont()
            pending.result()


def test_set_behind_a_stopped_waiter_gets_in(url):
    """It passes the stopped one at its first label and goes on to the others."""
    with hf.Store(url) as store, hf.Store(url) as behind:
        first, last = sorted(["a", "b"], key=hf.derive)
        locks = [store.acquire(label) for label in (first, last)]
        with stopped_waiter(url, store, first) as (peer, pending):
            waiting = begin_wait(behind, [first, last])
            eventually(lambda: len([view for view in store.locks() if view.waiting]) > 1)
            locks[0].end()
            eventually(lambda: [view.waiting for view in store.locks() if view.key == hf.derive(last)] == [False, True])
            locks[1].end()
            waiting.result().end()
            peer.cont()
            pending.result()


def test_stopped_waiter_does_not_keep_a_shared_lock_from_others(url):
    """It waits exclusively, behind one who shares; others who want to share try, wait, and join their like."""
    with hf.Store(url) as store, hf.Store(url) as other, hf.Store(url) as patient:
        held = store.acquire("job", mode=SHARED)
        with stopped_waiter(url, store, "job") as (peer, pending):
            peer.cont()
            waiting = begin_wait(patient, "job", mode=SHARED)
            peer.stop()
            tried = other.acquire("job", mode=SHARED)
            waiting.result().end()
            joined = [other.acquire("job", mode=SHARED) for _ in range(300)]
            for lock in [held, tried, *joined]:
                lock.end()
            peer.cont()
            pending.result()


def test_live_waiter_keeps_new_shared_ones_behind_it(url):
    with hf.Store(url) as store, Peer(url) as peer, hf.Store(url) as other:
        held = store.acquire("job", mode=SHARED)
        pending = peer.begin("acquire", "job", FOREVER)
        eventually(lambda: peer.pid in [view.pid for view in store.locks() if view.waiting])
        assert other.refusal("job", mode=SHARED).status is Status.NOT_ACQUIRED
        held.end()
        pending.result()


def test_process_that_keeps_the_records_locked_keeps_no_call_beyond_the_deadline(url, folder):
    """As one does that was stopped in the middle of a record."""
    with hf.Store(url, ping_deadline_ms=1000) as store:
        held = store.acquire("mine")
        with contextlib.closing(sqlite3.connect(folder / "holdfast.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            assert store.refusal("free").status is Status.UNREACHABLE
            held.end()
            assert time.monotonic() - began < 9, "each statement waited"
        store.acquire("free", 20000).end()
        store.acquire("mine").end()


def test_tokens_do_not_repeat_where_the_folder_is_made_anew_at_once(url, folder):
    seen = []
    for _ in range(20):
        with hf.Store(url) as store:
            seen.append(store.acquire("job").token)
        shutil.rmtree(folder)
    assert seen == sorted(set(seen))


def test_waiting_set_is_not_granted_with_a_key_that_it_lost_meanwhile(url, folder):
    """The watcher looks once in a minute here, so that it is not the one to tell."""
    first, last = sorted(["a", "b"], key=hf.derive)
    with hf.Store(url, ping_interval_ms=60000) as store, Peer(url) as peer:
        held = peer.acquire(last)
        waiting = begin_wait(store, [first, last])
        eventually(lambda: any(view.key == hf.derive(last) and view.waiting for view in store.locks()))
        for path in (folder / "locks").iterdir():
            path.unlink()
        with hf.Store(url) as rival:
            theirs = rival.acquire(first)
            with contextlib.suppress(HfError):
                peer.release(held)
            stays(lambda: waiting.running, 1.5)
            theirs.end()
            waiting.result().end()


def test_killed_holder_lets_a_long_waiter_in(url):
    with hf.Store(url) as store, Peer(url) as peer:
        peer.acquire("job")
        waiter = Background(store.acquire, "job", FOREVER)
        stays(lambda: waiter.running, 2.5)
        peer.kill9()
        assert waiter.result().state is State.HELD


def test_killed_holder_leaves_no_record(url):
    with hf.Store(url) as store:
        with Peer(url) as peer:
            peer.acquire("job")
            assert [view.pid for view in store.locks() if view.label == "job"] == [peer.pid]
            peer.kill9()
        assert [view for view in store.locks() if view.label == "job"] == []


def test_many_processes_open_a_fresh_folder_at_once(url):
    script = f"""
store = hf.Store({url!r})
for _ in range(20):
    lock = store.acquire("job", -1)
    lock.token
    lock.end()
store.close()
"""
    crowd = [Background(in_subprocess, script) for _ in range(6)]
    for one in crowd:
        done = one.result(40)
        assert done.returncode == 0, done.stderr


def test_deadlock_of_any_order_waits_is_found(url):
    with Peer(url) as one, Peer(url) as two:
        one.begin("acquire", 1, thread="a").result()
        two.begin("acquire", 2, thread="a").result()
        first = one.begin("acquire", 2, FOREVER, flags=ANY_ORDER, thread="a")
        second = two.begin("acquire", 1, FOREVER, flags=ANY_ORDER, thread="a")
        told = eventually(lambda: [p for p in (first, second) if not p.running], 20)[0]
        with pytest.raises(HfError) as raised:
            told.result()
        assert raised.value.status is Status.DEADLOCK
        assert raised.value.hint
        (one if told is first else two).release(1)
        (second if told is first else first).result()


def test_deadlock_between_threads_of_a_process_is_found(url):
    with hf.Store(url) as store:
        both_hold = threading.Barrier(2)
        deadlocks = []

        def take(first, second):
            with store.acquire(first):
                both_hold.wait(20)
                try:
                    store.acquire(second, FOREVER, flags=ANY_ORDER).end()
                except HfError as error:
                    deadlocks.append(error.status)

        takers = [Background(take, 1, 2), Background(take, 2, 1)]
        for taker in takers:
            taker.result(20)
        assert deadlocks == [Status.DEADLOCK]


def test_wait_without_a_cycle_is_no_deadlock(url):
    with hf.Store(url) as store, Peer(url) as peer:
        held = peer.acquire(1)
        store.acquire(2)
        assert store.refusal(1, 3000, flags=ANY_ORDER).status is Status.NOT_ACQUIRED
        peer.release(held)


def test_exclusive_waiter_is_not_starved_by_a_stream_of_shared_holders(url):
    done = threading.Event()

    with hf.Store(url) as store, hf.Store(url) as other, Peer(url) as peer:
        overlap = threading.Semaphore(0)

        def read(opened):
            while not done.is_set():
                with opened.acquire("job", FOREVER, mode=SHARED):
                    overlap.release()
                    done.wait(0.02)

        readers = [Background(read, opened) for opened in (store, store, other, other)]
        for _ in readers:
            assert overlap.acquire(timeout=20)
        try:
            peer.release(peer.acquire("job", FOREVER, timeout=20))
        finally:
            done.set()
            for reader in readers:
                reader.result()


def test_held_locks_do_not_slow_into_refusal(url):
    """Many held at once stay correct whichever file they fall into."""
    with hf.Store(url, max_keys=20000) as store, Peer(url) as peer:
        store.acquire([f"row {number}" for number in range(5000)])
        for number in range(0, 5000, 611):
            assert peer.refusal(f"row {number}").status is Status.NOT_ACQUIRED
        peer.acquire("another")


def test_store_opens_few_descriptors(url):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    with hf.Store(url) as store:
        store.acquire([f"row {number}" for number in range(2000)]).end()
        assert descriptors() - before < resource.getrlimit(resource.RLIMIT_NOFILE)[0] / 2
    eventually(lambda: descriptors() <= before, what="closing gives all descriptors back")


def test_descriptors_are_not_inherited(url):
    with hf.Store(url) as store:
        store.acquire("job")
        child = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True,
                               close_fds=False)
        assert "state" not in child.stdout


def test_relative_and_empty_folders_are_refused_or_resolved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = hf.open_error("local:")
    assert error.status in (Status.INVALID, Status.CONFIG)
    with hf.Store("local:state") as store, hf.Store(f"local:{tmp_path / 'state'}") as same:
        store.acquire("job")
        assert same.refusal("job").status is Status.NOT_ACQUIRED

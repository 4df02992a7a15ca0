"""Shared tables: one id per table, whoever registers it; the lock on it; references and their end."""

import fcntl
import json
import os
import subprocess
import threading
import time

import pytest

import hf
import hf_registry
import hf_table
import hf_tx
from awaiting import Background, eventually
from cli import program
from hf import Derivation, HfError, State, Status
from hf_table import drop, find, lock, ref, refs, register, registry_sql, tables, unref

EVENTS = "app.events"


def refusal(call, *arguments, **options):
    with pytest.raises(HfError) as caught:
        call(*arguments, **options)
    return caught.value


# --- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, parts", [
    ("events", ("", "default", "events")),
    ("app.events", ("", "app", "events")),
    ("main/app.events", ("main", "app", "events")),
    ("main/events", ("main", "default", "events")),
    ("größe.ereignisse-ü", ("", "größe", "ereignisse-ü")),
    ("a b.c d", ("", "a b", "c d")),
    ("x" * 200 + "." + "y" * 200, ("", "x" * 200, "y" * 200))])
def test_a_name_is_read_in_one_way(text, parts):
    assert hf_table.parse(text) == parts
    assert hf_table.parse(hf_table.text_of(parts)) == parts


@pytest.mark.parametrize("text, fault", [
    ("a'b", "a quote"), ('a"b', "a quote"), ("a`b", "a backtick"), ("a\\b", "a backslash"),
    ("a.b.c", "a dot"), ("a/b/c", "a slash"), ("a\nb", "a control character"), ("a\x7fb", "a control character"),
    ("a\u0085b", "a control character"), ("a\u2028b", "a control character"),
    (b"a\xffb", "no UTF-8"), (" a", "a space"), ("a ", "a space"),
    ("", "is empty"), (".t", "is empty"), ("d.", "is empty"), ("/d.t", "is empty"), ("c/", "is empty"),
    ("x" * 300, "300 bytes"), ("d" * 201 + ".t", "201 bytes"), ("é" * 101, "202 bytes")])
def test_a_bad_name_is_refused_with_what_is_wrong(text, fault):
    error = refusal(hf_table.parse, text)
    assert error.status is Status.INVALID
    assert fault in error.message
    assert error.hint
    assert all(character.isprintable() for character in error.message)


@pytest.mark.parametrize("parts", [(None, None, None), (None, None, ""), (None, "a.b", "t"), ("a/b", None, "t"),
                                   (None, None, "a.b"), (None, "d`", "t"), (None, None, "x" * 300)])
def test_parts_are_checked_too(recorded, parts):
    with recorded.open() as store:
        for call in register, find, lock, drop:
            assert refusal(call, store, parts).status is Status.INVALID


# --- registering ------------------------------------------------------------------------------------


def test_the_same_table_has_the_same_id(store, other):
    number, created = register(store, EVENTS)
    assert created and number > 0
    assert register(store, EVENTS) == (number, False)
    assert register(other, EVENTS) == (number, False)
    assert find(other, EVENTS) == number
    assert find(other, "app.other") == 0


def test_cluster_and_database_tell_tables_apart(store):
    names = ["t", "a.t", "b.t", "x/a.t", "y/a.t"]
    assert len({register(store, name)[0] for name in names}) == 5
    assert register(store, "default.t") == (find(store, "t"), False)


def test_an_id_is_a_snowflake_of_now(store, recorded):
    number, _ = register(store, EVENTS)
    assert number >> 63 == 0
    clock = (recorded.database.value("select extract(epoch from clock_timestamp())") if recorded.database
             else subprocess.run(["date", "+%s"], capture_output=True, check=True).stdout)
    assert abs((number >> 22) / 1000 - float(clock)) < 60
    assert 1 <= number >> 12 & 1023


def test_ids_of_one_process_grow(store):
    ids = [register(store, f"app.t{i}")[0] for i in range(50)]
    assert ids == sorted(set(ids))


def test_two_stores_mint_under_two_machine_numbers(store, other):
    machines = {register(one, name)[0] >> 12 & 1023 for one, name in ((store, "a"), (other, "b"))}
    assert len(machines) == 2


def test_the_machine_number_can_be_configured(recorded):
    with recorded.open(machine=777) as store:
        assert register(store, EVENTS)[0] >> 12 & 1023 == 777
    assert registry_sql(recorded, "select count(*) from @machines where until_ms > 0") == [(0,)]


@pytest.mark.parametrize("machine", [-1, 1024])
def test_a_machine_number_beyond_ten_bits_is_refused(recorded, machine):
    with pytest.raises(HfError) as caught:
        recorded.open(machine=machine)
    assert caught.value.status is Status.INVALID


def numbers(kind, first, last):
    """A query of these numbers as n, for either store."""
    if kind.database:
        return f"(select generate_series({first}::bigint, {last}) as n) s"
    return (f"(with recursive s (n) as (values ({first}) union all select n + 1 from s where n < {last})"
            " select n from s) s")


def lease_all(kind, until_ms, but=0, but_until_ms=0):
    registry_sql(kind, "delete from @machines")
    registry_sql(kind, "insert into @machines (machine, until_ms, holder) select n, case when n ="
                 f" {but} then {but_until_ms} else {until_ms} end, 'test' from {numbers(kind, 1, 1023)}")


def test_a_leased_number_that_is_given_again_starts_after_its_last_time(recorded, store):
    """The only number that comes free is in use for a moment longer: nothing is minted for that time."""
    now = register(store, "a")[0] >> 22
    with recorded.open() as late:
        lease_all(recorded, now + 3_600_000, but=5, but_until_ms=now + 700)
        number, _ = register(late, "b")
    assert number >> 12 & 1023 == 5
    assert number >> 22 > now + 700


def test_when_all_machine_numbers_are_leased_it_says_so(recorded, store):
    now = register(store, "a")[0] >> 22
    lease_all(recorded, now + 3_600_000)
    with recorded.open() as late:
        error = refusal(register, late, "b")
        assert error.status is Status.QUOTA
        assert "HOLDFAST_MACHINE" in error.hint
    with recorded.open(machine=9) as configured:
        assert register(configured, "b")[0] >> 12 & 1023 == 9


def test_an_id_that_is_taken_is_minted_again(recorded, store):
    """Whatever clocks and leases do, the constraint has the last word: the first id of every other moment is taken."""
    register(store, "first")
    created = ("created_ms", "1") if recorded.local else ("created_at", "now()")
    now = int(time.time() * 1000)
    registry_sql(recorded, f"insert into @table_registry (advisory_id, cluster, database, table_name, {created[0]})"
                 f" select n * 4194304 + 5 * 4096, 'taken', 'x', 't' || n, {created[1]}"
                 f" from {numbers(recorded, now, now + 30_000)} where n * 7919 % 101 < 50")
    with recorded.open(machine=5) as configured:
        made = [register(configured, f"app.events_{i}") for i in range(40)]
    assert all(was_created for _, was_created in made)
    assert all(number >> 12 & 1023 == 5 for number, _ in made)
    assert not any(number & 4095 == 0 and (number >> 22) * 7919 % 101 < 50 for number, _ in made)


def waiting_for(path):
    """How many wait for the file's flock, by the kernel's own list."""
    inode = f":{os.stat(path).st_ino} "
    with open("/proc/locks", encoding="ascii") as locks:
        return sum("-> FLOCK" in line and inode in line for line in locks)


def test_fifty_processes_register_one_new_table_at_once(recorded, holdfast, tmp_path):
    """All start, wait for one lock on a file, and register when it is opened: one id, one row."""
    gate = tmp_path / "gate"
    command = ["flock", "--shared", str(gate), program(), "table", "register", "--json", "app.crowd"]
    with open(gate, "w", encoding="ascii") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env=holdfast.at(recorded.url).environment(None)) for _ in range(50)]
        eventually(lambda: waiting_for(gate) == 50)
    answers = [process.communicate(timeout=30) for process in processes]
    assert [process.returncode for process in processes] == [0] * 50, [err for _, err in answers if err][:3]
    found = [json.loads(out) for out, _ in answers]
    assert len({answer["id"] for answer in found}) == 1
    assert sum(answer["created"] for answer in found) == 1
    assert registry_sql(recorded, "select count(*), count(distinct advisory_id) from @table_registry") == [(1, 1)]


def test_many_threads_register_many_tables(store):
    found = {}

    def work(number):
        for table in range(10):
            found.setdefault(table, set()).add(register(store, f"app.t{table}")[0])

    threads = [Background(work, number) for number in range(8)]
    for thread in threads:
        thread.result()
    assert all(len(ids) == 1 for ids in found.values())
    assert len(set().union(*found.values())) == 10


# --- the lock ---------------------------------------------------------------------------------------


def test_the_lock_is_on_the_id_and_shows_the_name(store, other):
    with lock(store, EVENTS) as held:
        assert held.key == find(store, EVENTS)
        error = refusal(lock, other, EVENTS)
        assert error.status is Status.NOT_ACQUIRED
        assert "app.events" in error.message
        eventually(lambda: [v for v in other.locks() if v.key == held.key and v.label == "app.events"])
    lock(other, EVENTS).free()


def test_different_tables_do_not_wait_for_each_other(store, other):
    with lock(store, "app.a"), lock(other, "app.b"):
        pass


def test_a_shared_lock_lets_others_share(store, other):
    with lock(store, EVENTS, mode=hf.SHARED), lock(other, EVENTS, mode=hf.SHARED):
        assert refusal(lock, other, EVENTS).status is Status.NOT_ACQUIRED


def test_spellings_of_one_table_are_one_lock(store, other):
    register(store, "default.t")
    with other.acquire(("t", Derivation.MINTED)) as held:
        assert held.key == find(store, "t")
        assert refusal(lock, store, "default.t").status is Status.NOT_ACQUIRED
    with store.acquire(("default.t", Derivation.MINTED)):
        pass


def test_a_minted_target_is_the_tables_lock(store, other):
    number, _ = register(store, "main/app.events")
    with other.acquire(("main/app.events", Derivation.MINTED)) as held:
        assert held.key == number
        assert refusal(lock, store, "main/app.events").status is Status.NOT_ACQUIRED


def test_a_minted_target_that_is_not_registered_says_how_to(store):
    error = store.refusal((EVENTS, Derivation.MINTED))
    assert error.status is Status.INVALID
    assert "holdfast table register app.events" in error.hint


def test_a_set_may_have_minted_targets(store, other):
    register(store, "a")
    register(store, "b")
    with store.acquire([("a", Derivation.MINTED), ("b", Derivation.MINTED), "plain"]):
        for name in "a", "b":
            assert refusal(lock, other, name).status is Status.NOT_ACQUIRED
        assert other.refusal("plain").status is Status.NOT_ACQUIRED


def test_a_minted_target_is_no_label_of_a_transaction(store):
    register(store, EVENTS)
    error = refusal(hf_tx.transact, store, (EVENTS, Derivation.MINTED), lambda tx: None)
    assert error.status is Status.INVALID
    assert "session" in error.message


def test_a_registry_file_can_say_that_labels_are_minted(recorded, tmp_path):
    path = hf_registry.write(tmp_path, ["name: shared, key: { pattern: '{db}.{table}', as: minted }, order: 7"])
    with hf_registry.registry(path) as read, recorded.open(registry=read) as store:
        number, _ = register(store, EVENTS)
        with store.acquire(EVENTS) as held:
            assert held.key == number
        with lock(store, EVENTS) as held:
            assert held.key == number
            view = eventually(lambda: [v for v in store.locks() if v.key == number])[0]
            assert view.name == "shared"


def test_a_kept_id_is_not_used_after_a_drop_and_recreate_elsewhere(store, other):
    """store knows the old id; the new one is what it locks."""
    with lock(store, EVENTS) as held:
        old = held.key
    drop(other, EVENTS)
    new, created = register(other, EVENTS)
    assert created and new != old
    with lock(store, EVENTS) as held:
        assert held.key == new
        assert refusal(lock, other, EVENTS).status is Status.NOT_ACQUIRED
    drop(other, EVENTS)
    newest, _ = register(other, EVENTS)
    with store.acquire((EVENTS, Derivation.MINTED)) as held:
        assert held.key == newest


@pytest.mark.parametrize("anew", [True, False])
def test_a_waiter_for_an_id_that_is_retired_meanwhile_gets_the_new_one(recorded, store, other, anew):
    """It waits for the old id while whoever holds that retires the table, and maybe makes it anew."""
    holder = lock(store, EVENTS)
    assert find(other, EVENTS) == holder.key
    told = threading.Event()
    waiter = Background(lock, other, EVENTS, wait_ms=20_000, on_wait=lambda why: told.set())
    assert told.wait(10)
    dropped, created = ("dropped_ms = 1", ", 1") if recorded.local else ("dropped_at = now()", ", now()")
    registry_sql(recorded, f"update @table_registry set {dropped}")
    if anew:
        columns = "advisory_id, cluster, database, table_name, created_" + ("ms" if recorded.local else "at")
        registry_sql(recorded, f"insert into @table_registry ({columns}) values (4711, '', 'app', 'events'{created})")
    old = holder.key
    holder.end()
    with waiter.result() as held:
        assert held.key == find(store, EVENTS) != old
        assert held.key == 4711 or not anew


def test_the_id_stays_as_long_as_the_lock_is_held(store, other):
    ref(store, EVENTS, "c1")
    with lock(store, EVENTS) as held:
        assert refusal(drop, other, EVENTS, force=True).status is Status.NOT_ACQUIRED
        assert refusal(unref, other, EVENTS, "c1", wait_ms=50).status is Status.NOT_ACQUIRED
        assert find(other, EVENTS) == held.key
        assert refs(other, EVENTS) == ["c1"]
    assert unref(other, EVENTS, "c1")


def test_nobody_ever_holds_the_name_twice(recorded):
    """Four workers lock, and one drops and registers again, all the time: at most one is in the table."""
    inside, failures, done = [], [], threading.Event()

    def work():
        with recorded.open() as store:
            for _ in range(25):
                with lock(store, EVENTS, wait_ms=30_000) as held:
                    inside.append(held.key)
                    if len(inside) > 1 or find(store, EVENTS) != held.key:
                        failures.append(list(inside))
                    inside.remove(held.key)

    def churn():
        with recorded.open() as store:
            while not done.is_set():
                try:
                    drop(store, EVENTS, wait_ms=30_000)
                except HfError as error:
                    assert error.status is Status.INVALID  # not registered at the moment

    churning = Background(churn)
    workers = [Background(work) for _ in range(4)]
    for worker in workers:
        worker.result(60)
    done.set()
    churning.result(60)
    assert not failures
    retired = registry_sql(recorded, "select count(*) from @table_registry")[0][0]
    assert retired > 1, "nothing was dropped: the test is void"


def test_a_lost_lock_retires_nothing(own_pg):
    """The session that holds the table's lock is the one that retires: ended, it cannot."""
    database = own_pg.create_database()
    with hf.Store(database.url()) as store:
        store.init()
        register(store, EVENTS)
        with lock(store, EVENTS, flags=hf.PRIVATE) as held:
            pid = database.holders(held.key)[0]
            own_pg.terminate(pid)
            eventually(lambda: held.state is State.LOST)
        assert find(store, EVENTS)


# --- references -------------------------------------------------------------------------------------


def test_the_last_reference_retires_the_id(store, other):
    first = ref(store, EVENTS, "c1")
    assert ref(other, EVENTS, "c2") == first
    assert ref(other, EVENTS, "c2") == first  # again changes nothing
    assert refs(store, EVENTS) == ["c1", "c2"]
    assert tables(store) == [("app.events", first, False, 2)]
    assert unref(store, EVENTS, "c1") is False
    assert find(other, EVENTS) == first
    assert unref(other, EVENTS, "c2") is True
    assert find(store, EVENTS) == 0
    second = ref(store, EVENTS, "c3")
    assert second != first
    assert tables(store, retired_too=True) == [("app.events", first, True, 0), ("app.events", second, False, 1)]
    assert tables(store, EVENTS) == [("app.events", second, False, 1)]


def test_giving_up_one_of_several_needs_no_lock(store, other):
    ref(store, EVENTS, "c1")
    ref(store, EVENTS, "c2")
    with lock(store, EVENTS):
        assert unref(other, EVENTS, "c1") is False


def test_two_that_give_up_at_once_retire_it_once(recorded):
    with recorded.open() as a, recorded.open() as b:
        for round_ in range(10):
            name = f"app.t{round_}"
            ref(a, name, "c1")
            ref(a, name, "c2")
            pair = [Background(unref, a, name, "c1", wait_ms=20_000), Background(unref, b, name, "c2", wait_ms=20_000)]
            assert sorted(one.result() for one in pair) == [False, True]
            assert find(a, name) == 0


def test_a_reference_that_is_not_there_cannot_be_given_up(store):
    assert refusal(unref, store, EVENTS, "c1").status is Status.INVALID
    ref(store, EVENTS, "c1")
    error = refusal(unref, store, EVENTS, "c2")
    assert error.status is Status.INVALID
    assert "c2" in error.message
    assert refs(store, EVENTS) == ["c1"]


@pytest.mark.parametrize("context", ["", "a\nb", "x" * 1001, b"\xff"])
def test_a_bad_context_is_refused(store, context):
    assert refusal(ref, store, EVENTS, context).status is Status.INVALID
    assert find(store, EVENTS) == 0


def test_a_table_with_references_is_dropped_only_by_force(store):
    ref(store, EVENTS, "c1")
    error = refusal(drop, store, EVENTS)
    assert error.status is Status.INVALID
    assert "1 reference" in error.message
    drop(store, EVENTS, force=True)
    assert find(store, EVENTS) == 0
    assert refs(store, EVENTS) == []


def test_what_is_not_registered_cannot_be_dropped(store):
    assert refusal(drop, store, EVENTS).status is Status.INVALID


def test_a_retired_id_is_never_given_again(recorded, store):
    ids = []
    for _ in range(5):
        ids.append(register(store, EVENTS)[0])
        drop(store, EVENTS)
    assert len(set(ids)) == 5
    assert registry_sql(recorded, "select count(*) from @table_registry") == [(5,)]


# --- stores without the schema ----------------------------------------------------------------------


def test_without_the_schema_it_says_what_to_run(db):
    with hf.Store(db.url()) as store:
        for call in (lambda: register(store, EVENTS), lambda: lock(store, EVENTS), lambda: tables(store),
                     lambda: ref(store, EVENTS, "c"), lambda: drop(store, EVENTS), lambda: find(store, EVENTS),
                     lambda: store.acquire((EVENTS, Derivation.MINTED))):
            error = refusal(call)
            assert error.status is Status.NO_SCHEMA
            assert "holdfast init" in error.hint


def test_another_role_may_use_it_once_granted(db):
    hf.install(db.url())
    db.sql("create role guest_" + db.name + " login")
    url = db.url(user="guest_" + db.name)
    with hf.Store(url) as guest:
        error = refusal(register, guest, EVENTS)
        assert error.status is Status.NO_SCHEMA
        assert "grant_use" in error.hint
    db.sql(f"select holdfast.grant_use('guest_{db.name}')")
    with hf.Store(url) as guest:
        ref(guest, EVENTS, "c")
        lock(guest, EVENTS).free()
        assert unref(guest, EVENTS, "c")
    db.sql(f"drop owned by guest_{db.name}; drop role guest_{db.name}")


# --- the command ------------------------------------------------------------------------------------


@pytest.fixture
def table(holdfast, recorded):
    at = holdfast.at(recorded.url)
    return lambda *words, **options: at("table", *words, **options)


def test_the_command_registers_and_prints_the_id(table, store):
    first = table("register", "app.events")
    assert (first.code, first.err) == (0, "")
    assert int(first.out) == find(store, EVENTS)
    again = json.loads(table("register", "--json", "app.events").out)
    assert again == {"table": "app.events", "id": int(first.out), "id_text": first.out.strip(), "created": False}


def test_the_command_shows_and_lists(table, store):
    number = ref(store, "main/app.events", "c1")
    ref(store, "main/app.events", "c2")
    listed = json.loads(table("list", "--json").out)["tables"]
    assert [(one["table"], one["id"], one["references"], one["retired"]) for one in listed] == [
        ("main/app.events", number, 2, None)]
    with lock(store, "main/app.events"):
        shown = json.loads(table("show", "--json", "main/app.events").out)
        assert shown["contexts"] == ["c1", "c2"]
        assert shown["holder"]["pid"] == os.getpid()
    assert json.loads(table("show", "--json", "main/app.events").out)["holder"] is None
    assert str(number) in table("list").out
    assert "c2" in table("show", "main/app.events").out


def test_the_command_gives_up_references(table, store):
    assert table("ref", "app.events", "c1").code == 0
    assert json.loads(table("ref", "--json", "app.events", "c2").out)["context"] == "c2"
    assert json.loads(table("unref", "--json", "app.events", "c1").out)["retired"] is False
    with lock(store, EVENTS):
        assert table("unref", "-n", "app.events", "c2").code == 75
        assert table("drop", "--force", "-w", "50ms", "app.events").code == 75
    assert "retired" in table("unref", "app.events", "c2").err
    assert table("show", "app.events").code == 64
    assert json.loads(table("list", "--all", "--json").out)["tables"][0]["retired"]


def test_run_holds_a_tables_lock(holdfast, recorded, store, tmp_path):
    at = holdfast.at(recorded.url)
    number, _ = register(store, EVENTS)
    shared = hf_registry.write(tmp_path, ["name: shared, key: { pattern: '{db}.{table}', as: minted }"])
    for options in ["--as", "minted"], ["--registry", shared]:
        with at.hold("app.events", *options) as holder:
            error = refusal(lock, store, EVENTS)
            assert error.status is Status.NOT_ACQUIRED
            assert str(number) in error.hint
            holder.end()
    assert at("run", "--as", "minted", "app.nope", "--", "true").code == 64
    told = at("key", "--registry", shared, "app.events")
    assert told.code == 64
    assert "holdfast table show" in told.err


@pytest.mark.parametrize("words, text", [
    ([], "missing"), (["what"], "unknown"), (["register"], "operands"), (["register", "a", "b"], "operands"),
    (["ref", "a"], "operands"), (["register", 'a"b'], "a quote"), (["register", "x" * 300], "300 bytes"),
    (["register", "a.b.c"], "a dot"), (["register", b"a\xff"], "UTF-8"), (["adopt", "x"], "operands")])
def test_bad_usage_is_exit_64(holdfast, words, text):
    done = holdfast("table", *words)
    assert done.code == 64
    assert text in done.err


@pytest.mark.parametrize("machine", ["0", "1024", "x", ""])
def test_a_bad_machine_number_is_bad_configuration(holdfast, machine):
    done = holdfast("table", "register", "a", env={"HOLDFAST_MACHINE": machine})
    assert done.code == 78
    assert "HOLDFAST_MACHINE" in done.err


def test_the_machine_number_comes_from_the_environment(holdfast):
    done = holdfast("table", "register", "a", env={"HOLDFAST_MACHINE": "5"})
    assert int(done.out) >> 12 & 1023 == 5


def test_a_registration_whose_commit_is_in_doubt_is_looked_for(own_pg):
    database = own_pg.create_database()
    hf.install(database.url())
    with hf.Store(database.url()) as store:
        register(store, "app.first")  # connected
        own_pg.await_standbys("nobody")
        call = Background(register, store, EVENTS)
        cancel = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'"
        eventually(lambda: own_pg.sql(cancel))
        number, _created = call.result()
        assert find(store, EVENTS) == number
        own_pg.await_standbys("")

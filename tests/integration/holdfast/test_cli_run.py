"""`holdfast run`: exit codes, signals, loss, schedules, and what the command inherits."""

import json
import os
import signal
import socket
import sys
import time

import pytest

import hf
import servers
from awaiting import Background, eventually, stays
from cli import (EXIT_CONFIG, EXIT_DATA, EXIT_LIMIT, EXIT_LOST, EXIT_NOT_ACQUIRED, EXIT_NOT_EXECUTABLE,
                 EXIT_NOT_FOUND, EXIT_UNREACHABLE, EXIT_USAGE)
from stores import new_kind

LOOP = "while :; do sleep 0.02; done"


@pytest.fixture(params=["local", "pg15", "pg18"])
def run(request, holdfast, tmp_path):
    """The command on each store; PostgreSQL 18 with the schema."""
    with new_kind(request, tmp_path, request.param, schema=request.param == "pg18") as kind:
        command = holdfast.at(kind.url)
        command.database, command.records = kind.database, kind.records
        yield command
        holdfast.end_all()


@pytest.fixture
def on_pg(holdfast, db):
    command = holdfast.at(db.url())
    command.database = db
    yield command
    holdfast.end_all()


# --- the main job -----------------------------------------------------------------------------------


def test_command_runs_under_the_lock_and_its_code_is_ours(run):
    assert run("run", "job", "--", "true").code == 0
    assert run("run", "job", "true").code == 0
    assert run("run", "job", "--", "sh", "-c", "exit 42").code == 42
    done = run("run", "job", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.out, done.err) == ("out\n", "err\n")


def test_second_taker_is_refused_and_told_who_holds(run):
    holder = run.hold("nightly")
    refused = run("run", "-n", "nightly", "--", "true")
    assert refused.code == EXIT_NOT_ACQUIRED
    assert refused.out == ""
    assert refused.err.startswith("error: not acquired: 'nightly' is held by sh (holdfast run)")
    holder.signal(signal.SIGTERM)
    holder.wait()
    assert run("run", "-n", "nightly", "--", "true").code == 0


def test_refusal_names_host_pid_and_age_where_they_are_on_record(run):
    holder = run.hold("nightly")
    refused = run("run", "-n", "nightly", "--", "true")
    if run.records:
        assert f"on {socket.gethostname()} (pid {holder.pid}) since " in refused.err


def test_refused_command_does_not_run(run, tmp_path):
    run.hold("job")
    trace = tmp_path / "trace"
    assert run("run", "-n", "job", "--", "touch", trace).code == EXIT_NOT_ACQUIRED
    assert run("run", "-w", "200ms", "job", "--", "touch", trace).code == EXIT_NOT_ACQUIRED
    assert not trace.exists()


def test_conflict_code_can_be_chosen(run):
    run.hold("job")
    assert run("run", "-n", "-E", "3", "job", "--", "true").code == 3
    assert run("run", "-w", "100ms", "-E", "0", "job", "--", "false").code == 0


def test_waits_by_default_and_says_for_whom(run):
    holder = run.hold("job")
    waiter = run.start("run", "job", "--", "echo", "in")
    line = waiter.await_line("waiting", "err")
    assert "'job'" in line and "holdfast run" in line
    stays(lambda: waiter.process.poll() is None, 0.3)
    holder.signal(signal.SIGTERM)
    assert waiter.wait_all().out == "in"


def test_timed_wait_that_succeeds(run):
    holder = run.hold("job")
    waiter = run.start("run", "-w", "30s", "job", "--", "echo", "in")
    waiter.await_line("waiting", "err")
    holder.signal(signal.SIGTERM)
    assert waiter.wait_all().code == 0


def test_shared_holders_share(run):
    run.hold("job", "-s")
    assert run("run", "-n", "-s", "job", "--", "true").code == 0
    assert run("run", "-n", "job", "--", "true").code == EXIT_NOT_ACQUIRED


def test_slots(run):
    run.hold("job", "--slots", "2")
    run.hold("job", "--slots", "2")
    assert run("run", "-n", "--slots", "2", "job", "--", "true").code == EXIT_NOT_ACQUIRED
    differing = run("run", "-n", "--slots", "3", "job", "--", "true")
    assert differing.code == EXIT_CONFIG
    assert "slots" in differing.err


def test_fixed_key_and_derivation_choose_the_key(run):
    script = 'echo "$HOLDFAST_LABEL $HOLDFAST_KEY"'
    assert run("run", "--key", "-7", "job", "--", "sh", "-c", script).out == "job -7\n"
    assert run("run", "--as", "fnv1a64", "wallet-backend-ingest-testnet", "--", "sh", "-c", script).out \
        == "wallet-backend-ingest-testnet -8622139916493065622\n"
    assert run("run", "a", "--", "sh", "-c", script).out == "a -3848465438864589366\n"


def test_fixed_key_excludes_whoever_derives_it(run):
    run.hold("job", "--key", "-8622139916493065622")
    taken = run("run", "-n", "--as", "fnv1a64", "wallet-backend-ingest-testnet", "--", "true")
    assert taken.code in (EXIT_NOT_ACQUIRED, EXIT_CONFIG)  # on record, it is a collision of labels


# --- what the command gets ----------------------------------------------------------------------------


def test_command_knows_label_key_and_token(run):
    script = 'echo "$HOLDFAST_LABEL|$HOLDFAST_KEY|${HOLDFAST_TOKEN-none}"'
    tokens = []
    for _ in range(2):
        label, key, token = run("run", "Zürich", "--", "sh", "-c", script).out.strip().split("|")
        assert (label, int(key)) == ("Zürich", hf.derive("Zürich"))
        tokens.append(token)
    if not run.records:
        assert tokens == ["none", "none"]
    else:
        assert 0 < int(tokens[0]) < int(tokens[1])


def test_outer_token_is_not_passed_on(on_pg):
    done = on_pg("run", "job", "--", "sh", "-c", "echo ${HOLDFAST_TOKEN-none}", env={"HOLDFAST_TOKEN": "9"})
    assert done.out == "none\n"


def test_command_inherits_no_descriptor_of_ours(run):
    done = run("run", "job", "--", "sh", "-c", "ls /proc/$$/fd")
    assert done.out.split() == ["0", "1", "2"]


def test_command_keeps_descriptors_that_the_caller_gave(run, tmp_path):
    with open(tmp_path / "given", "w") as given:
        os.set_inheritable(given.fileno(), True)
        started = run.start("run", "job", "--", sys.executable, "-c",
                            f"import os; os.write({given.fileno()}, b'hello')", pass_fds=[given.fileno()])
        assert started.wait_all().code == 0
    assert (tmp_path / "given").read_text() == "hello"


def test_command_has_the_signals_as_we_found_them(run):
    done = run("run", "job", "--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    masks = dict(line.split(":\t") for line in done.out.splitlines())
    assert int(masks["SigBlk"], 16) == 0
    forwarded = sum(1 << (number - 1) for number in (
        signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2))
    assert int(masks["SigIgn"], 16) & forwarded == 0


def test_command_leads_a_process_group_of_its_own(run):
    holder = run.hold("job")
    child, = [pid for pid in holder.children() if os.getpgid(pid) == pid]
    assert os.getpgid(child) != os.getpgid(holder.pid)


def test_standard_input_reaches_the_command(run):
    assert run("run", "job", "--", "cat", input=b"hello").out == "hello"


# --- codes of a command that does not start or dies -----------------------------------------------------


def test_command_not_found_and_not_executable(run, tmp_path):
    missing = run("run", "job", "--", "no-such-command-here")
    assert missing.code == EXIT_NOT_FOUND
    assert "no-such-command-here" in missing.err
    (tmp_path / "data").write_text("no program")
    assert run("run", "job", "--", str(tmp_path / "data")).code == EXIT_NOT_EXECUTABLE
    assert run("run", "job", "--", str(tmp_path)).code == EXIT_NOT_EXECUTABLE
    assert run("run", "-n", "job", "--", "true").code == 0


def test_command_killed_by_a_signal(run):
    assert run("run", "job", "--", "sh", "-c", "kill -KILL $$").code == 128 + signal.SIGKILL
    assert run("run", "job", "--", "sh", "-c", "kill -TERM $$").code == 128 + signal.SIGTERM
    assert run("run", "-n", "job", "--", "true").code == 0


# --- signals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_signals_reach_the_whole_group(run, name):
    holder = run.start("run", "job", "--", sys.executable, hf.PROGRAMS / "group.py", name)
    holder.await_line("held")
    holder.signal(getattr(signal, name))
    done = holder.wait_all()
    assert done.code == 7
    assert done.out.splitlines() == ["held", f"inner {name}", f"outer {name}"]


def test_signal_that_the_command_survives_keeps_the_lock(run):
    holder = run.hold("job", script=f"trap 'echo again' USR1; trap 'exit 0' TERM; echo held; {LOOP}")
    holder.signal(signal.SIGUSR1)
    holder.await_line("again")
    assert run("run", "-n", "job", "--", "true").code == EXIT_NOT_ACQUIRED
    holder.signal(signal.SIGTERM)
    assert holder.wait() == 0


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_signal_ends_a_wait(run, name, tmp_path):
    holder = run.hold("job")
    waiter = run.start("run", "job", "--", "touch", str(tmp_path / "trace"))
    waiter.await_line("waiting", "err")
    waiter.signal(getattr(signal, f"SIG{name}"))
    code = waiter.wait()
    assert code == -getattr(signal, f"SIG{name}") or code == 128 + getattr(signal, f"SIG{name}")
    holder.signal(signal.SIGTERM)
    holder.wait()
    assert run("run", "-n", "job", "--", "true").code == 0
    assert not (tmp_path / "trace").exists()


def test_command_ends_with_a_holdfast_that_is_killed(run):
    holder = run.hold("job")
    child, = holder.children()
    holder.kill9()
    eventually(lambda: not servers.is_alive(child))
    assert run("run", "-w", "10s", "job", "--", "true").code == 0


# --- limits -------------------------------------------------------------------------------------------


def test_run_limit_ends_the_whole_group(run):
    limited = run.start("run", "-t", "2s", "job", "--", "sh", "-c",
                        "sleep 600 & echo $!; echo $$; wait")
    pids = [int(limited.await_line("")) for _ in range(2)]
    assert limited.wait_all().code == EXIT_LIMIT
    assert not any(map(servers.is_alive, pids))
    assert run("run", "-n", "job", "--", "true").code == 0


def test_command_that_ignores_term_is_killed_after_the_grace(run):
    stubborn = run.start("run", "-t", "2s", "-k", "300ms", "job", "--", "sh", "-c",
                         f"trap '' TERM; echo $$; {LOOP}")
    pid = int(stubborn.await_line(""))
    assert stubborn.wait() == EXIT_LIMIT
    assert not servers.is_alive(pid)


def test_limit_does_not_count_the_wait(run):
    holder = run.hold("job")
    waiter = run.start("run", "-t", "2s", "job", "--", "echo", "in")
    waiter.await_line("waiting", "err")
    stays(lambda: waiter.process.poll() is None, 2.5)
    holder.signal(signal.SIGTERM)
    assert waiter.wait_all().code == 0


# --- loss ---------------------------------------------------------------------------------------------


def lose(command, label="job"):
    backends = command.database.holders(hf.derive(label))
    assert backends
    for pid in backends:
        command.database.server.terminate(pid)


def test_lost_lock_ends_the_whole_group(on_pg):
    holder = on_pg.start("run", "-k", "10m", "--ping", "10m", "job", "--", "sh", "-c",
                         "sleep 600 & echo $!; echo $$; wait")
    pids = [int(holder.await_line("")) for _ in range(2)]
    lose(on_pg)
    done = holder.wait_all()
    assert done.code == EXIT_LOST
    assert "lost" in done.err and "'job'" in done.err
    assert not any(map(servers.is_alive, pids))


def test_lost_lock_kills_what_ignores_term(on_pg):
    holder = on_pg.start("run", "-k", "300ms", "job", "--", "sh", "-c",
                         f"trap '' TERM; (trap '' TERM; {LOOP}) & echo $!; echo $$; {LOOP}")
    pids = [int(holder.await_line("")) for _ in range(2)]
    lose(on_pg)
    assert holder.wait() == EXIT_LOST
    assert not any(map(servers.is_alive, pids))


def test_lost_lock_lets_the_command_clean_up(on_pg):
    holder = on_pg.hold("job", script=f"trap 'echo cleaned; exit 0' TERM; echo held; {LOOP}")
    lose(on_pg)
    done = holder.wait_all()
    assert done.code == EXIT_LOST
    assert "cleaned" in done.out


def test_lost_lock_ends_a_stopped_command(on_pg):
    holder = on_pg.hold("job", "-k", "300ms")
    child, = holder.children()
    os.kill(child, signal.SIGSTOP)
    lose(on_pg)
    assert holder.wait() == EXIT_LOST
    assert not servers.is_alive(child)


def test_silent_server_is_a_loss(on_pg):
    with servers.Proxy(on_pg.database.server.port) as proxy:
        through = on_pg.at(on_pg.database.url(port=proxy.port))
        holder = through.hold("job", "--ping", "200ms", "--ping-deadline", "1500ms")
        proxy.blackhole()
        assert holder.wait(12) == EXIT_LOST  # with the times it has by itself it would be 15
        proxy.heal()


def test_silent_server_does_not_keep_run_when_the_command_has_ended(holdfast, own_pg, own_db):
    """Told after a second, and it ends soon after: to connect anew, for the records, would take 10 s."""
    with hf.Store(own_db.url()) as store:
        store.init()
    holder = holdfast.at(own_db.url()).hold("job", "--ping", "200ms", "--ping-deadline", "1s")
    with own_pg.frozen():
        began = time.monotonic()
        assert holder.wait(60) == EXIT_LOST
        assert time.monotonic() - began < 8


def test_crash_of_the_server_is_a_loss(holdfast, own_pg, own_db):
    holder = holdfast.at(own_db.url()).hold("job")
    child, = holder.children()
    own_pg.kill9()
    assert holder.wait() == EXIT_LOST
    assert not servers.is_alive(child)


# --- service managers ---------------------------------------------------------------------------------


def test_service_manager_is_told_of_waiting_holding_and_stopping(run, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind(path)
        inbox.settimeout(20)
        holder = run.hold("job")
        waiter = run.start("run", "job", "--", "true", env={"NOTIFY_SOCKET": path})
        first = inbox.recv(4096).decode()
        assert first.startswith("STATUS=waiting") and "'job'" in first
        assert "READY=1" not in first
        holder.signal(signal.SIGTERM)
        assert "READY=1" in inbox.recv(4096).decode().splitlines()
        assert waiter.wait() == 0
        assert "STOPPING=1" in inbox.recv(4096).decode().splitlines()


def test_missing_service_manager_is_no_obstacle(run):
    assert run("run", "job", "--", "true", env={"NOTIFY_SOCKET": "/no/such/socket"}).code == 0


# --- schedules ----------------------------------------------------------------------------------------


@pytest.fixture
def scheduled(recorded, holdfast):
    yield holdfast.at(recorded.url)
    holdfast.end_all()


def test_at_most_one_run_per_period_over_all(scheduled, tmp_path):
    trace = tmp_path / "trace"
    command = ("run", "--every", "1h", "report", "--", "sh", "-c", f"echo x >> {trace}")
    crowd = [Background(scheduled, *command) for _ in range(5)]
    assert [one.result().code for one in crowd] == [0] * 5
    assert trace.read_text() == "x\n"
    skipped = scheduled(*command)
    assert skipped.code == 0
    assert "skipped" in skipped.err and "'report'" in skipped.err
    assert trace.read_text() == "x\n"


def test_start_that_no_standby_has_is_still_due(holdfast, own_pg, own_db, tmp_path):
    """First without a start on record, then with one that is long ago."""
    hf.install(own_db.url())
    trace = tmp_path / "trace"
    scheduled = holdfast.at(own_db.url())
    command = ("run", "--every", "1h", "--ping-deadline", "1s", "report", "--", "sh", "-c", f"echo x >> {trace}")

    for runs in (1, 2):
        own_pg.await_standbys("nobody")
        refused = scheduled(*command)
        assert refused.code == EXIT_UNREACHABLE and "still due" in refused.err, refused
        own_pg.await_standbys("")
        assert scheduled(*command).code == 0
        assert trace.read_text() == "x\n" * runs
        assert "not due" in scheduled(*command).err
        own_db.sql("update holdfast.schedules set last_start = last_start - interval '2 hours'")


def test_next_period_runs_again(scheduled, tmp_path):
    trace = tmp_path / "trace"
    command = ("run", "--every", "400ms", "report", "--", "sh", "-c", f"echo x >> {trace}")

    def twice():
        assert scheduled(*command).code == 0
        return trace.read_text().count("x") >= 2

    eventually(twice)


def test_schedule_skips_while_another_runs(scheduled):
    scheduled.hold("report", "--every", "1ms")
    skipped = scheduled("run", "--every", "1ms", "report", "--", "false")
    assert skipped.code == 0
    assert "skipped" in skipped.err and "is held by" in skipped.err


def test_skipping_can_have_a_code(scheduled):
    assert scheduled("run", "--every", "1h", "report", "--", "true").code == 0
    assert scheduled("run", "--every", "1h", "-E", "5", "report", "--", "true").code == 5


def test_failed_run_counts_as_a_run(scheduled):
    assert scheduled("run", "--every", "1h", "report", "--", "false").code == 1
    assert "skipped" in scheduled("run", "--every", "1h", "report", "--", "true").err


def test_lock_is_kept_at_least_so_long(scheduled):
    began = time.monotonic()
    holder = scheduled.start("run", "--every", "1ms", "--at-least", "4s", "report", "--", "echo", "done")
    holder.await_line("done")
    assert scheduled("run", "-n", "report", "--", "true").code == EXIT_NOT_ACQUIRED
    assert holder.wait() == 0
    assert time.monotonic() - began >= 4
    assert scheduled("run", "-n", "report", "--", "true").code == 0


def test_schedule_without_the_schema_says_what_to_do(on_pg):
    refused = on_pg("run", "--every", "1h", "report", "--", "true")
    assert refused.code == EXIT_CONFIG
    assert "holdfast init" in refused.err


# --- bad input ----------------------------------------------------------------------------------------

BAD_INPUT = [
    (["run"], EXIT_USAGE),
    (["run", "job"], EXIT_USAGE),
    (["run", "job", "--"], EXIT_USAGE),
    (["run", "", "--", "true"], EXIT_USAGE),
    (["run", "x" * 65537, "--", "true"], EXIT_USAGE),
    (["run", "night\nly", "--", "true"], EXIT_USAGE),
    (["run", "--as", "md4", "job", "--", "true"], EXIT_USAGE),
    (["run", "--key", "9223372036854775808", "job", "--", "true"], EXIT_USAGE),
    (["run", "--key", "12x", "job", "--", "true"], EXIT_USAGE),
    (["run", "-w", "-1", "job", "--", "true"], EXIT_USAGE),
    (["run", "-w", "eternity", "job", "--", "true"], EXIT_USAGE),
    (["run", "-w", "1e99", "job", "--", "true"], EXIT_USAGE),
    (["run", "-w", "99999999999h", "job", "--", "true"], EXIT_USAGE),
    (["run", "-w", "", "job", "--", "true"], EXIT_USAGE),
    (["run", "-w", "nan", "job", "--", "true"], EXIT_USAGE),
    (["run", "-t", "0x10", "job", "--", "true"], EXIT_USAGE),
    (["run", "--slots", "0", "job", "--", "true"], EXIT_USAGE),
    (["run", "--slots", "4096", "job", "--", "true"], EXIT_USAGE),
    (["run", "-E", "256", "job", "--", "true"], EXIT_USAGE),
    (["run", "-n", "-w", "1", "job", "--", "true"], EXIT_USAGE),
    (["run", "-s", "--slots", "2", "job", "--", "true"], EXIT_USAGE),
    (["run", "--at-least", "1s", "job", "--", "true"], EXIT_USAGE),
    (["run", "--no-such-option", "job", "--", "true"], EXIT_USAGE),
    (["no-such-command"], EXIT_USAGE),
    ([], EXIT_USAGE),
]


@pytest.mark.parametrize("arguments, code", BAD_INPUT, ids=[" ".join(a)[:40] for a, _ in BAD_INPUT])
def test_bad_input_is_one_error_with_a_hint(holdfast, arguments, code):
    done = holdfast(*arguments)
    assert done.code in (code, EXIT_DATA if arguments[1:2] and len(arguments[1]) > 8 else code)
    assert done.out == ""
    lines = done.err.splitlines()
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    assert len(done.err) < 1500
    assert all(c.isprintable() or c == "\n" for c in done.err)
    assert not holdfast.state_home.exists() or not list(holdfast.state_home.rglob("*.lock"))


def test_label_with_control_characters_is_shown_escaped(holdfast):
    assert "night\\nly" in holdfast("run", "night\nly", "--", "true").err


@pytest.mark.parametrize("text", ["1.5", "250ms", "1s", "1m", "1h"])
def test_durations_as_people_write_them(holdfast, text):
    assert holdfast("run", "-w", text, "job", "--", "true").code == 0


def test_unreachable_store(holdfast):
    done = holdfast("run", "--url", f"postgresql://app:hush-hush@127.0.0.1:{servers.free_port()}/x",
                    "job", "--", "true")
    assert done.code == EXIT_UNREACHABLE
    assert "hint: " in done.err
    assert "hush-hush" not in done.err


def test_wrong_password(holdfast, pg):
    done = holdfast("run", "--url", pg.url(user="guarded", host="127.0.0.1", password="hush-hush"),
                    "job", "--", "true")
    assert done.code in (EXIT_UNREACHABLE, EXIT_CONFIG)
    assert "guarded" in done.err and "hint: " in done.err
    assert "hush-hush" not in done.err


@pytest.mark.parametrize("variable", ["HOLDFAST_URL", "DATABASE_URL", "PGHOST"])
def test_nothing_falls_back_to_the_local_store(holdfast, variable):
    value = "127.0.0.1" if variable == "PGHOST" else f"postgresql://127.0.0.1:{servers.free_port()}/x"
    done = holdfast("run", "job", "--", "true", env={variable: value, "PGPORT": str(servers.free_port())})
    assert done.code == EXIT_UNREACHABLE
    assert not holdfast.state_home.exists()


def test_empty_url_is_an_error(holdfast):
    assert holdfast("run", "job", "--", "true", env={"HOLDFAST_URL": ""}).code == EXIT_CONFIG
    assert not holdfast.state_home.exists()


def test_url_wins_over_the_environment(holdfast, db, tmp_path):
    done = holdfast("run", "--url", f"local:{tmp_path / 'other'}", "job", "--", "true",
                    env={"HOLDFAST_URL": "postgresql://127.0.0.1:1/x"})
    assert done.code == 0
    assert (tmp_path / "other").is_dir()


def test_default_store_is_local(holdfast):
    assert holdfast("run", "job", "--", "true").code == 0
    assert (holdfast.state_home / "holdfast").is_dir()


def test_state_folder_that_cannot_be_written(holdfast, unprivileged):
    done = holdfast("run", "job", "--", "true", prefix=unprivileged,
                    env={"XDG_STATE_HOME": "/proc/no-such-place"})
    assert done.code in (EXIT_CONFIG, 125)
    assert "error: " in done.err and "hint: " in done.err


def test_errors_as_json(run):
    run.hold("job")
    done = run("run", "--json", "-n", "job", "--", "true")
    assert done.code == EXIT_NOT_ACQUIRED
    error = json.loads(done.err)["error"]
    assert error["status"] == "HF_NOT_ACQUIRED"
    assert "'job'" in error["message"]


@pytest.mark.parametrize("label", ["with space", "quote'd", 'double"quoted', "back\\slash", "Zürich",
                                   "emoji:🔒", "%s%n", "-dash", "$(id)", "a" * 65536, b"\xff\xfe"])
def test_labels_with_odd_characters(run, label):
    arguments = ["--", label] if str(label).startswith("-") else [label]
    done = run("run", *arguments, "--", "sh", "-c", "printf %s \"$HOLDFAST_LABEL\" | wc -c")
    assert done.code == 0, done
    assert int(done.out) == len(label if isinstance(label, bytes) else label.encode())


def test_pooler_is_refused_unless_its_mode_is_stated(holdfast, db15, session_pooler):
    pooled = holdfast.at(session_pooler.url(db15.name))
    refused = pooled("run", "job", "--", "true")
    assert refused.code == EXIT_CONFIG
    assert "hint: " in refused.err and "session" in refused.err
    assert pooled("run", "--session-pool", "job", "--", "true").code == 0


def test_help_and_version(holdfast):
    assert holdfast("--version").out.strip().endswith("0.1.0")
    for command in ("run", "key", "locks", "doctor", "init"):
        shown = holdfast(command, "--help")
        assert shown.code == 0
        assert "--url" in shown.out and shown.err == ""
        assert holdfast(command, "--version").code == 0
        assert command in holdfast("--help").out

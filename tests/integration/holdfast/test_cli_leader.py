"""`holdfast run --reacquire` and `--leader`: after a loss the lock is acquired again, and one leads at a time."""

import os
import signal
import socket
import time

import pytest

import hf
import servers
from awaiting import eventually
from cli import EXIT_LOST, EXIT_NOT_ACQUIRED, EXIT_UNREACHABLE, EXIT_USAGE

JOB = 'echo "in $HOLDFAST_TOKEN"; exec sleep 600'


@pytest.fixture(name="run")
def run_fixture(holdfast, db):
    hf.install(db.url())
    command = holdfast.at(db.url())
    command.database = db
    yield command
    holdfast.end_all()


def lose(run, label="job"):
    """Ends the session that holds the lock."""
    pid, = eventually(lambda: run.database.holders(hf.derive(label)))
    run.database.server.terminate(pid)


def slow_to_end(tmp_path):
    """A command that ends once there is a file `taken`."""
    return f'trap "until [ -e {tmp_path}/taken ]; do sleep 0.02; done; exit" TERM; echo in 1; while :; do sleep 0.02; done'


def held_token(job):
    return int(job.await_line("in ").split()[1])


def test_a_lock_that_was_lost_is_acquired_again_with_a_new_token(run):
    job = run.start("run", "--reacquire", "job", "--", "sh", "-c", JOB)
    first = held_token(job)
    lose(run)
    job.await_line("lost", "err")
    assert held_token(job) > first
    job.signal(signal.SIGTERM)
    assert job.wait() == 128 + signal.SIGTERM


def test_the_command_has_ended_before_it_starts_again(run, tmp_path):
    """It takes its time to end: the second start comes after its last line."""
    script = f'trap "sleep 0.3; echo out >> {tmp_path}/log; exit" TERM; echo in >> {tmp_path}/log; echo in 1; while :; do sleep 0.02; done'
    job = run.start("run", "--reacquire", "job", "--", "sh", "-c", script)
    job.await_line("in ")
    lose(run)
    job.await_line("in ")
    assert (tmp_path / "log").read_text().split() == ["in", "out", "in"]


def test_a_command_that_ends_by_itself_is_not_started_again(run):
    assert run("run", "--reacquire", "job", "--", "sh", "-c", "exit 3").code == 3
    assert run("run", "--leader", "job", "--", "sh", "-c", "exit 4").code == 4


def test_without_the_option_a_loss_is_the_end(run):
    job = run.start("run", "job", "--", "sh", "-c", JOB)
    held_token(job)
    lose(run)
    assert job.wait() == EXIT_LOST


def test_who_does_not_wait_gives_up_when_another_was_faster(run, tmp_path):
    """The other gets the lock while the command still ends."""
    job = run.start("run", "-n", "--reacquire", "-k", "1m", "job", "--", "sh", "-c", slow_to_end(tmp_path))
    job.await_line("in ")
    waiter = run.start("run", "job", "--", "sh", "-c", JOB)
    waiter.await_line("waiting", "err")
    lose(run)
    held_token(waiter)
    (tmp_path / "taken").touch()
    assert job.wait() == EXIT_NOT_ACQUIRED


def test_a_signal_while_the_command_is_being_ended_is_not_forgotten(run):
    script = 'trap "echo ending; while :; do sleep 0.02; done" TERM; echo in 1; while :; do sleep 0.02; done'
    job = run.start("run", "--reacquire", "-k", "2s", "job", "--", "sh", "-c", script)
    job.await_line("in ")
    lose(run)
    job.await_line("ending")
    job.signal(signal.SIGTERM)
    assert job.wait() == EXIT_LOST


def test_a_signal_ends_it_while_it_stands_by_again(run, tmp_path):
    job = run.start("run", "--leader", "-k", "1m", "job", "--", "sh", "-c", slow_to_end(tmp_path))
    job.await_line("in ")
    other = run.start("run", "--leader", "job", "--", "sh", "-c", JOB)
    other.await_line("waiting", "err")
    lose(run)
    held_token(other)
    (tmp_path / "taken").touch()
    job.await_line("again", "err")
    job.await_line("waiting", "err")
    job.signal(signal.SIGTERM)
    assert job.wait() == -signal.SIGTERM


def test_one_leads_and_the_others_stand_by(run, tmp_path):
    """After a loss either may be faster; the tokens tell who came later, and the end of a leader lets another lead."""
    log = tmp_path / "log"
    script = f'echo "$HOLDFAST_TOKEN" >> {log}; {JOB}'
    crew = [run.start("run", "--leader", "job", "--", "sh", "-c", script) for _ in range(3)]

    def tokens():
        return [int(line) for line in log.read_text().split()] if log.exists() else []

    for led in range(1, 5):
        eventually(lambda led=led: len(tokens()) == led)
        lose(run)
    eventually(lambda: len(tokens()) == 5)
    for job in crew:
        job.signal(signal.SIGTERM)
        job.wait()
    assert tokens() == sorted(set(tokens()))


def test_another_leads_when_the_leader_is_killed(run):
    leader = run.start("run", "--leader", "job", "--", "sh", "-c", JOB)
    first = held_token(leader)
    other = run.start("run", "--leader", "job", "--", "sh", "-c", JOB)
    other.await_line("waiting", "err")
    leader.kill9()
    assert held_token(other) > first


def test_hooks_run_at_gain_and_after_loss(run, tmp_path):
    log = tmp_path / "log"
    job = run.start("run", "--leader", "--on-gain", f'echo "gain $HOLDFAST_LABEL" >> {log}', "--on-loss", f"echo loss >> {log}",
                    "job", "--", "sh", "-c", f'trap "echo end >> {log}; exit" TERM; echo job >> {log}; echo in 1; while :; do sleep 0.02; done')
    job.await_line("in ")
    lose(run)
    job.await_line("in ")
    assert log.read_text().splitlines() == ["gain job", "job", "end", "loss", "gain job", "job"]


def test_a_hook_that_fails_at_gain_keeps_the_command_from_running(run, tmp_path):
    done = run("run", "--leader", "--on-gain", "exit 5", "job", "--", "touch", tmp_path / "trace")
    assert done.code == 5 and "--on-gain" in done.err
    assert not (tmp_path / "trace").exists()
    assert run("run", "-n", "job", "--", "true").code == 0


def test_a_loss_ends_the_hook_too(run):
    job = run.start("run", "--on-gain", "echo in 1; exec sleep 600", "job", "--", "true")
    job.await_line("in ")
    lose(run)
    assert job.wait() == EXIT_LOST


def test_the_ready_file_is_there_while_the_lock_is_held_and_not_a_moment_longer(run, tmp_path):
    ready = tmp_path / "ready"
    ready.write_text("of a run that was killed")
    blocker = run.hold("job")
    script = f'trap "ls {ready} 2>&1; exit" TERM; echo in 1; while :; do sleep 0.02; done'
    job = run.start("run", "--leader", "--ready-file", ready, "job", "--", "sh", "-c", script)
    job.await_line("waiting", "err")
    assert not ready.exists()
    blocker.signal(signal.SIGTERM)
    job.await_line("in ")
    assert ready.read_text().split()[0] == "job"
    lose(run)
    job.await_line("No such file")
    job.await_line("in ")
    assert ready.exists()
    job.signal(signal.SIGTERM)
    job.wait()
    assert not ready.exists()


def test_a_ready_file_that_cannot_be_written_is_said_and_nothing_runs(run, tmp_path):
    done = run("run", "--ready-file", tmp_path / "no" / "file", "job", "--", "touch", tmp_path / "trace")
    assert done.code != 0 and "no/file" in done.err and not (tmp_path / "trace").exists()
    os.mkfifo(tmp_path / "fifo")
    assert run("run", "--ready-file", tmp_path / "fifo", "job", "--", "true").code != 0
    assert (tmp_path / "fifo").exists()
    assert run("run", "--ready-file=", "job", "--", "true").code == EXIT_USAGE
    os.symlink(tmp_path / "elsewhere", tmp_path / "link")
    run("run", "--ready-file", tmp_path / "link", "job", "--", "true")
    assert not (tmp_path / "elsewhere").exists()


def test_a_service_that_stands_by_is_ready(run, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(20)
        blocker = run.hold("job")
        run.start("run", "--leader", "job", "--", "sh", "-c", JOB, env={"NOTIFY_SOCKET": path})
        assert manager.recv(1024) == b"READY=1\nSTATUS=standing by for 'job'"
        assert b"waiting" in manager.recv(1024)
        blocker.signal(signal.SIGTERM)
        assert manager.recv(1024) == b"READY=1\nSTATUS=holding 'job'"
        lose(run)
        assert manager.recv(1024) == b"STATUS=standing by for 'job'"


@pytest.mark.parametrize("options", [["--leader", "-n"], ["--leader", "-w", "1s"], ["--leader", "--every", "1h"],
                                     ["--reacquire", "--every", "1h"]])
def test_options_that_exclude_each_other(run, options):
    assert run("run", *options, "job", "--", "true").code == EXIT_USAGE


def test_on_a_folder_too(holdfast, tmp_path):
    """Its lock is lost when somebody removes the file."""
    run = holdfast.at(f"local:{tmp_path}/store")
    job = run.start("run", "--reacquire", "--ping", "100ms", "job", "--", "sh", "-c", JOB)
    first = held_token(job)
    for file in (tmp_path / "store" / "locks").iterdir():
        file.unlink()
    assert held_token(job) > first
    holdfast.end_all()


# --- patience -----------------------------------------------------------------------------------------


def test_a_wait_outlasts_a_server_that_is_away_and_says_so_once(holdfast, own_pg):
    run = holdfast.at(own_pg.create_database().url())
    holder = run.hold("job")
    waiter = run.start("run", "job", "--", "sh", "-c", "echo in")
    waiter.await_line("waiting", "err")
    own_pg.stop()
    waiter.await_line("the wait goes on", "err")
    holder.wait()
    own_pg.start()
    waiter.await_line("in")
    done = waiter.wait_all()
    assert done.code == 0 and done.err.count("goes on") == 1 and done.err.count("answers again") == 1, done


def test_a_wait_ends_with_its_patience(holdfast, own_pg):
    run = holdfast.at(own_pg.create_database().url())
    run.hold("job")
    waiter = run.start("run", "--patience", "300ms", "job", "--", "true")
    waiter.await_line("waiting", "err")
    own_pg.stop()
    assert waiter.wait() == EXIT_UNREACHABLE
    own_pg.start()


def test_a_leader_stands_by_for_a_server_that_is_not_there_yet(holdfast, own_pg):
    run = holdfast.at(own_pg.create_database().url())
    own_pg.stop()
    assert run("run", "job", "--", "true").code == EXIT_UNREACHABLE
    patient = run.start("run", "--patience", "1m", "job", "--", "true")
    leader = run.start("run", "--leader", "job", "--", "true")
    for job in (patient, leader):
        job.await_line("waiting for it", "err")
    own_pg.start()
    assert (patient.wait(), leader.wait()) == (0, 0)


def test_a_server_that_refuses_is_not_waited_for(holdfast, db):
    refused = holdfast.at(db.url().replace(db.name, "nowhere"))("run", "--leader", "job", "--", "true")
    assert refused.code == EXIT_UNREACHABLE and "does not exist" in refused.err


def test_patience_ends_in_time_where_nothing_answers(holdfast, own_pg):
    """Connections are accepted and nothing comes."""
    with servers.Proxy(own_pg.port) as proxy:
        run = holdfast.at(own_pg.create_database().url(port=proxy.port))
        run.hold("job")
        waiter = run.start("run", "--ping", "500ms", "--ping-deadline", "500ms", "--patience", "2s", "job", "--", "true")
        waiter.await_line("waiting", "err")
        proxy.blackhole()
        waiter.await_line("the wait goes on", "err", timeout=60)
        began = time.monotonic()
        assert waiter.wait(timeout=30) == EXIT_UNREACHABLE
        assert time.monotonic() - began < 8
        began = time.monotonic()
        assert run("run", "-w", "1s", "--patience", "20s", "job", "--", "true").code == EXIT_UNREACHABLE
        assert time.monotonic() - began < 8
        proxy.heal()


def test_a_reader_of_standard_error_that_is_gone_does_not_end_a_leader(run, tmp_path):
    os.mkfifo(tmp_path / "err")
    reader = os.open(tmp_path / "err", os.O_RDONLY | os.O_NONBLOCK)
    run.start("run", "--leader", "job", "--", "sh", "-c", f"echo in >> {tmp_path}/log; exec sleep 600",
              prefix=("sh", "-c", 'exec 2> "$0"; exec "$@"', tmp_path / "err"))
    eventually((tmp_path / "log").exists)
    os.close(reader)
    lose(run)
    eventually(lambda: (tmp_path / "log").read_text().split() == ["in", "in"])

"""`holdfast yield`, `run --ask` and `run --on-yield`: a job ends its unit and hands the lock over."""

import signal

import pytest

import hf
from awaiting import eventually
from cli import EXIT_NOT_ACQUIRED, EXIT_USAGE
from stores import new_kind

JOB = 'echo "in $HOLDFAST_TOKEN"; exec sleep 600'
UNIT = 'trap "echo finished; exit 0" TERM; echo "in $HOLDFAST_TOKEN"; while :; do sleep 0.02; done'


@pytest.fixture(name="run", params=["local", "pg15", "pg18"])
def run_fixture(request, holdfast, tmp_path):
    with new_kind(request, tmp_path, request.param, schema=True) as kind:
        command = holdfast.at(kind.url)
        command.url = kind.url
        yield command
        holdfast.end_all()


def started(run, *words, job=JOB):
    process = run.start("run", *words, "--", "sh", "-c", job)
    process.await_line("in ")
    return process


def test_the_job_is_asked_by_a_signal_finishes_and_the_successor_runs(run):
    old = started(run, "--on-yield", "TERM", "job", job=UNIT)
    new = run.start("run", "--ask", "job", "--", "sh", "-c", JOB)
    new.await_line("in ")
    old.await_line("finished")
    old.await_line("'job' is wanted by sh (holdfast run)", "err")
    assert old.wait() == 0


def test_a_command_may_do_the_asking_and_knows_whom(run):
    old = started(run, "--on-yield", 'echo "for $HOLDFAST_LABEL"; kill -TERM $HOLDFAST_COMMAND_PID', "job", job=UNIT)
    assert run("yield", "job").code == 0
    old.await_line("for job")
    assert old.wait() == 0


def test_the_successor_goes_before_those_who_stand_by(run):
    old = started(run, "--on-yield", "TERM", "job", job=UNIT)
    standing = run.start("run", "job", "--", "sh", "-c", JOB)
    standing.await_line("waiting", "err")
    new = run.start("run", "--ask", "job", "--", "sh", "-c", JOB)
    new.await_line("in ")
    assert old.wait() == 0 and standing.process.poll() is None


def test_a_leader_that_has_yielded_stands_by_again(run):
    old = started(run, "--leader", "--ask", "--on-yield", "TERM", "job", job=UNIT)
    new = started(run, "--leader", "--ask", "--on-yield", "TERM", "job", job=UNIT)
    old.await_line("yielded; standing by", "err")
    new.signal(signal.SIGTERM)  # it finishes, and does not yield: that one leads again
    assert new.wait() == 0
    old.await_line("in ")


def test_yield_ends_when_the_holder_has_let_go_and_the_next_in_line_has_it(run):
    old = started(run, "--on-yield", "TERM", "job", job=UNIT)
    standing = run.start("run", "job", "--", "sh", "-c", JOB)
    standing.await_line("waiting", "err")
    asked = run("yield", "job")
    assert asked.code == 0 and "held by sh (holdfast run)" in asked.err
    assert old.wait() == 0
    standing.await_line("in ")


def test_a_holder_that_does_not_yield_is_named(run):
    started(run, "job")
    refused = run("yield", "-w", "2s", "job")
    assert refused.code == EXIT_NOT_ACQUIRED and "'job' is held by sh (holdfast run)" in refused.err


def test_nobody_has_to_be_asked_for_a_free_lock(run):
    asked = run("yield", "job")
    assert asked.code == 0 and "nobody holds 'job'" in asked.err


def test_leases_are_yielded_too(run):
    old = started(run, "--lease", "10s", "--on-yield", "TERM", "job", job=UNIT)
    new = started(run, "--lease", "10s", "--ask", "job")
    assert old.wait() == 0 and new.process.poll() is None


def test_an_ask_that_comes_while_a_hook_runs_is_passed_on_when_the_job_runs(run, tmp_path):
    old = run.start("run", "--on-gain", f"until [ -e {tmp_path}/go ]; do sleep 0.02; done", "--on-yield", "TERM",
                    "job", "--", "sh", "-c", UNIT)
    with hf.Store(run.url) as store:
        eventually(lambda: store.locks())
    asked = run.start("yield", "job")
    old.await_line("is wanted by", "err")
    (tmp_path / "go").touch()
    assert asked.wait() == 0
    assert old.wait() in (0, 128 + signal.SIGTERM)  # it may not have set its trap yet


@pytest.mark.parametrize("words", [
    ("run", "--ask", "-n", "job", "true"), ("run", "--ask", "--slots", "2", "job", "true"),
    ("run", "--on-yield", "", "job", "true"), ("run", "--on-yield", "term", "job", "true"),
    ("run", "--on-yield", "15", "job", "true"), ("run", "--on-yield", "SIGKILL", "job", "true"), ("run", "--on-yield", "TERM", "--slots", "2", "job", "true"),
    ("run", "--ask", "--every", "1h", "job", "true"),
    ("yield",), ("yield", "a", "b"), ("yield", "--key", "1", "--as", "md5", "a"), ("yield", "-w", "0s", "a"),
])
def test_misuse_is_told(holdfast, words):
    assert holdfast(*words).code == EXIT_USAGE

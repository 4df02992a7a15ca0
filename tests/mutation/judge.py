"""A pytest plugin that runs tests for one mutant after the other, on servers that it starts once.

Tests run in a child: it may hang, crash and leave things behind, and the next one finds all as it was before. The
task, the file in MUTATION_TASK, says what to do: to find out which mutants each test reaches, or to look for mutants.
"""

import contextlib
import json
import mmap
import os
import pathlib
import select
import shutil
import signal
import sys
import tempfile
import time

import pytest

import hf
import servers

TASK = json.loads(pathlib.Path(os.environ["MUTATION_TASK"]).read_text())
reports = []


@pytest.fixture(scope="session", autouse=True)
def started_servers(request):
    for name in ("template15", "template18", "pg15", "pg18", "session_pooler", "transaction_pooler"):
        request.getfixturevalue(name)
    request.getfixturevalue("tmp_path_factory").getbasetemp()


def pytest_runtest_logreport(report):
    reports.append(report)


def pytest_collection_modifyitems(items):
    """A cluster takes too long to mend, and what is slow too long at all."""
    items[:] = [item for item in items if "patroni" not in item.fixturenames and not item.get_closest_marker("slow")]


class Children:
    """Runs tests in one child at a time."""

    def __init__(self, session):
        self.items = {item.nodeid: item for item in session.items}
        self.reached = pathlib.Path(TASK["reached"])
        self.reached.write_bytes(bytes(65536))
        # Only a test sets up the fixtures of a session; one with few others of its own.
        plain = min(session.items, key=lambda item: len(item.fixturenames))
        session._setupstate.setup(plain)
        session._setupstate.teardown_exact(self.elsewhere(plain))
        self.shared = [server for server in servers.running if isinstance(server, servers.Postgres) and server.process]
        servers.FOLDERS = tempfile.mkdtemp(prefix="hf-mutants-", dir="/tmp")
        os.chmod(servers.FOLDERS, 0o755)

    def elsewhere(self, item):
        """The next test: what the session has stays, and all else of this one goes."""
        return next(other for other in self.items.values() if other.fspath != item.fspath)

    def run(self, mutant, tests, limits=None, record=False):
        """Gives what each test came to, in order; the first that fails is the last. It may have no end."""
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            self._be_child(mutant, tests, limits or {}, record, theirs)
        os.close(theirs)
        text, until = b"", time.monotonic() + sum((limits or {}).get(test, 120) for test in tests) + 30
        while time.monotonic() < until:
            if select.select([ours], [], [], 0.1)[0]:
                piece = os.read(ours, 65536)
                text += piece
                if not piece:
                    break
            elif os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ours)
        self._clean()
        return [json.loads(line) for line in text.splitlines()]

    def _be_child(self, mutant, tests, limits, record, pipe):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpgid(0, 0)
        os.environ["MUTANT"] = str(mutant)
        if record:
            os.environ["MUTANT_REACHED"] = str(self.reached)
        hf.lib().hf_mutant_choose()
        with open(self.reached, "r+b") as file:
            reached = mmap.mmap(file.fileno(), 65536)
        try:
            for at, test in enumerate(tests):
                item = self.items[test]
                item.add_marker(pytest.mark.timeout(limits.get(test, 120)))
                following = self.items[tests[at + 1]] if at + 1 < len(tests) else self.elsewhere(item)
                reached[:] = bytes(65536)
                reports.clear()
                began = time.monotonic()
                os.write(pipe, json.dumps({"test": test, "ended": False}).encode() + b"\n")
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                os.write(pipe, json.dumps({
                    "test": test, "ended": True, "seconds": time.monotonic() - began,
                    "passed": not any(report.failed for report in reports),
                    "skipped": any(report.skipped for report in reports),
                    "reached": [n for n, byte in enumerate(reached[:]) if byte] if record else [],
                    "why": next((str(report.longreprtext) for report in reports if report.failed), "")[-2000:],
                }).encode() + b"\n")
                if any(report.failed for report in reports) and not record:
                    break
        finally:
            os._exit(0)

    def _clean(self):
        """What the child may have left on the servers that all share."""
        for server in self.shared:
            server.sql("select pg_terminate_backend(pid) from pg_stat_activity"
                       " where backend_type = 'client backend' and pid <> pg_backend_pid()")
            for (name,) in server.sql("select datname from pg_database where datname ~ '^t[0-9]'"):
                server.sql(f"drop database {name} with (force)")
        for folder in pathlib.Path(servers.FOLDERS).iterdir():
            shutil.rmtree(folder, ignore_errors=True)


def mapped(children):
    """Which mutants each test reaches, and how long it takes. A few of one file share a child."""
    files = {}
    for test in [test for test in TASK["tests"] if test in children.items]:
        files.setdefault(test.partition("::")[0], []).append(test)
    for tests in files.values():
        while tests:
            some = tests[:20]
            ended = [entry for entry in children.run(0, some, record=True) if entry["ended"]]
            if len(ended) < len(some):
                ended.append({"test": tests[len(ended)], "passed": False, "why": "its process ended or hung"})
            for entry in ended:
                yield entry | {"print": TASK["tests"][entry["test"]]}
            tests = tests[len(ended):]


def judged(children):
    """
    For each mutant the test that finds it, or none. A failure counts only if the same test passes without the
    mutant, right after and on the same servers.
    """
    distrusted = {}
    for mutant, key, tests in TASK["mutants"]:
        began, found = time.monotonic(), None
        tests = [test for test in tests if test in children.items]
        while tests and not found:
            entries = children.run(mutant, tests, TASK["limits"])
            last = entries[-1] if entries else {"test": tests[0], "ended": False}
            if last["ended"] and last["passed"]:
                break
            control = children.run(0, [last["test"]])
            if control and control[-1]["ended"] and control[-1]["passed"]:
                found = last["test"]
            else:
                distrusted[last["test"]] = last.get("why", "")
                tests = tests[tests.index(last["test"]) + 1:]
        yield {"key": key, "found": found, "seconds": time.monotonic() - began, "distrusted": list(distrusted)}


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # not without taking the servers down
    children = Children(session)
    try:
        with open(TASK["results"], "a", encoding="utf-8") as results:
            for entry in (judged if "mutants" in TASK else mapped)(children):
                print(json.dumps(entry), file=results, flush=True)
    finally:
        shutil.rmtree(servers.FOLDERS, ignore_errors=True)
    return True

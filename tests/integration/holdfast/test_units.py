"""The units that are installed for systemd: valid, hardened, and each starts and does its job."""

import json
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

import hf
from awaiting import eventually
from ledgers import Network, chain, ledger, write
from stores import new_kind
from units import Manager, Unit

TOKEN = "0123456789abcdef0123456789abcdef"
UNITS = {"holdfast-serve.service": "", "holdfast-ingest@.service": "testnet", "holdfast-run@.service": "planner"}
MOST_EXPOSED = 2.0


@pytest.fixture(name="kind", params=["local", "pg18"])
def made_kind(request, tmp_path):
    with new_kind(request, tmp_path, request.param, schema=True) as kind:
        yield kind


@pytest.fixture(name="unit")
def made_units(kind, tmp_path):
    def make(name):
        made = Unit(name, tmp_path, UNITS[name])
        (made.etc / "url").write_text(f"{kind.url}\n")
        (made.etc / "url").chmod(0o600)
        return made
    return make


@pytest.fixture(name="manager")
def made_manager(tmp_path):
    made = Manager(tmp_path)
    yield made
    made.close()


@pytest.fixture(name="start")
def starter(unprivileged):
    """Without the rights that the units give away, and ended with the test."""
    started = []

    def start(unit, **how):
        started.append(unit.start(prefix=unprivileged, **how))
        return started[-1]

    yield start
    for one in started:
        one.end()


def analyze(*words):
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True)


def test_every_unit_of_contrib_is_installed_and_tested():
    there = {path.name.removesuffix(".in") for path in (hf.ROOT / "contrib/systemd").glob("*.in")}
    plan = json.loads(subprocess.run(["/usr/bin/meson", "introspect", "--installed", hf.BUILD], check=True,
                                     capture_output=True, text=True).stdout)
    installed = {path.rpartition("/")[2] for path in plan.values() if "/lib/systemd/system/" in path}
    assert there == set(UNITS) == installed


@pytest.mark.parametrize("name", UNITS)
def test_the_command_is_named_where_it_is_installed(name):
    options = json.loads(subprocess.run(["/usr/bin/meson", "introspect", "--buildoptions", hf.BUILD], check=True,
                                        capture_output=True, text=True).stdout)
    values = {option["name"]: option["value"] for option in options}
    text = (hf.BUILD / "contrib" / name).read_text()
    assert f"\nExecStart={values['prefix']}/{values['bindir']}/holdfast " in text


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_unit(name, tmp_path):
    done = analyze("verify", "--man=no", Unit(name, tmp_path, UNITS[name]).path)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_is_hardened(name, tmp_path):
    done = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}",
                   Unit(name, tmp_path, UNITS[name]).path)
    assert done.returncode == 0 and "Overall exposure level" in done.stdout, done.stdout[-300:]


def get(url, token=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_serve_shows_locks_to_who_has_the_token_with_and_without_a_registry(unit, start, manager, kind):
    serve = unit("holdfast-serve.service")
    (serve.etc / "token").write_text(f"{TOKEN}\n")
    serve.path.write_text(serve.path.read_text().replace(
        "Environment=OPTIONS=", 'Environment="OPTIONS=--listen 127.0.0.1:0 --refresh 100ms"'))  # as a drop-in would

    for registry in (None, "version: 1\nlocks:\n  - { name: night-watch, key: { pattern: nightly } }\n"):
        if registry:
            (serve.etc / "locks.yaml").write_text(registry)
        server = start(serve, notify=manager)
        url = manager.await_ready().split()[-1].rstrip("/")
        with kind.open() as store, store.acquire("nightly"):
            eventually(lambda: '"nightly"' in get(f"{url}/api/v1/locks", TOKEN)[1], what="the lock is shown")
            assert ("night-watch" in get(f"{url}/api/v1/locks", TOKEN)[1]) == bool(registry)
        assert get(f"{url}/api/v1/locks")[0] == 401
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


def test_an_ingester_that_stands_by_takes_over(unit, start, kind, tmp_path):
    source, network = write(tmp_path / "ledgers.ndjson", chain(1, 3)), Network(kind)
    ingest = unit("holdfast-ingest@.service")
    (ingest.etc / "ingest-testnet.env").write_text(f"SOURCE={source}\nOPTIONS=--follow --partition-ledgers 1000\n")
    first = start(ingest)
    eventually(lambda: network.exists() and network.latest == 3, what="the first ledgers")
    second = start(ingest)
    second.await_line("held by", stream="err")
    first.kill9()
    write(source, [ledger(4)], "a")
    eventually(lambda: network.latest == 4, what="a ledger of the second")
    second.signal(signal.SIGTERM)
    assert second.wait() == 0


def test_a_job_runs_once_and_the_one_that_stands_by_takes_over(unit, start, manager, kind):
    job = unit("holdfast-run@.service")
    script = job.folder / "planner"
    script.write_text('#!/bin/sh\necho "$1 under $HOLDFAST_LABEL"\nexec sleep 600\n')
    script.chmod(0o755)
    (job.etc / "run-planner.env").write_text(f"COMMAND={script} 'plans fast'\n")
    first = start(job, notify=manager)
    assert "standing by" in manager.await_ready()
    first.await_line("plans fast under planner")
    second = start(job, notify=manager)
    manager.await_ready()
    second.await_line("held by", stream="err")
    assert not second.out
    first.kill9()
    second.await_line("plans fast under planner")
    second.signal(signal.SIGTERM)
    assert second.wait() == 128 + signal.SIGTERM

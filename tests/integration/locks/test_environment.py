"""A store that is found as the command finds it: by variables, and by what is in the folder."""

import json
import subprocess

import pytest

import hf
from hf import HfError, Status, Store

VARIABLES = ("HOLDFAST_URL", "HOLDFAST_URL_FILE", "DATABASE_URL", "HOLDFAST_REGISTRY", "HOLDFAST_MACHINE", "HOLDFAST_SESSION_POOL",
             "PGSERVICE", "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE",
             "PGSERVICEFILE", "XDG_STATE_HOME")
REGISTRY = """\
version: 1
locks:
  - name: nightly
    key: { fixed: 4711 }
    purpose: one at a time
"""


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def opened(**options):
    return Store(environment=True, **options)


def refusal(**options):
    with pytest.raises(HfError) as refused:
        opened(**options)
    return refused.value


def commands_choice():
    done = subprocess.run([hf.built("src/holdfast"), "doctor", "--json"], capture_output=True, text=True)
    return next(json.loads(line)["store"] for line in done.stdout.splitlines() if '"store"' in line)


def test_without_a_variable_it_is_the_users_folder(tmp_path):
    with opened() as store:
        assert store.name == f"local:{tmp_path}/.local/state/holdfast"
        assert store.name == commands_choice()


@pytest.mark.parametrize("names", [("HOLDFAST_URL", "DATABASE_URL"), ("DATABASE_URL", "PGHOST")])
def test_the_first_variable_wins(monkeypatch, tmp_path, names):
    monkeypatch.setenv(names[0], f"local:{tmp_path}/first")
    monkeypatch.setenv(names[1], "postgresql://nobody@127.0.0.1:1/none")
    with opened() as store:
        assert store.name == f"local:{tmp_path}/first"


def test_a_file_may_have_the_url(monkeypatch, tmp_path):
    (tmp_path / "url").write_text(f"local:{tmp_path}/filed\nof no concern\n")
    monkeypatch.setenv("HOLDFAST_URL_FILE", str(tmp_path / "url"))
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    with opened() as store:
        assert store.name == f"local:{tmp_path}/filed" == commands_choice()
    monkeypatch.setenv("HOLDFAST_URL", f"local:{tmp_path}/plain")
    with opened() as store:
        assert store.name == f"local:{tmp_path}/plain"


@pytest.mark.parametrize("content, reason", [(None, "No such file"), ("", "HOLDFAST_URL_FILE is empty"),
                                             ("\nlocal:/nowhere\n", "HOLDFAST_URL_FILE is empty"),
                                             ("x" * 70000, "too large")])
def test_a_file_without_a_url_is_no_choice(monkeypatch, tmp_path, content, reason):
    if content is not None:
        (tmp_path / "url").write_text(content)
    monkeypatch.setenv("HOLDFAST_URL_FILE", str(tmp_path / "url"))
    monkeypatch.setenv("DATABASE_URL", f"local:{tmp_path}/other")
    error = refusal()
    assert error.status is Status.CONFIG and reason in error.message


def test_what_is_given_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_URL", "postgresql://nobody@127.0.0.1:1/none")
    with opened(url=f"local:{tmp_path}/given") as store:
        assert store.name == f"local:{tmp_path}/given"


def test_an_empty_variable_is_no_choice(monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", "")
    error = refusal()
    assert error.status is Status.CONFIG and "HOLDFAST_URL is empty" in error.message


def test_a_failure_names_the_variable(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody:secret@127.0.0.1:1/none")
    error = refusal()
    assert error.status is Status.UNREACHABLE
    assert "(the store is from DATABASE_URL)" in error.message and "secret" not in error.message


def test_a_variable_that_is_no_url_is_the_environments_fault(monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", "postgresql://h/db?nonsense=1")
    assert refusal().status is Status.CONFIG


def test_nothing_is_read_unasked(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_URL", f"local:{tmp_path}/s")
    with pytest.raises(HfError) as refused:
        Store()
    assert refused.value.status is Status.INVALID


# --- the registry ---------------------------------------------------------------------------------------


def test_its_registry_is_found_above_and_used(monkeypatch, tmp_path):
    (tmp_path / "locks.yaml").write_text(REGISTRY)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    with opened() as store, store.acquire("nightly") as lock:
        assert lock.key == 4711


def test_an_empty_variable_does_without_a_registry(monkeypatch, tmp_path):
    (tmp_path / "locks.yaml").write_text(REGISTRY)
    monkeypatch.setenv("HOLDFAST_REGISTRY", "")
    with opened() as store, store.acquire("nightly") as lock:
        assert lock.key == hf.derive("nightly")


def test_a_registry_that_everybody_may_write_is_refused(tmp_path):
    path = tmp_path / "locks.yaml"
    path.write_text(REGISTRY)
    path.chmod(0o666)
    error = refusal()
    assert error.status is Status.CONFIG and "everybody may write to it" in error.message


@pytest.mark.parametrize("number", ["0", "1024", "x"])
def test_a_wrong_machine_is_refused(monkeypatch, number):
    monkeypatch.setenv("HOLDFAST_MACHINE", number)
    error = refusal()
    assert error.status is Status.CONFIG and "HOLDFAST_MACHINE" in error.message

"""run, tx and key with a registry: names, patterns and what is refused."""

import json
import os

import pytest

import hf
import hf_registry
from cli import EXIT_CONFIG, EXIT_NOT_ACQUIRED, EXIT_USAGE
from hf import Derivation

LOCKS = [
    "name: cleanup, key: { fixed: 42424242 }, lifetime: session",
    "name: booking-create, key: { pattern: '{tenant}:{date}', as: fnv1a32-js },"
    " placeholders: { date: '\\d{4}-\\d{2}-\\d{2}' }, lifetime: transaction",
    "name: only, key: { pattern: 'Only:one', as: fnv1a64 }",
    "name: classed, key: { class: 7, pattern: 'job:{id}', as: hashtext }",
]
BOOKING = "7:2026-01-15"
BOOKING_KEY = hf.derive(BOOKING, Derivation.FNV1A32_JS)
SHOW = ["--", "sh", "-c", 'echo "$HOLDFAST_LABEL" "$HOLDFAST_KEY"']


@pytest.fixture
def registry(tmp_path):
    return hf_registry.write(tmp_path, LOCKS)


@pytest.fixture
def named(holdfast, registry):
    """holdfast --registry …"""
    return lambda command, *args, **how: holdfast(command, "--registry", registry, *args, **how)


# --- run ----------------------------------------------------------------------------------------------


def test_run_takes_the_number_of_a_name(named):
    assert named("run", "cleanup", *SHOW).out == "cleanup 42424242\n"


def test_run_fills_a_pattern(named):
    done = named("run", "booking-create", "tenant=7", "date=2026-01-15", *SHOW)
    assert done.out == f"{BOOKING} {BOOKING_KEY}\n"


def test_run_needs_no_dashes_between_values_and_the_command(named):
    done = named("run", "booking-create", "date=2026-01-15", "tenant=7", "echo", "a=b")
    assert (done.code, done.out) == (0, "a=b\n")


def test_run_takes_a_label_as_its_pattern_says(named):
    assert named("run", BOOKING, *SHOW).out == f"{BOOKING} {BOOKING_KEY}\n"


def test_run_takes_a_name_without_placeholders_as_its_label(named):
    assert named("run", "only", *SHOW).out == f"Only:one {hf.derive('Only:one', Derivation.FNV1A64)}\n"


def test_run_by_name_and_by_label_exclude_each_other(holdfast, registry):
    env = {"HOLDFAST_REGISTRY": str(registry)}
    with holdfast.hold(BOOKING, env=env):
        refused = holdfast("run", "-n", "booking-create", "tenant=7", "date=2026-01-15", "true", env=env)
        assert refused.code == EXIT_NOT_ACQUIRED
        assert BOOKING in refused.err


def test_a_class_is_locked_in_the_space_of_two_numbers(db, holdfast, registry):
    pg = holdfast.at(db.url())
    with pg.hold("job:1", "--registry", registry):
        ((_, _, classid, _, objsubid),) = db.advisory_locks()
        assert (classid, objsubid) == (7, 2)


@pytest.mark.parametrize("words, said", [
    (["booking-create", "true"], "needs a value for {tenant}"),
    (["booking-create", "tenant=7", "true"], "needs a value for {date}"),
    (["booking-create", "tenant=7", "date=tomorrow", "true"], "no value for {date}"),
    (["booking-create", "tenant=", "date=2026-01-15", "true"], "no value for {tenant}"),
    (["booking-create", "tenant=7", "date=2026-01-15", "room=1", "true"], "'room=1'"),
    (["booking-create", "tenant=7", "tenant=8", "date=2026-01-15", "true"], "twice"),
    (["cleanup", "tenant=7", "true"], "no placeholder"),
    (["booking-create", "tenant=7", "date=2026-01-15"], "COMMAND is missing"),
])
def test_missing_and_ill_formed_values_are_refused_before_anything_is_locked(named, words, said):
    refused = named("run", *words)
    assert refused.code == EXIT_USAGE
    assert said in refused.err


@pytest.mark.parametrize("option", [["--as", "sha256"], ["--as", "fnv1a64"]])
def test_another_derivation_than_the_registrys_is_refused(named, option):
    refused = named("run", *option, BOOKING, "true")
    assert refused.code == EXIT_CONFIG
    assert "fnv1a32-js" in refused.err and "booking-create" in refused.err


def test_the_registrys_own_derivation_may_be_stated(named):
    assert named("run", "--as", "fnv1a32-js", BOOKING, "true").code == 0


def test_a_number_beside_a_name_must_be_the_names_own(named):
    assert named("run", "--key", "42424242", "cleanup", "true").code == 0
    refused = named("run", "--key", "5", "cleanup", "true")
    assert refused.code == EXIT_CONFIG
    assert "cleanup" in refused.err


def test_a_label_that_the_registry_does_not_have_is_locked_only_when_that_is_meant(named):
    refused = named("run", "elsewhere", *SHOW)
    assert (refused.code, refused.out) == (EXIT_CONFIG, "")
    assert "'elsewhere' is not in the registry" in refused.err and "--unregistered" in refused.err
    assert named("run", "--unregistered", "elsewhere", *SHOW).out == f"elsewhere {hf.derive('elsewhere')}\n"


@pytest.mark.parametrize("given, meant", [
    ("clenup", "did you mean cleanup?"), ("booking-craete", "did you mean booking-create?"),
    ("Onyl:one", "did you mean Only:one (only)?"), ("jbo:12345678", "did you mean job:{id} (classed)?"),
    ("42424242", "42424242 is the number of cleanup: say cleanup, or --key 42424242"),
])
def test_a_misspelt_name_is_refused_with_the_nearest_spelling(named, given, meant):
    refused = named("run", given, "true")
    assert refused.code == EXIT_CONFIG
    assert meant in refused.err


def test_a_number_that_no_entry_has_is_refused(named):
    refused = named("run", "--key", "42424243", "cleaning", "true")
    assert refused.code == EXIT_CONFIG and "no lock with the key 42424243" in refused.err
    assert named("run", "--key", "42424243", "--unregistered", "cleaning", "true").code == 0
    assert named("run", "--key", "42424242", "another-name", "true").code == 0


@pytest.mark.parametrize("command", [["run", "elsewhere", "true"], ["tx", "elsewhere", "-c", "select 1"]])
def test_the_file_may_allow_what_it_does_not_have(holdfast, tmp_path, command):
    path = hf_registry.write(tmp_path, LOCKS)
    strict = path.read_text()
    env = {"HOLDFAST_REGISTRY": str(path)}
    assert holdfast(*command, env=env).code == EXIT_CONFIG
    path.write_text("strict: false\n" + strict)
    assert holdfast(*command, env=env).code == 0
    path.write_text("strict: true\n" + strict)
    assert holdfast(*command, env=env).code == EXIT_CONFIG
    assert holdfast(command[0], "--unregistered", *command[1:], env=env).code == EXIT_CONFIG


# --- which file decides ---------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path):
    """A folder below one that has the registry."""
    hf_registry.write(tmp_path, LOCKS)
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
@pytest.mark.parametrize("as_link", [False, True])
def test_a_strangers_file_is_used_only_when_it_is_named(holdfast, project, as_link):
    path = project.parent / "locks.yaml"
    if as_link:
        path.rename(project.parent / "other.yaml")
        path.symlink_to("other.yaml")
    os.chown(path, 1234, 1234, follow_symlinks=False)
    refused = holdfast("run", "cleanup", *SHOW, cwd=project)
    assert (refused.code, refused.out) == (EXIT_CONFIG, "")
    assert "belongs to the user 1234" in refused.err and "--registry ../locks.yaml" in refused.err
    for how in ({"env": {"HOLDFAST_REGISTRY": str(path)}}, {}):
        option = [] if how else ["--registry", path]
        assert holdfast("run", *option, "cleanup", *SHOW, cwd=project, **how).out == "cleanup 42424242\n"
    assert holdfast("run", "cleanup", *SHOW, cwd=project, env={"HOLDFAST_REGISTRY": ""}).out == \
        f"cleanup {hf.derive('cleanup')}\n"


@pytest.mark.parametrize("option", [[], ["--registry", "../locks.yaml"]])
def test_a_file_that_everybody_may_write_is_never_used(holdfast, project, option):
    (project.parent / "locks.yaml").chmod(0o666)
    refused = holdfast("run", *option, "cleanup", *SHOW, cwd=project)
    assert (refused.code, refused.out) == (EXIT_CONFIG, "")
    assert "everybody may write" in refused.err


def test_the_file_that_decided_is_told(holdfast, project):
    told = "registry: ../locks.yaml (found here or above)"
    assert told in holdfast("run", "-v", "cleanup", "true", cwd=project).err
    assert told in holdfast("tx", "--verbose", "only", "-c", "select 1", cwd=project).err
    assert told in holdfast("key", "cleanup", cwd=project).err
    assert json.loads(holdfast("key", "--json", "cleanup", cwd=project).out)["registry"] == "../locks.yaml"
    assert "registry: ../locks.yaml (--registry)" in \
        holdfast("key", "--registry", "../locks.yaml", "cleanup", cwd=project).err
    assert "4 locks in ../locks.yaml (found here or above)" in holdfast("doctor", cwd=project).out
    silent = holdfast("run", "cleanup", "true", cwd=project)
    assert "registry" not in silent.err


def test_key_warns_of_what_run_would_refuse(named):
    done = named("key", "clenup")
    assert done.code == 0 and "warning: 'clenup' is not in the registry" in done.err
    assert "did you mean cleanup?" in done.err


def test_a_broken_registry_stops_a_command_before_it_locks_anything(holdfast, tmp_path):
    path = tmp_path / "locks.yaml"
    path.write_text("version: 1\nlocks:\n  - name: a\n    kye: { fixed: 5000 }\n")
    refused = holdfast("run", "a", "touch", tmp_path / "ran", cwd=tmp_path)
    assert refused.code == EXIT_CONFIG
    assert "locks.yaml:3:5: " in refused.err or "locks.yaml:4:5: " in refused.err
    assert not (tmp_path / "ran").exists()


def test_every_goes_by_the_label_of_a_filled_pattern(named):
    words = ["--every", "1h", "booking-create", "tenant=7", "date=2026-01-15"]
    assert named("run", *words, "echo", "ran").out == "ran\n"
    again = named("run", *words, "echo", "ran")
    assert again.out == "" and BOOKING in again.err


# --- tx -----------------------------------------------------------------------------------------------


def test_tx_takes_names_patterns_and_labels(tx_kind, holdfast, registry):
    done = holdfast.at(tx_kind.url)(
        "tx", "--registry", registry, "--unregistered", "booking-create", "tenant=7", "date=2026-01-15", "only",
        "Transfer:a", "-c", "update counter set n = n + 1 where id = 1 returning n", "--json")
    assert done.code == 0, done
    assert json.loads(done.out) == [{"n": "1"}]


def test_tx_waits_for_the_holder_of_a_name(tx_server, holdfast, registry):
    held = tx_server.database.connect()
    with held, held.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(42424242)")
        refused = holdfast.at(tx_server.url)("tx", "--registry", registry, "--deadline", "200ms", "cleanup",
                                             "-c", "select 1")
        cursor.execute("select pg_advisory_unlock(42424242)")
    held.close()
    assert refused.code == EXIT_NOT_ACQUIRED
    assert "cleanup" in refused.err


def test_tx_refuses_a_pattern_without_its_values(named):
    refused = named("tx", "booking-create", "tenant=7", "-c", "select 1")
    assert refused.code == EXIT_USAGE
    assert "{date}" in refused.err


# --- key ----------------------------------------------------------------------------------------------


def test_key_shows_the_key_that_the_registry_gives(named):
    (shown,) = json.loads(named("key", "--json", "booking-create", "tenant=7", "date=2026-01-15").out)["keys"]
    assert (shown["label"], shown["derivation"], shown["key"]) == (BOOKING, "fnv1a32-js", BOOKING_KEY)
    assert shown["name"] == "booking-create"
    assert shown["sql"] == f"SELECT pg_advisory_xact_lock({BOOKING_KEY})"


def test_key_shows_fixed_ids_and_classes(named):
    shown = json.loads(named("key", "--json", "cleanup", "job:1").out)["keys"]
    assert shown[0]["key"] == 42424242 and shown[0]["sql"] == "SELECT pg_advisory_lock(42424242)"
    second = hf.derive("job:1", Derivation.HASHTEXT)
    assert shown[1]["sql"] == f"SELECT pg_advisory_lock(7, {second})"


def test_key_with_a_stated_derivation_asks_no_registry(named):
    assert named("key", "--as", "sha256", BOOKING).out == f"{hf.derive(BOOKING)}\n"


def test_key_shows_every_derivation_of_a_label_that_is_not_registered(named):
    assert len(json.loads(named("key", "--json", "elsewhere").out)["keys"]) == 13


def test_tx_warns_once_of_a_lifetime_that_the_registry_has_otherwise(holdfast, tmp_path):
    path = hf_registry.write(tmp_path, LOCKS)
    done = holdfast("tx", "--registry", path, "cleanup", "-c", "select 1")
    assert done.code == 0 and done.err.count("is a session lock in the registry") == 1

"""`holdfast registry`: a program of its own, and how it and the registry are found."""

import json
import os
import shutil
import subprocess

import pytest

import cli
import hf
from cli import EXIT_CONFIG, EXIT_FAILED, EXIT_USAGE

ONE_LOCK = "version: 1\nlocks:\n  - { name: %s, key: { fixed: 42424242 }, lifetime: session }\n"


def write_program(folder, name, script):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"holdfast-{name}"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def write_registry(path, name="nightly"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ONE_LOCK % name)
    return path


def broken_registry(path):
    """One whose fault tells which file was read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("version: 1\nlocks: []\nsurprise: 1\n")
    return path


def file_checked(holdfast, *args, env=None, **run):
    """The file that `registry check` complains about: every registry here has one fault."""
    done = holdfast("registry", "check", "--json", *args,
                    env={"HOLDFAST_REGISTRY": None, **(env or {})}, **run)
    assert done.code == 1, done
    return json.loads(done.out)["findings"][0]["file"]


# ---- the program


def test_stated_folder_is_the_only_one_searched(holdfast, tmp_path):
    write_program(tmp_path / "stated", "probe", 'echo "$@"')
    env = {"HOLDFAST_LIBEXEC": str(tmp_path / "stated")}
    done = holdfast("probe", "a", "--json", env=env)
    assert (done.code, done.out) == (0, "a --json\n")
    done = holdfast("registry", "--help", env=env)
    assert done.code == EXIT_USAGE
    assert done.err.startswith("error: unknown command 'registry'\n")


def test_program_beside_the_command_is_found(tmp_path):
    shutil.copy(cli.program(), tmp_path / "holdfast")
    write_program(tmp_path, "probe", "echo beside")
    env = {name: value for name, value in os.environ.items() if name != "HOLDFAST_LIBEXEC"}
    done = subprocess.run([tmp_path / "holdfast", "probe"], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout) == (0, "beside\n")


def test_command_that_is_linked_to_finds_programs_where_it_really_is(tmp_path):
    (tmp_path / "hf").symlink_to(cli.program())
    done = subprocess.run([tmp_path / "hf", "registry", "--help"], capture_output=True, text=True)
    assert done.stdout.startswith("Usage: holdfast registry COMMAND")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that `meson install` filled, as a package would carry it."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["/usr/bin/meson", "install", "-C", hf.BUILD, "--no-rebuild", "--quiet",
                    "--destdir", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def test_installed_tree_works_wherever_it_is_moved(installed):
    command, = installed.rglob("bin/holdfast")
    program, = installed.rglob("libexec/holdfast/holdfast-registry")
    write_program(program.parent, "probe", "echo moved")
    done = subprocess.run([command, "probe"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "moved\n")
    done = subprocess.run([command, "registry", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[0]) == (0, "holdfast")


@pytest.mark.parametrize("file", ["bash-completion/completions/holdfast.bash", "zsh/site-functions/_holdfast",
                                  "fish/vendor_completions.d/holdfast.fish"])
def test_completion_is_installed_where_shells_look(installed, file):
    script, = installed.rglob(file)
    assert "completion offer" in script.read_text()


def test_overview_lists_programs_once_and_with_what_they_are_about(holdfast, tmp_path):
    write_program(tmp_path, "registry", "true")
    write_program(tmp_path, "zebra", "true")
    shown = holdfast("--help", env={"HOLDFAST_LIBEXEC": str(tmp_path)}).out
    listed = shown.split("Programs:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == ["registry", "zebra"]
    assert "registry of locks" in listed[0]


def test_program_that_cannot_be_run_is_named(holdfast, tmp_path):
    (tmp_path / "holdfast-probe").write_text("#!/bin/sh\n")
    done = holdfast("probe", env={"HOLDFAST_LIBEXEC": str(tmp_path)})
    assert done.code == EXIT_FAILED
    assert "cannot run holdfast-probe: Permission denied" in done.err


@pytest.mark.parametrize("words, error, hint", [
    (["regisry"], "unknown command 'regisry'; did you mean 'registry'?", "holdfast --help"),
    (["registry", "chekc"], "unknown command 'chekc'; did you mean 'check'?", "holdfast registry --help"),
    (["registry", "quux"], "unknown command 'quux'", "holdfast registry --help"),
    (["registry"], "COMMAND is missing", "holdfast registry --help"),
    (["registry", "-v"], "options stand after the command: -v", "holdfast registry --help"),
    (["registry", "check", "--fromat", "x"], "unknown option --fromat; did you mean --format?",
     "holdfast registry check --help"),
    (["help", "regisry"], "unknown command 'regisry'; did you mean 'registry'?", "holdfast --help"),
    (["help", "registry", "chekc"], "unknown command 'chekc'; did you mean 'check'?",
     "holdfast registry --help"),
])
def test_wrong_command_is_refused_with_a_suggestion(holdfast, words, error, hint):
    done = holdfast(*words)
    assert done.code == EXIT_USAGE
    assert done.err == f"error: {error}\nhint: see '{hint}'\n"


@pytest.mark.parametrize("words", [["quux", "--json"], ["registry", "quux", "--json"], ["registry", "--json"]])
def test_wrong_command_is_refused_in_json_where_that_was_asked_for(holdfast, words):
    done = holdfast(*words)
    assert done.code == EXIT_USAGE
    assert json.loads(done.err)["error"]["status"] == "HF_INVALID"


def test_help_of_a_sub_command_can_be_asked_for_in_every_way(holdfast):
    asked = [holdfast(*words) for words in (["registry", "check", "--help"], ["registry", "check", "-h"],
                                            ["help", "registry", "check"])]
    assert {(done.code, done.out) for done in asked} == {(0, asked[0].out)}
    assert asked[0].out.startswith("Usage: holdfast registry check [")
    assert holdfast("help", "registry").out == holdfast("registry", "--help").out


def test_full_output_is_reported(holdfast):
    done = holdfast("registry", "--help", prefix=["sh", "-c", 'exec "$@" >/dev/full', "sh"])
    assert done.code == EXIT_FAILED
    assert done.err.startswith("error: cannot write to standard output: ")


# ---- the registry


def test_option_wins_over_variable_and_folder(holdfast, tmp_path):
    named, other = broken_registry(tmp_path / "a.yaml"), write_registry(tmp_path / "b.yaml")
    write_registry(tmp_path / "locks.yaml")
    env = {"HOLDFAST_REGISTRY": str(other)}
    assert file_checked(holdfast, "--registry", named, env=env, cwd=tmp_path) == str(named)
    assert file_checked(holdfast, named, env=env, cwd=tmp_path) == str(named)


def test_variable_wins_over_folder(holdfast, tmp_path):
    named = broken_registry(tmp_path / "a.yaml")
    write_registry(tmp_path / "locks.yaml")
    assert file_checked(holdfast, env={"HOLDFAST_REGISTRY": str(named)}, cwd=tmp_path) == str(named)


def test_nearest_folder_upwards_wins(holdfast, tmp_path):
    broken_registry(tmp_path / "locks.yaml")
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert file_checked(holdfast, cwd=deep) == "../../../locks.yaml"
    broken_registry(tmp_path / "a" / "locks.yaml")
    assert file_checked(holdfast, cwd=deep) == "../../locks.yaml"
    broken_registry(deep / "locks.yaml")
    assert file_checked(holdfast, cwd=deep) == "locks.yaml"


def test_link_to_a_file_is_a_registry_and_a_folder_of_that_name_is_none(holdfast, tmp_path):
    broken_registry(tmp_path / "real.yaml")
    (tmp_path / "locks.yaml").symlink_to("real.yaml")
    below = tmp_path / "below"
    (below / "locks.yaml").mkdir(parents=True)
    assert file_checked(holdfast, cwd=below) == "../locks.yaml"
    (below / "dangling").mkdir()
    (below / "dangling" / "locks.yaml").symlink_to("nowhere")
    assert file_checked(holdfast, cwd=below / "dangling") == "../../locks.yaml"


def test_empty_variable_switches_the_registry_off(holdfast, tmp_path):
    broken_registry(tmp_path / "locks.yaml")
    done = holdfast("registry", "check", env={"HOLDFAST_REGISTRY": ""}, cwd=tmp_path)
    assert done.code == EXIT_CONFIG
    assert done.err.startswith("error: no registry: HOLDFAST_REGISTRY is empty\n")


def test_folder_without_a_registry_is_told_where_it_was_looked_for(holdfast, tmp_path):
    done = holdfast("registry", "check", env={"HOLDFAST_REGISTRY": None}, cwd=tmp_path)
    assert done.code == EXIT_CONFIG
    assert done.err.startswith("error: no registry: there is no locks.yaml here or in a folder above\nhint: ")


def test_working_folder_that_is_gone_has_no_registry(holdfast, tmp_path):
    broken_registry(tmp_path / "locks.yaml")
    gone = tmp_path / "gone"
    gone.mkdir()
    done = holdfast("registry", "check", env={"HOLDFAST_REGISTRY": None}, cwd=gone,
                    prefix=["sh", "-c", 'rmdir ../gone && exec "$@"', "sh"])
    assert done.code == EXIT_CONFIG
    assert done.err.startswith("error: no registry: there is no locks.yaml")


def test_working_folder_that_may_not_be_read_is_no_error(holdfast, tmp_path, unprivileged):
    closed = tmp_path / "closed"
    write_registry(closed / "locks.yaml")
    done = holdfast("registry", "check", env={"HOLDFAST_REGISTRY": None}, cwd=closed,
                    prefix=["sh", "-c", 'chmod 0 . && exec "$@"', "sh", *unprivileged])
    closed.chmod(0o700)
    assert done.code == EXIT_CONFIG
    assert done.err.startswith("error: no registry: ")


@pytest.mark.parametrize("args, env, chooser", [
    (["--registry", "missing.yaml"], {}, "--registry"),
    ([], {"HOLDFAST_REGISTRY": "missing.yaml"}, "HOLDFAST_REGISTRY"),
])
def test_named_registry_that_is_missing_is_an_error_that_says_who_named_it(holdfast, tmp_path, args, env, chooser):
    done = holdfast("registry", "check", *args, env=env, cwd=tmp_path)
    assert done.code == EXIT_CONFIG
    assert done.err.splitlines()[0] == (f"error: cannot read the registry missing.yaml (from {chooser}): "
                                        "No such file or directory")


def test_named_registry_that_is_a_folder_is_an_error_that_says_who_named_it(holdfast, tmp_path):
    done = holdfast("registry", "check", env={"HOLDFAST_REGISTRY": "."}, cwd=tmp_path)
    assert done.code == EXIT_CONFIG
    assert done.err.startswith("error: cannot read the registry . (from HOLDFAST_REGISTRY): Is a directory\n")


def test_empty_option_is_no_way_to_switch_the_registry_off(holdfast, tmp_path):
    write_registry(tmp_path / "locks.yaml")
    done = holdfast("registry", "check", "--registry", "", cwd=tmp_path)
    assert done.code == EXIT_CONFIG
    assert "(from --registry)" in done.err


def test_registry_may_come_through_a_pipe(holdfast, tmp_path):
    done = holdfast("registry", "check", "--registry", "/dev/stdin", input=(ONE_LOCK % "nightly").encode())
    assert (done.code, done.err) == (0, "1 lock, no findings\n")


def test_one_registry_at_a_time(holdfast, tmp_path):
    named = write_registry(tmp_path / "a.yaml")
    for args in (["a", "b"], ["--registry", named, named]):
        done = holdfast("registry", "check", *args)
        assert (done.code, done.err.splitlines()[0]) == (EXIT_USAGE, "error: one registry at a time")

"""Libraries that the command loads when it wants them."""

import re
import subprocess

import pytest

import cli
from cli import EXIT_UNREACHABLE


def test_nothing_is_loaded_that_a_short_command_may_not_need():
    shown = subprocess.run(["readelf", "-d", cli.program()], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(lib\w+)", shown)
    assert "libc" in needed
    assert not {"libpq", "libsqlite3", "libcrypto", "libssl", "libyaml"} & set(needed)


@pytest.mark.parametrize("library, url, package", [
    ("libpq.so.5", "postgresql://127.0.0.1:1/x", "libpq5"),
    ("libsqlite3.so.0", "local:{folder}/store", "libsqlite3-0"),
    ("libcrypto.so.3", "local:{folder}/store", "libssl3"),
])
def test_library_that_cannot_be_loaded_is_named(holdfast, tmp_path, library, url, package):
    (tmp_path / library).write_bytes(b"")
    done = holdfast("run", "--url", url.format(folder=tmp_path), "job", "--", "touch", tmp_path / "ran",
                    env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.code == EXIT_UNREACHABLE
    error, hint = done.err.splitlines()
    assert error.startswith("error: ") and library in error
    assert hint.startswith("hint: ") and package in hint
    assert not (tmp_path / "ran").exists()


def test_store_that_is_not_asked_for_need_not_be_loadable(holdfast, tmp_path):
    (tmp_path / "libpq.so.5").write_bytes(b"")
    done = holdfast("run", "--url", f"local:{tmp_path}/store", "job", "--", "true",
                    env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert (done.code, done.err) == (0, "")


def test_registry_that_is_there_needs_libyaml(holdfast, tmp_path):
    (tmp_path / "libyaml-0.so.2").write_bytes(b"")
    (tmp_path / "locks.yaml").write_text("version: 1\nlocks: []\n")
    done = holdfast("run", "--url", f"local:{tmp_path}/store", "job", "--", "touch", tmp_path / "ran",
                    env={"LD_LIBRARY_PATH": str(tmp_path), "HOLDFAST_REGISTRY": None}, cwd=tmp_path)
    assert done.code == EXIT_UNREACHABLE
    error, hint = done.err.splitlines()
    assert error.startswith("error: ") and "libyaml-0.so.2" in error
    assert hint.startswith("hint: ") and "libyaml-0-2" in hint
    assert not (tmp_path / "ran").exists()


def test_without_a_registry_libyaml_need_not_be_loadable(holdfast, tmp_path):
    (tmp_path / "libyaml-0.so.2").write_bytes(b"")
    done = holdfast("run", "--url", f"local:{tmp_path}/store", "job", "--", "true",
                    env={"LD_LIBRARY_PATH": str(tmp_path), "HOLDFAST_REGISTRY": None}, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")

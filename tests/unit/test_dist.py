"""The tarball of `make dist` is what is committed, the same each time, and builds without git."""
import pathlib
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]

TOP = subprocess.run(["git", "-C", ROOT, "rev-parse", "--show-toplevel"], capture_output=True, text=True).stdout.strip()

pytestmark = pytest.mark.skipif(TOP != str(ROOT.resolve()), reason="only a git repository makes tarballs")


def dist(folder):
    folder.mkdir()
    made = subprocess.run([ROOT / "scripts/dist", folder], check=True, capture_output=True, text=True).stdout
    return pathlib.Path(made.strip())


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    return dist(tmp_path_factory.mktemp("dist") / "made")


def test_it_is_the_same_each_time(tarball, tmp_path):
    assert dist(tmp_path / "again").read_bytes() == tarball.read_bytes()


def test_it_has_what_is_committed_below_a_folder_of_its_name(tarball):
    folder = tarball.name.removesuffix(".tar.gz")
    committed = subprocess.run(["git", "-C", ROOT, "ls-tree", "-r", "--name-only", "-z", "HEAD"], check=True,
                               capture_output=True, text=True).stdout.split("\0")[:-1]
    with tarfile.open(tarball) as opened:
        files = [member.name for member in opened if not member.isdir()]
    assert sorted(files) == sorted(f"{folder}/{path}" for path in committed)


def test_it_builds_without_git(tarball, tmp_path):
    """A part of it: what is left out is compiled in the same way."""
    with tarfile.open(tarball) as opened:
        opened.extractall(tmp_path)
    source = tmp_path / tarball.name.removesuffix(".tar.gz")
    trap = tmp_path / "bin/git"
    trap.parent.mkdir()
    trap.write_text(f"#!/bin/sh\necho asked >>{tmp_path}/asked\nexit 1\n")
    trap.chmod(0o755)
    env = {"PATH": f"{trap.parent}:/usr/lib/ccache:/usr/local/bin:/usr/bin:/bin"}
    for command in (["/usr/bin/meson", "setup", "build"], ["ninja", "-C", "build", "src/cli/libholdfast-cli.a", "man/holdfast.1"]):
        done = subprocess.run(command, cwd=source, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert (source / "build/src/cli/libholdfast-cli.a").stat().st_size > 0
    assert not (tmp_path / "asked").exists()

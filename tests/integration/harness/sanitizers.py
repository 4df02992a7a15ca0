"""A suite whose library is built with a sanitizer: `make test SAN=address` or `SAN=thread`.

Python loads the library, so the sanitizer's runtime must be in Python from its first instruction. The servers
that the tests start are as their packages made them, and must not be given it.

With `SAN=valgrind` nothing is built otherwise, and every command that a test runs, runs in valgrind.
"""

import os
import pathlib
import sys

import pytest

KIND = os.environ.get("SAN", "")
FLAGS = {"address": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"]}.get(KIND, [])

# For tests that limit a program's memory.
with_own_memory = pytest.mark.skipif(bool(KIND), reason="a sanitizer takes memory of its own")

with_cancelled_threads = pytest.mark.skipif(
    KIND == "thread", reason="the race detector sees no mutex in a thread that is being cancelled")

# What holdfast starts is watched as well, but no job and no shell.
COMMAND_PREFIX = [] if KIND != "valgrind" else [
    "valgrind", "--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite",
    "--trace-children=yes", "--trace-children-skip=/bin/*,/usr/bin/*,/usr/lib/*,*.sh,*.py",
    f"--log-file={os.environ['HOLDFAST_BUILD']}/reports/valgrind.%p"]


def keep_from_servers(folder):
    """In a process that starts servers: of its children only Python and what is linked with the runtime have it."""
    runtime = os.environ.pop("LD_PRELOAD", None)
    if not KIND or not runtime:
        return
    options = os.environ.get("ASAN_OPTIONS", "")
    python = pathlib.Path(folder) / f"python-{os.getpid()}"
    python.write_text(f'#!/bin/sh\nLD_PRELOAD={runtime} ASAN_OPTIONS={options} exec {sys.executable} "$@"\n',
                      encoding="utf-8")
    python.chmod(0o755)
    sys.executable = str(python)
    # Python never frees all that it has; the commands do.
    os.environ["ASAN_OPTIONS"] = options.replace("detect_leaks=0", "detect_leaks=1")

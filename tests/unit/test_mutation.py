"""Where tests/mutation plants faults, which, and where it does not."""
import pathlib
import subprocess
import sys

import pytest

MUTATION = pathlib.Path(__file__).parents[1] / "mutation"
sys.path.insert(0, str(MUTATION))

import sites  # noqa: E402

SOURCE = """
#include <stdbool.h>
#define TWICE(n) ((n) + (n))
enum colour { RED, GREEN, BLUE };
void unlock(int lock);
void lock_free(int *lock);
int paint(int *lock, bool dry);
int paint(int *lock, bool dry) {
    %s
    return *lock;
}
"""


@pytest.mark.parametrize("statement, faults", [
    ("if (lock) *lock = 50;", [("negated", "!(lock)")]),
    ("while (*lock < 70) unlock(60);", [("negated", "!(*lock < 70)"), ("off by one", "*lock <= 70")]),
    ("*lock = *lock + 2;", [("off by one", "3"), ("swapped operator", "*lock - 2")]),
    ("*lock = *lock != 1 && dry;", [("off by one", "0"), ("swapped operator", "*lock != 1 || dry"),
                                    ("swapped operator", "*lock == 1")]),
    ("*lock = GREEN;", [("swapped constant", "BLUE")]),
    ("dry = true; *lock = dry;", [("swapped constant", "false")]),
    ("unlock(*lock);", [("dropped", "")]),
    ("lock_free(lock);", []),
    ("*lock = TWICE(3);", []),
    ("static int first = 3; *lock = first;", []),
    ("int many[4] = {0}; *lock = many[*lock];", []),
    ("switch (*lock) { case 2: *lock = 33; }", []),
    ("*lock = sizeof(int[3]);", []),
])
def test_faults_are_those_of_the_statement_and_compile(tmp_path, statement, faults):
    source = tmp_path / "paint.c"
    source.write_text(SOURCE % statement)
    found = sites.sites_of(tmp_path, source, {"command": "cc -std=c11", "directory": str(tmp_path)})
    assert sorted((site.kind, site.faulty) for site in found) == faults
    for site in found:
        text, planted = source.read_bytes(), tmp_path / "planted.c"
        planted.write_bytes(text[:site.start] + site.planted(1).encode() + text[site.end:])
        subprocess.run(["cc", "-Werror", "-include", MUTATION / "mutant.h", "-c", planted, "-o", "/dev/null"],
                       check=True)

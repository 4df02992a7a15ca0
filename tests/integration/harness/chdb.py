"""chdb: ClickHouse in a folder, in the process itself."""

import json
import subprocess
import sys

import pytest

import sanitizers
from hf import HARNESS, ROOT

LIBRARY = ROOT / ".deps/node_modules/@chdb/lib-linux-x64-gnu/libchdb.so"
DDL = "CREATE TABLE t (append UInt32, n UInt64) ENGINE = MergeTree ORDER BY tuple()"
READER = HARNESS / "chdb_reader.py"


class Chdb:
    """`holdfast append` to a folder, and another program that reads it."""

    def __init__(self, holdfast, folder):
        if sanitizers.FLAGS:
            pytest.skip("libchdb brings an allocator of its own, beside which a sanitizer's runtime crashes")
        if not LIBRARY.exists():
            raise RuntimeError(f"chdb is missing in {LIBRARY}: run `make deps`")
        self.holdfast = holdfast
        self.folder = folder
        self.words = ["append", "--to", f"chdb:{folder}"]
        self.env = {"HOLDFAST_CHDB": str(LIBRARY)}

    def __call__(self, *args, **how):
        return self.holdfast(*self.words, *args, env=self.env, **how)

    def start(self, *args):
        return self.holdfast.start(*self.words, *args, env=self.env)

    def done(self, *args, **how):
        result = self(*args, **how)
        assert result.code == 0, result
        return json.loads(result.out)

    def read(self, sql):
        done = subprocess.run([sys.executable, READER, LIBRARY, self.folder, sql], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def counts(self):
        """{append: rows}; every row must be there once."""
        lines = self.read("SELECT append, count(), uniqExact(n) FROM t GROUP BY append ORDER BY append").splitlines()
        found = [[int(cell) for cell in line.split("\t")] for line in lines]
        assert all(count == unique for _, count, unique in found), found
        return {append: count for append, count, _ in found}

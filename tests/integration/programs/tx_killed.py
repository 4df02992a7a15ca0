"""
tx_killed.py URL LABEL…: kills itself with SIGKILL in the callback, after one statement has run and
another is queued.
"""

import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))

import hf
import hf_tx


def body(tx):
    tx.query("update counter set n = 99 where id = 1")
    tx.queue("insert into counter values (2, 2)")
    os.kill(os.getpid(), signal.SIGKILL)


hf_tx.transact(hf.Store(sys.argv[1]), sys.argv[2:], body)

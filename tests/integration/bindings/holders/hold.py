"""hold.py URL LABEL: says "held" and holds until its input ends, or exits with 75."""

import sys

import holdfast

with holdfast.Store(sys.argv[1]) as store:
    try:
        with store.lock(sys.argv[2], wait=0):
            print("held", flush=True)
            sys.stdin.read()
    except holdfast.NotAcquiredError:
        sys.exit(75)

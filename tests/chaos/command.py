"""
What `holdfast run` runs: command.py FOLDER NAME NUMBER SECONDS. It writes into the log of its worker that it
was started, and that it ends or was told to.
"""

import signal
import sys
import time

sys.path.insert(0, __file__.rpartition("/")[0])

import clock  # noqa: E402
from history import Log  # noqa: E402

folder, name, number, seconds = sys.argv[1:]
log = Log(folder, name)


def told(*_):
    log.add("told", n=int(number), why="SIGTERM")
    sys.exit(1)


signal.signal(signal.SIGTERM, told)
log.add("granted", n=int(number))
clock.mend_sleep()
time.sleep(float(seconds))
log.add("free", n=int(number))

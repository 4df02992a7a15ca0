"""
A wall clock that can be set while the monotonic one runs on, for processes that are started with its
environment: libfaketime, which reads from a file by how much it is off. Whoever runs on another account
may read the file, too.
"""

import glob
import os
import pathlib
import threading
import time

LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"


class Clock:
    def __init__(self, path):
        [library] = glob.glob(LIBRARY)  # a run without it would not have looked
        self._path = pathlib.Path(path)
        self.set(0)
        self._path.chmod(0o644)
        self.environment = {
            "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(self._path), "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    @property
    def prefix(self):
        """For a command that is started by way of others, which may be somebody else's."""
        return ["env", *(f"{name}={value}" for name, value in self.environment.items())]

    def set(self, seconds):
        """Seconds off the host's clock, seen within one."""
        self._path.write_text(f"{seconds:+d}\n")


def mend_sleep():
    """Under the library the call that Python sleeps with fails."""
    time.sleep = lambda seconds: threading.Event().wait(seconds)


def tidy(pid):
    """What the library leaves behind for a process that was killed."""
    for path in glob.glob(f"/dev/shm/*faketime_*_{pid}"):
        os.unlink(path)

"""
Small disks that can be filled: a tmpfs each, in a mount namespace of the run's own, so that none is left
behind. Where we may not mount, as in many containers, there are none, and the run says so.
"""

import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys

BALLAST = "ballast"
_ENTERED = "HOLDFAST_CHAOS_DISKS"
_libc = ctypes.CDLL(None, use_errno=True)


def enter_namespace():
    """Starts the program again in a namespace of its own, once."""
    if _ENTERED in os.environ:
        return
    unshare = ["unshare", *(["--user", "--map-current-user", "--keep-caps"] if os.geteuid() else []),
               "--mount", "--propagation", "private"]
    may = subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    os.environ[_ENTERED] = "yes" if may else ""
    if may:
        os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


class Disk:
    """At an empty folder. It is falsy if there is none, because we may not mount it."""

    def __init__(self, folder, megabytes):
        self._folder = pathlib.Path(folder)
        status, owner = -1, os.stat(folder)
        if os.environ.get(_ENTERED):
            status = _libc.mount(b"chaos", os.fsencode(folder), b"tmpfs", 0, f"size={megabytes}m,mode=755".encode())
        self._mounted = status == 0
        if self._mounted:
            os.chown(folder, owner.st_uid, owner.st_gid)

    def __bool__(self):
        return self._mounted

    def fill(self):
        with open(self._folder / BALLAST, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def free(self):
        (self._folder / BALLAST).unlink()

    def close(self):
        if self._mounted:
            self._mounted = False
            _libc.umount2(os.fsencode(self._folder), 2)  # MNT_DETACH: somebody may still be there

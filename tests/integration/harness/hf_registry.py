"""Registries on top of hf.py."""

import contextlib
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p

import hf
from hf import CError, check

PROTOTYPES = {
    "hf_registry_read": (c_int, [c_char_p, POINTER(c_void_p), POINTER(CError)]),
    "hf_registry_free": (None, [c_void_p]),
}

lib = hf.lib_with(PROTOTYPES)


@contextlib.contextmanager
def registry(path):
    """What hf_store_options.registry takes, for as long as it is used."""
    pointer, error = c_void_p(), CError()
    check(lib().hf_registry_read(str(path).encode(), byref(pointer), byref(error)), error)
    try:
        yield pointer
    finally:
        lib().hf_registry_free(pointer)


def write(folder, locks, conventions=None, name="locks.yaml"):
    """A registry of lines such as 'name: a, key: { fixed: 5000 }'."""
    lines = ["version: 1", "locks:", *(f"  - {{ {lock} }}" for lock in locks)]
    if conventions:
        lines.append(f"conventions: {{ {conventions} }}")
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path

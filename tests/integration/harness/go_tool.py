"""Runs go on the binding, against the library that was built."""

import os
import subprocess

import pytest

import cli
import hf
import sanitizers

BINDING = hf.ROOT / "bindings/go"
NO_SANITIZER = pytest.mark.skipif(
    sanitizers.KIND in ("address", "thread"), reason="a program of Go does not load a library that has a sanitizer")


def environment(**more):
    return {**os.environ, "PKG_CONFIG_PATH": str(hf.BUILD / "meson-uninstalled"),
            "CGO_LDFLAGS": f"-Wl,-rpath,{hf.BUILD}/src/lib", "GOCACHE": str(hf.BUILD / "go"), "GOFLAGS": "-mod=mod",
            "GOPROXY": "off", "GOTOOLCHAIN": "local", "HOLDFAST_COMMAND": str(cli.program()), **more}


def go(*args, folder=BINDING, **env):
    done = subprocess.run(["go", *map(str, args)], cwd=folder, env=environment(**env), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"go {' '.join(map(str, args))}\n{done.stdout}"
    return done.stdout

"""Runs the `holdfast` command."""

import contextlib
import os
import pathlib
import queue
import select
import signal
import subprocess
import threading

import hf
import sanitizers
import servers

EXIT_USAGE = 64
EXIT_DATA = 65
EXIT_UNREACHABLE = 69
EXIT_NOT_ACQUIRED = 75
EXIT_CONFIG = 78
EXIT_LOST = 79
EXIT_LIMIT = 124
EXIT_FAILED = 125
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127

# By the word of the history: a command that ends so, and what `holdfast run` exits with.
ENDINGS = {
    "ok": (["true"], 0),
    "failed": (["sh", "-c", "exit 7"], 7),
    "signal": (["sh", "-c", "kill -9 $$"], 128 + signal.SIGKILL),
    "not_started": (["/nowhere/at/all"], EXIT_NOT_FOUND),
}


def program():
    return hf.built("src/holdfast")


class Result:
    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Running:
    """A holdfast that goes on; its lines can be awaited."""

    def __init__(self, command, env, **popen):
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", env=env, **popen)
        self.out, self.err = [], []
        self._news = {"out": queue.Queue(), "err": queue.Queue()}
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe, lines), daemon=True)
            for name, pipe, lines in (("out", self.process.stdout, self.out),
                                      ("err", self.process.stderr, self.err))]
        for reader in self._readers:
            reader.start()

    def _read(self, name, pipe, lines):
        for line in pipe:
            lines.append(line.rstrip("\n"))
            self._news[name].put(lines[-1])
        self._news[name].put(None)

    @property
    def pid(self):
        return self.process.pid

    def await_line(self, wanted, stream="out", timeout=20):
        """The first line not yet awaited that contains the text."""
        seen = []
        while True:
            try:
                line = self._news[stream].get(timeout=timeout)
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"no {wanted!r} on std{stream}; seen {seen}; {self.describe()}")
            if wanted in line:
                return line
            seen.append(line)

    def describe(self):
        return (f"exit {self.process.poll()}, stdout {self.out}, stderr {self.err}")

    def children(self):
        return servers.processes_of(self.pid)

    def signal(self, number):
        self.process.send_signal(number)

    def kill9(self):
        self.signal(signal.SIGKILL)
        return self.wait()

    def _take_in(self):
        """What it had written when it ended; a child that lives on may keep the pipes open."""
        for reader, pipe in zip(self._readers, (self.process.stdout, self.process.stderr)):
            more = select.poll()
            if reader.is_alive():
                more.register(pipe, select.POLLIN)
            while reader.is_alive() and more.poll(0):
                reader.join(0.01)
            reader.join(0.1)

    def wait(self, timeout=20):
        try:
            code = self.process.wait(timeout)
            self._take_in()
            return code
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s: {self.describe()}") from None

    def wait_all(self, timeout=20):
        """Also for the end of its output, which a child that lives on would keep open."""
        code = self.wait(timeout)
        for reader in self._readers:
            reader.join(timeout)
            assert not reader.is_alive(), f"somebody keeps its output open: {self.describe()}"
        return Result(code, "\n".join(self.out), "\n".join(self.err))

    def end(self):
        if self.process.poll() is None:
            below = self.children()
            for pid in [self.pid, *below]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
            self.process.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Holdfast:
    """holdfast("key", "a") runs to the end; holdfast.start("run", …) goes on."""

    def __init__(self, state_home, url=None):
        self.state_home = pathlib.Path(state_home)
        self.url = url
        self._started = []

    def at(self, url):
        """The same command with another default store."""
        copy = Holdfast(self.state_home, url)
        copy._started = self._started
        return copy

    def environment(self, extra):
        env = {**os.environ, "XDG_STATE_HOME": str(self.state_home), "HOME": str(self.state_home)}
        if self.url:
            env["HOLDFAST_URL"] = self.url
        env.update(extra or {})
        return {name: value for name, value in env.items() if value is not None}

    def __call__(self, *args, env=None, timeout=30, prefix=(), input=None, cwd=None):
        done = subprocess.run(
            [*prefix, *sanitizers.COMMAND_PREFIX, program(), *map(str_or_bytes, args)], capture_output=True,
            env=self.environment(env), timeout=timeout, cwd=cwd,
            **({"input": input} if input is not None else {"stdin": subprocess.DEVNULL}))
        return Result(done.returncode, done.stdout.decode(errors="replace"),
                      done.stderr.decode(errors="replace"))

    def start(self, *args, env=None, prefix=(), **popen):
        started = Running([*prefix, *sanitizers.COMMAND_PREFIX, program(), *map(str_or_bytes, args)], self.environment(env), **popen)
        self._started.append(started)
        return started

    def hold(self, label, *options, env=None, script="echo held; exec sleep 600", **popen):
        """A holder that has its lock when this returns."""
        holder = self.start("run", *options, label, "--", "sh", "-c", script, env=env, **popen)
        holder.await_line("held")
        return holder

    def end_all(self):
        for started in self._started:
            started.end()


def str_or_bytes(value):
    return value if isinstance(value, bytes) else str(value)

"""A terminal that can be looked at and typed into: tmux, on a socket of its own."""

import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

from awaiting import eventually

PROMPT = "ready>"


class Terminal:
    """A shell in a window of the given size. Nothing is configured but what is said here."""

    def __init__(self, width=100, height=30, env=None, term="tmux-256color"):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="hf-tmux-", dir="/tmp"))
        self._socket = self._folder / "socket"
        kept = ("PATH", "HOME", "ASAN_OPTIONS", "TSAN_OPTIONS")
        self._env = {**{name: os.environ[name] for name in kept if name in os.environ},
                     "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        (self._folder / "conf").write_text(
            f"set -g default-terminal {term}\nset -s escape-time 0\nset -s set-clipboard on\nset -g status off\n"
            "set -g remain-on-exit off\n")
        shell = ["env", *(f"{name}={value}" for name, value in (env or {}).items()),
                 f"PS1={PROMPT} ", "bash", "--norc", "--noprofile", "-i"]
        self._tmux("-f", self._folder / "conf", "new-session", "-d", "-x", width, "-y", height, shlex.join(shell))
        self._tmux("resize-window", "-x", width, "-y", height)
        self.shows(PROMPT)

    def _tmux(self, *words):
        done = subprocess.run(["tmux", "-u", "-S", self._socket, *map(str, words)], env=self._env,
                              capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    # looking

    @property
    def text(self):
        return self._tmux("capture-pane", "-p")

    @property
    def styled(self):
        """With the escapes of its colours."""
        return self._tmux("capture-pane", "-p", "-e")

    def lines(self):
        return self.text.splitlines()

    def shows(self, *wanted, timeout=15):
        """Waits until all of it is on the screen, and gives the screen."""
        last = ""

        def seen():
            nonlocal last
            last = self.text
            return all(part in last for part in wanted)

        try:
            eventually(seen, timeout)
        except AssertionError:
            raise AssertionError(f"not on the screen: {wanted}\n{last}") from None
        return last

    def shows_no(self, unwanted, timeout=15):
        """Waits until it is gone."""
        eventually(lambda: unwanted not in self.text, timeout, f"{unwanted!r} disappears")

    @property
    def cursor_shown(self):
        return self._tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"

    @property
    def alternate(self):
        return self._tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    @property
    def size(self):
        return tuple(map(int, self._tmux("display-message", "-p", "#{pane_width} #{pane_height}").split()))

    def clipboard(self):
        return self._tmux("show-buffer")

    # typing

    def press(self, *keys):
        """Names of tmux: Enter, Escape, Up, C-z …, and single characters."""
        self._tmux("send-keys", *keys)

    def type(self, text):
        self._tmux("send-keys", "-l", text)

    def run(self, *words):
        self.type(shlex.join(map(str, words)))
        self.press("Enter")

    def resize(self, width, height):
        self._tmux("resize-window", "-x", width, "-y", height)

    @property
    def shell_pid(self):
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def close(self):
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], env=self._env, capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

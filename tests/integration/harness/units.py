"""The units of contrib/systemd, run as systemd would run them: its specifiers, credentials and variables."""

import os
import re
import shlex
import shutil
import socket

import cli
import hf
import sanitizers


class Unit:
    """`Unit("holdfast-run@.service", folder, "planner")`; what is in /etc/holdfast is in folder/etc."""

    def __init__(self, name, folder, instance=""):
        self.folder = folder
        self.etc = folder / "etc"
        self.etc.mkdir(exist_ok=True)
        self.path = folder / name.replace("@.", f"@{instance}.")
        self.specifiers = {"%i": instance, "%I": instance.replace("-", "/"), "%d": str(folder / "credentials")}
        bin_folder = folder / "bin"
        if not bin_folder.exists():
            bin_folder.mkdir()
            (bin_folder / "holdfast").symlink_to(cli.program())
        text = (hf.BUILD / "contrib" / name).read_text()
        self.path.write_text(re.sub(r"^ExecStart=/\S*/bin/", f"ExecStart={bin_folder}/", text, flags=re.M)
                             .replace("/etc/holdfast", str(self.etc)))

    def settings(self, key):
        return re.findall(rf"^{key}=(.*)$", self.path.read_text(), flags=re.M)

    def expand(self, text):
        return re.sub("%[iId]", lambda found: self.specifiers[found[0]], text)

    def _load_credentials(self):
        place = self.folder / "credentials"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for name, source in (setting.split(":", 1) for setting in self.settings("LoadCredential")):
            shutil.copy(source, place / name)
            (place / name).chmod(0o400)
        place.chmod(0o500)

    def _variables(self):
        lines = [word for setting in self.settings("Environment") for word in shlex.split(self.expand(setting))]
        for file in self.settings("EnvironmentFile"):
            with open(self.expand(file), encoding="utf-8") as opened:
                lines += opened.read().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def command(self, variables):
        """A variable in braces is a part of its word; a bare one is as many words as it has."""
        line, = self.settings("ExecStart")
        words = []
        for word in shlex.split(line):
            if word.startswith("$") and word[1:].isidentifier():
                words += shlex.split(variables[word[1:]])
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], self.expand(word)))
        return words

    def start(self, prefix=(), notify=None):
        """What ExecStart runs, as a cli.Running."""
        self._load_credentials()
        variables = self._variables()
        env = {**{name: value for name, value in os.environ.items() if name != "HOME"}, **variables,
               "CREDENTIALS_DIRECTORY": self.specifiers["%d"]}
        if not (self.etc / "locks.yaml").exists():
            env["HOLDFAST_REGISTRY"] = ""  # one above the test's folder is none above /etc/holdfast
        if notify:
            env["NOTIFY_SOCKET"] = notify.path
        return cli.Running([*prefix, *sanitizers.COMMAND_PREFIX, *self.command(variables)], env,
                           cwd=self.settings("WorkingDirectory")[0])


class Manager:
    """The end of NOTIFY_SOCKET at which systemd listens."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.inbox.bind(self.path)
        self.inbox.settimeout(20)

    def await_ready(self):
        while "READY=1" not in (said := self.inbox.recv(4096).decode()).splitlines():
            pass
        return said

    def close(self):
        self.inbox.close()

"""
Runs what a page of Markdown shows, in the page's order, in one folder and one shell.

    sh         is run and must succeed
    console    lines after "$ " are run; what stands below is what they print. "…" is a hole in a line, and
               alone on a line any number of lines. A command that fails is followed by "$ echo $?".
    sql        is run by psql, on a page that runs on postgres
    python, c, go, ts   is run as a program
    yaml       a registry is checked by `holdfast registry check`, Prometheus's files by promtool

A block whose first line, or the one below a #! line, is a comment with nothing but a file's name is written to
that file instead, as it stands, and a later block must use it. Comments of HTML say what the reader need not see:

    <!-- runs on: postgres clickhouse -->   instead of the local store; `holdfast init` is the page's
    <!-- setup … -->                        commands for the shell
    <!-- wait: COMMAND -->                  until the command succeeds: what was started with & is there
    <!-- around … -->                       a program, with @@ where the next block goes
    <!-- not run: WHY -->                   the next block is only parsed, and what it names must exist
"""

import ast
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import yaml

import cli
import go_tool
import hf
import servers

NODE_MODULES = hf.ROOT / ".deps" / "node" / "node_modules"
PQ = "/usr/share/gocode/src/github.com/lib/pq"  # Debian's, for pages that bring a transaction of database/sql
SUFFIX = {"sql": "sql", "python": "py", "c": "c", "go": "go", "ts": "ts", "yaml": "yaml"}
FILE_LINE = re.compile(r"(?:#|//|--|/\*) ((?:[\w.-]+/)*[\w-]+\.[\w.]+)(?: \*/)?$")
FENCE = re.compile(r"```(\S*)$")
COMMENT = re.compile(r"<!-- (runs on|setup|wait|around|not run)\b:?(.*)", re.DOTALL)
SECONDS = 300  # for a page: Go builds its own packages, too, where nobody has yet

HEAD = r"""
finish() { # a step that ended the shell has no status yet
    code=$?
    [ -e "$OUT/$step.status" ] || echo $code >"$OUT/$step.status"
    kill $(jobs -p) 2>/dev/null
    wait
}
trap finish EXIT
step=0 status=0
program() { # NUMBER COMMAND...: its output is that of the block
    number=$1; shift
    "$@" >"$OUT/$number" 2>&1
    status=$?
    echo $status >"$OUT/$number.status"
    [ $status = 0 ] || exit
}
"""


class Wrong(AssertionError):
    """A page shows what is not so."""


class Block:
    def __init__(self, language, lines, line, marks):
        self.language, self.lines, self.line = language, lines, line
        self.reason = marks.pop("not run", None)
        self.around = marks.pop("around", None)
        head = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
        named = FILE_LINE.match(head[0]) if head else None
        self.file = named.group(1) if named and language != "console" else None

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    @property
    def program(self):
        if not self.around:
            return self.text
        before, _, after = self.around.partition("@@\n")
        return before + self.text + after

    def commands(self):
        """Of a console: each command with the lines that it must print."""
        found = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append(([line[2:]], []))
            elif line.startswith("> ") and found and not found[-1][1]:
                found[-1][0].append(line[2:])
            elif found:
                found[-1][1].append(line)
            else:
                raise Wrong(f"line {self.line}: a console begins with a command")
        return [("\n".join(command), expected) for command, expected in found]


class Page:
    """What is to be run, and what is to be believed of it."""

    def __init__(self, text, name="page"):
        self.name = name
        self.needs = set()
        self.parts = []  # blocks, and (kind, text, line) of hidden commands
        self._read(text.splitlines())

    def wrong(self, line, what):
        return Wrong(f"{self.name}:{line}: {what}")

    def _read(self, lines):
        marks, at, before = {}, 0, ""
        while at < len(lines):
            line, start = lines[at], at + 1
            fence = FENCE.match(line.strip())
            if line.startswith("<!--"):
                at = self._until(lines, at, "-->")
                self._comment("\n".join(lines[start - 1:at]), start, marks)
            elif fence:
                end = self._until(lines, at + 1, "```")
                indent = len(line) - len(line.lstrip())
                body = [text[indent:] for text in lines[at + 1:end - 1]]
                self._block(Block(fence.group(1), body, start, marks), marks)
                at = end
            elif line.startswith("    ") and not before.strip() and not self._in_list(lines, at):
                raise self.wrong(start, "code is fenced, with its language, so that it can be run")
            else:
                if line.strip() and marks:
                    raise self.wrong(start, f"{'/'.join(marks)}: no block follows")
                at += 1
            before = line
        if marks:
            raise self.wrong(len(lines), f"{'/'.join(marks)}: no block follows")

    def _until(self, lines, at, end):
        """The number of the line behind the one that ends it."""
        for number in range(at, len(lines)):
            if lines[number].strip().endswith(end):
                return number + 1
        raise self.wrong(at + 1, f"has no end: {end}")

    @staticmethod
    def _in_list(lines, at):
        above = [line for line in lines[:at] if line.strip() and not line.startswith("  ")]
        return bool(above) and re.match(r"[-*]|\d+\.", above[-1])

    def _comment(self, text, line, marks):
        found = COMMENT.match(text.removesuffix("-->"))
        if not found and ":" not in text:
            return  # prose
        if not found:
            raise self.wrong(line, f"what does {text.split()[1]!r} mean? see harness/pages.py")
        kind, rest = found.group(1), found.group(2)
        if kind in ("not run", "around"):
            marks[kind] = rest.lstrip("\n") if kind == "around" else rest.strip()
            if not marks[kind]:
                raise self.wrong(line, f"{kind!r} says nothing: give the reason")
        elif kind == "runs on":
            self.needs |= set(rest.split())
        else:
            self.parts.append((kind, rest.strip(), line))

    def _block(self, block, marks):
        if marks:
            raise self.wrong(block.line, f"unused: {marks}")
        if block.language not in ("sh", "console", *SUFFIX):
            raise self.wrong(block.line, f"nothing is known about blocks in {block.language or 'no language'}")
        self.parts.append(block)

    @property
    def blocks(self):
        return [part for part in self.parts if isinstance(part, Block)]


def output_matches(expected, printed):
    """"…" stands for anything in a line, alone for any lines."""
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += "[^\\n]*?".join(re.escape(piece) for piece in line.rstrip().split("…")) + r"[ ]*\n"
    return re.fullmatch(pattern, printed) is not None


# --- blocks that are not run ------------------------------------------------------------------------


def holdfast_calls(script):
    """The words of each call of holdfast, up to the command that it runs."""
    for line in script.replace("\\\n", " ").splitlines():
        with contextlib.suppress(ValueError):
            words = shlex.split(line, comments=True)
            if words[:1] == ["holdfast"]:
                yield words[1:words.index("--")] if "--" in words else words[1:]


def assert_options_exist(words):
    names = [word for word in words if re.fullmatch(r"[a-z]+", word)][:2]
    for count in (2, 1):
        helped = subprocess.run([cli.program(), *names[:count], "--help"], capture_output=True, text=True)
        if helped.returncode == 0:
            break
    else:
        raise Wrong(f"there is no command 'holdfast {' '.join(words)}'")
    for word in words:
        option = word.partition("=")[0]
        if word.startswith("-") and not re.search(rf"(?m)^ .*(?<!\S){re.escape(option)}\b", helped.stdout):
            raise Wrong(f"'holdfast {' '.join(names[:count])}' has no option {option}")


def assert_exists(word):
    """What a contributor types: a target of make, a script."""
    if "/" in word and not (hf.ROOT / word).exists() and not shutil.which(word):
        raise Wrong(f"there is no {word}")


def check_shell(script):
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    if done.returncode:
        raise Wrong(done.stderr)
    for words in holdfast_calls(script):
        assert_options_exist(words)
    makefile = (hf.ROOT / "Makefile").read_text(encoding="utf-8")
    for line in script.splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["make"]:
            for target in [word for word in words[1:] if "=" not in word]:
                if not re.search(rf"(?m)^{target}:", makefile):
                    raise Wrong(f"there is no 'make {target}'")
        elif words:
            assert_exists(words[0])


def check_compiled(block):
    done = subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", f"-I{hf.ROOT / 'include'}", "-x", "c", "-"],
                          input=block.program, capture_output=True, text=True)
    if done.returncode:
        raise Wrong(done.stderr)


def check_unrun(block):
    if block.language == "sh":
        check_shell(block.text)
    elif block.language == "console":
        check_shell("\n".join(command for command, _ in block.commands()))
    elif block.language == "yaml":
        assert list(yaml.safe_load_all(block.text)), "an empty document"
    elif block.language == "python":
        ast.parse(block.program)
    elif block.language == "c":
        check_compiled(block)
    else:
        raise Wrong(f"a block in {block.language} can be run: nothing less shows that it is right")


# --- running ----------------------------------------------------------------------------------------


class Runner:
    """
    One folder and one shell for a page. `names` has, by what the page calls it, what it is here: the
    address of a server, a path. Output is compared under the names of the page.
    """

    def __init__(self, page, names=None, variables=None):
        self.page = page
        self.names = names or {}
        # Not in /tmp, where anybody may have left a locks.yaml.
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="page-", dir=hf.BUILD))
        self.folder, self.out = self.base / "work", self.base / "out"
        self.variables = variables or {}
        self.checks = []  # (number, what is run, expected lines or None, line, may it fail)
        self.script = [HEAD]

    def environment(self):
        path = f"{hf.BUILD / 'src'}:{os.environ['PATH']}"
        library = hf.built("src/lib/libholdfast.so")
        return {**go_tool.environment(), "PATH": path, "HOME": str(self.base / "home"), "XDG_STATE_HOME": str(self.base / "home/state"),
                "OUT": str(self.out), "PYTHONPATH": str(hf.ROOT / "bindings/python"), "HOLDFAST_LIBRARY": library,
                "LD_LIBRARY_PATH": str(pathlib.Path(library).parent), "LC_ALL": "C.UTF-8", "COLUMNS": "200", **self.variables}

    def here(self, text):
        for name, real in self.names.items():
            text = text.replace(name, real)
        return text

    def there(self, text):
        for name, real in sorted(self.names.items(), key=lambda pair: -len(pair[1])):
            text = text.replace(real, name)
        return text

    def run(self):
        try:
            self._prepare()
            self._execute()
            self._judge()
        finally:
            shutil.rmtree(self.base, ignore_errors=True)

    # what is to be done, as one script

    def _prepare(self):
        for folder in (self.folder, self.out, self.base / "home"):
            folder.mkdir()
        # The reader's own checkout: that of Holdfast ignores its build folder, and so does lint.
        subprocess.run(["git", "init", "-q", self.folder], check=True)
        for part in self.page.parts:
            if isinstance(part, Block):
                self._prepare_block(part)
            else:
                kind, text, line = part
                waiting = f"until ( {text}\n) >/dev/null 2>&1; do sleep 0.05; done"
                self._shell(waiting if kind == "wait" else text, line)

    def _prepare_block(self, block):
        try:
            if block.reason:
                check_unrun(block)
            elif block.file:
                self._write(block)
            elif block.language == "sh":
                self._shell(block.text, block.line)
            elif block.language == "console":
                self._console(block)
            else:
                self._program(block)
        except (Wrong, SyntaxError, yaml.YAMLError) as fault:
            raise self.page.wrong(block.line, fault) from None

    def _save(self, text):
        path = self.base / f"step{len(self.checks)}"
        path.write_text(self.here(text), encoding="utf-8")
        return path

    def _shell(self, text, line):
        number = len(self.checks)
        path = self._save(text)
        self.script.append(f'step={number}; set -e; . {path} >"$OUT/{number}" 2>&1; set +e; echo 0 >"$OUT/{number}.status"')
        self.checks.append((number, text, None, line, False))

    def _console(self, block):
        commands = block.commands()
        for index, (command, expected) in enumerate(commands):
            number, path = len(self.checks), self._save(command)
            self.script.append(f'step={number}; (exit $status); . {path} >"$OUT/{number}" 2>&1; status=$?; echo $status >"$OUT/{number}.status"')
            is_told = index + 1 < len(commands) and commands[index + 1][0] == "echo $?"
            self.checks.append((number, command, expected, block.line, is_told))

    def _program(self, block):
        number = len(self.checks)
        path = self.base / f"block{number}.{SUFFIX[block.language]}"
        path.write_text(self.here(block.program), encoding="utf-8")
        steps = getattr(self, f"_steps_of_{block.language}")(path, block)
        for step in steps:
            self.script.append(f"program {number} {shlex.join(map(str, step))}")
        self.checks.append((number, block.text, None, block.line, False))

    def _steps_of_python(self, path, _):
        return [["/usr/bin/python3", "-W", "error", path]]

    def _steps_of_sql(self, path, block):
        if "postgres" not in self.page.needs:
            raise Wrong("the page does not run on postgres")
        return [["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path]]

    def _steps_of_c(self, path, _):
        program = path.with_suffix("")
        library = self.environment()["LD_LIBRARY_PATH"]
        return [["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{hf.ROOT / 'include'}", path, f"-L{library}",
                 f"-Wl,-rpath,{library}", "-lholdfast", "-o", program], [program]]

    def _steps_of_go(self, path, _):
        module = path.with_suffix("")
        module.mkdir()
        path.rename(module / "main.go")
        (module / "go.mod").write_text(
            f"module page\ngo 1.19\nrequire (\n\tholdfast v0.0.0\n\tgithub.com/lib/pq v0.0.0\n)\n"
            f"replace (\n\tholdfast => {go_tool.BINDING}\n\tgithub.com/lib/pq => {PQ}\n)\n", encoding="utf-8")
        return [["sh", "-c", f"cd {module} && exec go run ."]]

    def _steps_of_ts(self, path, _):
        project = self.base / "node"
        steps = [] if project.exists() else [self._make_node_project(project)]
        path = path.rename(project / f"{path.stem}.mts")
        return [
            *steps,
            [project / "node_modules/typescript/bin/tsc", "--strict", "--target", "es2022", "--lib", "es2022,esnext.disposable",
             "--module", "node16", "--types", "node", "--typeRoots", project / "node_modules/@types", path],
            ["node", "--preserve-symlinks", path.with_suffix(".mjs")]]

    @staticmethod
    def _make_node_project(project):
        """With the package as it is installed; returns what builds its addon."""
        package = project / "node_modules" / "holdfast"
        package.mkdir(parents=True)
        for module in NODE_MODULES.iterdir():
            if module.name != ".package-lock.json":
                (project / "node_modules" / module.name).symlink_to(module)
        for name in ("package.json", "lib"):
            (package / name).symlink_to(hf.ROOT / "bindings/node" / name)
        return ["sh", "-c", f"{hf.ROOT}/bindings/node/build {package}/prebuilds/"
                            "$(node -p 'process.platform + \"-\" + process.arch')/holdfast.node"]

    def _steps_of_yaml(self, path, block):
        document = yaml.safe_load(block.text)
        if "locks" in document:
            return [["holdfast", "registry", "check", "--registry", path]]
        if "scrape_configs" in document:
            return [["promtool", "check", "config", "--syntax-only", path]]
        if "groups" in document:
            return [["promtool", "check", "rules", path]]
        raise Wrong("this is neither a registry nor a file of Prometheus: why is it not run?")

    def _write(self, block):
        later = self.page.parts[self.page.parts.index(block) + 1:]
        uses = "\n".join(part.text for part in later if isinstance(part, Block) and part.language in ("sh", "console"))
        if block.file not in uses and not (block.file.endswith("locks.yaml") and "holdfast" in uses):
            raise Wrong(f"{block.file} is written, and nothing uses it")
        number = len(self.checks)
        path = self._save(block.text)
        self.script.append(f'mkdir -p {shlex.quote(str(pathlib.Path(block.file).parent))} && cp {path} {block.file}'
                           f' && chmod {"755" if block.language == "sh" else "644"} {block.file}; echo $? >"$OUT/{number}.status"')
        self.checks.append((number, block.text, None, block.line, False))

    # doing it

    def _execute(self):
        script = self.base / "script"
        script.write_text("\n".join(self.script) + "\n", encoding="utf-8")
        shell = subprocess.Popen(["bash", script], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=(self.out / "shell").open("wb"), start_new_session=True)
        try:
            shell.wait(SECONDS)
        except subprocess.TimeoutExpired:
            pass  # the step that has no status is the one that did not end
        finally:
            left = [shell.pid, *servers.processes_of(shell.pid)]
            for pid in left if shell.poll() is None else []:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shell.wait(10)

    # what came of it

    def _judge(self):
        """Tells all that is wrong, up to the step that ended the shell."""
        faults = []
        for number, what, expected, line, may_fail in self.checks:
            status_file, out_file = self.out / f"{number}.status", self.out / str(number)
            status = status_file.read_text().strip() if status_file.exists() else "no end"
            printed = self.there(out_file.read_text(errors="replace")) if out_file.exists() else ""
            if status != "0" and not may_fail:
                shell = (self.out / "shell").read_text(errors="replace")
                faults.append(f"{self.page.name}:{line}: exit {status}:\n{what}\n--- it said\n{printed}{shell}")
                if expected is None or status == "no end":
                    break
            elif expected is not None and not output_matches(expected, printed):
                shown = "\n".join(expected)
                faults.append(f"{self.page.name}:{line}: the output is another:\n$ {what}\n--- the page shows\n{shown}\n"
                              f"--- it said\n{printed}")
        if faults:
            raise Wrong("\n".join(faults))

"""The man pages and --help come from different files and must say the same."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
HOLDFAST = pathlib.Path(os.environ["HOLDFAST_BUILD"]) / "src" / "holdfast"
COMMANDS = ["run", "yield", "tx", "key", "locks", "cursor", "gaps", "table", "doctor", "init"]
PROGRAMS = {
    "append": ["list", "resolve", "forget"],
    "ingest": ["status", "adopt", "reset"],
    "registry": ["init", "check", "risk", "lint", "doc", "import", "seen"],
    "retention": ["reconcile"],
    "serve": [],
    "top": [],
}
SUB_COMMANDS = [f"{program} {command}" for program in PROGRAMS for command in PROGRAMS[program]]
WITHOUT_A_WORD = ["append", "ingest", "retention", "serve", "top"]  # programs that are commands too
ALL = COMMANDS + SUB_COMMANDS + WITHOUT_A_WORD


def page_of(command):
    return f"holdfast-{command.replace(' ', '-')}.1"


def run(*words):
    return subprocess.run([HOLDFAST, *words], check=True, capture_output=True, text=True).stdout


def help_of(*words):
    return run(*words, "--help")


def listed_under(heading, text):
    section = text.split(f"{heading}:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\w+) +[A-Z]", section, flags=re.M)


def options_in_help(command):
    """{"--wait": "TIME", "-w": "TIME", "--json": None}"""
    found = {}
    for line in help_of(*command.split()).splitlines():
        match = re.match(r"  (?:(-\w), |    )(--[\w-]+)(?:\[=(\w+)\]| (\w+)(?=  |$))?", line)
        if match:
            letter, name, optional, value = match.groups()
            found[name] = optional or value
            if letter:
                found[letter] = optional or value
    return found


def options_in_page(page):
    """Headings such as `*-w*, *--wait* _TIME_` and `*--watch*[=_TIME_]`."""
    found = {}
    text = (ROOT / "man" / f"{page}.scd").read_text()
    for heading in re.findall(r"^(\*--?\w.*)\n\t", text, flags=re.M):
        value = re.search(r"_(\w+)_\]?$", heading)
        for name in re.findall(r"\*(--?[\w-]+)\*", heading):
            found[name] = value and value.group(1)
    return found


@pytest.mark.parametrize("command", ALL)
def test_every_option_is_documented_and_no_other(command):
    common = options_in_page("holdfast.1")
    documented = {**common, **options_in_page(page_of(command))}
    assert options_in_help(command) == documented


@pytest.mark.parametrize("command", ALL)
def test_the_synopsis_names_the_options_of_the_usage(command):
    usage = help_of(*command.split()).split("\n\n")[0]
    page = (ROOT / "man" / f"{page_of(command)}.scd").read_text()
    synopsis = re.search(r"# SYNOPSIS\n\n(.*?)\n\n# ", page, flags=re.S).group(1)
    words = [f"*holdfast {command} {word}*" for word in PROGRAMS.get(command, [])]  # on pages of their own
    synopsis = "\n".join(line for line in synopsis.splitlines() if not line.startswith(tuple(words)))
    assert f"*holdfast {command}*" in synopsis
    assert set(re.findall(r"(?<![\w-])--?\w[\w-]*", usage)) == set(re.findall(r"(?<![\w-])--?\w[\w-]*", synopsis))


@pytest.mark.parametrize("command", [*COMMANDS, *PROGRAMS])
def test_the_page_is_linked_from_the_overview(command):
    assert f"*holdfast-{command}*(1)" in (ROOT / "man/holdfast.1.scd").read_text()


@pytest.mark.parametrize("command", SUB_COMMANDS)
def test_the_page_of_a_sub_command_is_linked_from_that_of_its_program(command):
    page = page_of(command)[:-2]
    program = command.split()[0]
    assert f"See *{page}*(1)" in (ROOT / f"man/holdfast-{program}.1.scd").read_text()
    assert f"*holdfast-{program}*(1)" in (ROOT / f"man/{page}.1.scd").read_text()


def test_every_page_is_installed():
    pages = {path.stem for path in (ROOT / "man").glob("*.scd")}
    assert pages == set(re.findall(r"'([\w-]+\.\d)'", (ROOT / "man/meson.build").read_text()))


def test_every_command_has_a_page():
    overview = help_of()
    assert sorted(set(listed_under("Commands", overview)) - {"help"}) == sorted(COMMANDS)
    assert listed_under("Programs", overview) == sorted(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_sub_command_has_a_page(program):
    overview = help_of(program)
    assert (listed_under("Commands", overview) if "Commands:" in overview else []) == PROGRAMS[program]


@pytest.mark.parametrize("command", [*ALL, "registry"])
def test_help_and_the_option_say_the_same(command):
    assert run("help", *command.split()) == help_of(*command.split())


def test_the_library_page_names_only_functions_that_exist():
    header = "".join(path.read_text() for path in (ROOT / "include/holdfast").glob("*.h"))
    page = (ROOT / "man/libholdfast.3.scd").read_text()
    unknown = set(re.findall(r"\*(hf_\w+)\*", page)) - set(re.findall(r"\b(hf_\w+)\(", header))
    assert not unknown


def offered(*words):
    """What a shell would offer for the last of the words."""
    return run("completion", "offer", *words).splitlines()


@pytest.mark.parametrize("command", ALL)
def test_completion_offers_every_option(command):
    assert set(offered(*command.split(), "-")) == set(options_in_help(command))


def test_completion_offers_commands_and_programs():
    assert offered("") == [*COMMANDS, "help", *PROGRAMS]
    assert offered("help", "") == [*COMMANDS, "help", *PROGRAMS]
    assert offered("reg") == ["registry"]


@pytest.mark.parametrize("program", [name for name in PROGRAMS if PROGRAMS[name]])
def test_completion_offers_the_commands_of_a_program(program):
    assert offered(program, "") == PROGRAMS[program]


def test_completion_offers_options_behind_an_operand():
    assert "--format" in offered("append", "table", "--fo")
    assert offered("run", "label", "--wa") == [":commands"]  # it is the command's own


def test_completion_takes_only_words_from_a_program(tmp_path, monkeypatch):
    """Whatever a program answers, nothing goes to the shell that is not a word."""
    for name, answer in {"evil": "x'; rm -rf /; '", "deaf": "", "good": "ask --now -n=TIME"}.items():
        program = tmp_path / f"holdfast-{name}"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
        program.chmod(0o755)
    monkeypatch.setenv("HOLDFAST_LIBEXEC", str(tmp_path))
    assert offered("evil", "") == offered("deaf", "") == []
    assert offered("good", "") == ["ask"]
    assert offered("good", "ask", "-") == ["--now", "-n"]

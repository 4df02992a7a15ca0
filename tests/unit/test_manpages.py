"""The man pages and --help come from different files and must say the same."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
HOLDFAST = pathlib.Path(os.environ["HOLDFAST_BUILD"]) / "src" / "cli" / "holdfast"
COMMANDS = ["run", "tx", "key", "locks", "doctor", "init"]


def help_of(*words):
    return subprocess.run([HOLDFAST, *words, "--help"], check=True, capture_output=True,
                          text=True).stdout


def options_in_help(command):
    """{"--wait": "TIME", "-w": "TIME", "--json": None}"""
    found = {}
    for line in help_of(command).splitlines():
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


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented_and_no_other(command):
    common = options_in_page("holdfast.1")
    documented = {**common, **options_in_page(f"holdfast-{command}.1")}
    assert options_in_help(command) == documented


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_is_linked_from_the_overview(command):
    assert f"*holdfast-{command}*(1)" in (ROOT / "man/holdfast.1.scd").read_text()


def test_every_command_has_a_page():
    listed = re.findall(r"^  (\w+) +[A-Z]", help_of().split("Commands:")[1], flags=re.M)
    assert sorted(set(listed) - {"help"}) == sorted(COMMANDS)


def test_the_library_page_names_only_functions_that_exist():
    header = (ROOT / "include/holdfast/holdfast.h").read_text()
    page = (ROOT / "man/libholdfast.3.scd").read_text()
    unknown = set(re.findall(r"\*(hf_\w+)\*", page)) - set(re.findall(r"\b(hf_\w+)\(", header))
    assert not unknown


def test_completion_offers_every_option():
    script = subprocess.run([HOLDFAST, "completion", "bash"], check=True, capture_output=True,
                            text=True).stdout
    for command in COMMANDS:
        offered = re.search(rf"^    {command}\) options='([^']*)'", script, flags=re.M).group(1)
        assert set(offered.split()) == set(options_in_help(command))


def test_completion_is_valid_bash():
    script = subprocess.run([HOLDFAST, "completion", "bash"], check=True, capture_output=True).stdout
    subprocess.run(["bash", "-n"], input=script, check=True)

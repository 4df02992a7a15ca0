"""Findings of `holdfast registry check` for people, programs and code hosts; and the exit status."""

import json
import os
import pty
import re
import subprocess

import jsonschema
import pytest

import cli
from cli import EXIT_CONFIG, EXIT_FAILED, EXIT_USAGE

GOOD = "version: 1\nlocks:\n  - { name: nightly, key: { fixed: 42424242 }, lifetime: session }\n"
UNKNOWN_FIELD = GOOD + "surprise: 1\n"
NO_YAML = "version: 1\nlocks: [\n"

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}

# What SARIF 2.1.0 demands of the parts that we write, and no part that it does not know.
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
            "type": "object",
            "required": ["tool", "results"],
            "additionalProperties": False,
            "properties": {
                "columnKind": {"const": "unicodeCodePoints"},
                "tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
                    "type": "object",
                    "required": ["name", "version", "rules"],
                    "properties": {"rules": {"type": "array", "uniqueItems": True, "items": {
                        "type": "object",
                        "required": ["id", "shortDescription", "defaultConfiguration"],
                        "additionalProperties": False,
                        "properties": {
                            "id": {"type": "string", "pattern": "^[a-z0-9-]+$"},
                            "shortDescription": TEXT,
                            "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}},
                        }}}}}}},
                "results": {"type": "array", "items": {
                    "type": "object",
                    "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
                    "additionalProperties": False,
                    "properties": {
                        "ruleId": {"type": "string"},
                        "ruleIndex": {"type": "integer", "minimum": 0},
                        "level": LEVEL,
                        "message": TEXT,
                        "properties": {"type": "object"},
                        "locations": {"type": "array", "minItems": 1, "items": {
                            "type": "object",
                            "required": ["physicalLocation"],
                            "properties": {"physicalLocation": {
                                "type": "object",
                                "required": ["artifactLocation"],
                                "additionalProperties": False,
                                "properties": {
                                    "artifactLocation": {
                                        "type": "object", "required": ["uri"],
                                        "properties": {"uri": {
                                            "type": "string",
                                            "pattern": r"^([A-Za-z0-9._~/-]|%[0-9A-F]{2}|^file:)+$"}}},
                                    "region": {
                                        "type": "object", "required": ["startLine"],
                                        "properties": {
                                            "startLine": {"type": "integer", "minimum": 1},
                                            "startColumn": {"type": "integer", "minimum": 1}}},
                                }}}}},
                    }}},
            }}},
    },
}


@pytest.fixture
def check(holdfast, tmp_path):
    """check(text, "--format", "sarif") checks a file with this text."""

    def run(text, *args, name="locks.yaml", **more):
        (tmp_path / name).write_text(text)
        return holdfast("registry", "check", *args, "--", name, cwd=tmp_path, **more)

    return run


# ---- the exit status


def test_good_registry_passes_and_stdout_is_empty(check):
    done = check(GOOD)
    assert (done.code, done.out, done.err) == (0, "", "1 lock, no findings\n")


def test_findings_exit_with_1(check):
    done = check(UNKNOWN_FIELD)
    assert (done.code, done.err) == (1, "1 lock, 1 error\n")


@pytest.mark.parametrize("format", ["human", "json", "sarif", "github"])
def test_file_that_is_no_registry_exits_with_78_in_every_format(check, format):
    done = check(NO_YAML, "--format", format)
    assert done.code == EXIT_CONFIG
    assert done.out != ""
    if format == "json":
        assert "locks.yaml:3:1: " in json.loads(done.err)["error"]["message"]
    elif format != "human":
        assert re.search(r"^error: locks\.yaml:3:1: ", done.err, flags=re.M)


def test_file_that_is_missing_is_named(holdfast, tmp_path):
    done = holdfast("registry", "check", "missing.yaml", cwd=tmp_path)
    assert done.code == EXIT_CONFIG
    assert done.err.startswith("error: ") and "missing.yaml" in done.err


@pytest.mark.parametrize("format", ["human", "json", "sarif", "github"])
def test_full_output_is_reported_even_where_there_are_findings(check, format):
    done = check(UNKNOWN_FIELD, "--format", format,
                 prefix=["sh", "-c", 'exec "$@" >/dev/full', "sh"])
    assert done.code == EXIT_FAILED
    assert "cannot write to standard output: No space left on device" in done.err


# ---- options


@pytest.mark.parametrize("args, error", [
    (["--format", "xml"], "--format is human, json, sarif or github, not 'xml'"),
    (["--format", "sarif", "--json"], "--json and --format sarif exclude each other"),
    (["--max-risk", "often"], "--max-risk is a probability such as 0.01 or 1%, not 'often'"),
    (["--max-risk", "-1"], "--max-risk is a probability such as 0.01 or 1%, not '-1'"),
    (["--max-risk", "101%"], "--max-risk is a probability such as 0.01 or 1%, not '101%'"),
    (["--max-risk", "0x1p-3"], "--max-risk is a probability such as 0.01 or 1%, not '0x1p-3'"),
    (["--max-risk", "1%%"], "--max-risk is a probability such as 0.01 or 1%, not '1%%'"),
    (["--max-risk", "."], "--max-risk is a probability such as 0.01 or 1%, not '.'"),
    (["--max-risk", ""], "--max-risk is a probability such as 0.01 or 1%, not ''"),
])
def test_wrong_options_are_refused(check, args, error):
    done = check(GOOD, *args)
    assert (done.code, done.out) == (EXIT_USAGE, "")
    said = json.loads(done.err)["error"]["message"] if "--json" in args else done.err.splitlines()[0][7:]
    assert said == error


def test_json_option_and_format_json_are_the_same(check):
    assert check(UNKNOWN_FIELD, "--json").out == check(UNKNOWN_FIELD, "--format", "json").out
    assert check(UNKNOWN_FIELD, "--json", "--format", "json").code == 1


# Two 32-bit keys out of 5 000 labels collide with 0.29 %, out of 50 000 with 25 %.
RISKY = ("version: 1\nlocks:\n  - name: bookings\n    key: { pattern: 'b:{id}', as: fnv1a32 }\n"
         "    lifetime: transaction\n    expected: %d\n%s")


@pytest.mark.parametrize("expected, convention, args, code", [
    (5000, "", [], 0),
    (50000, "", [], 1),
    (50000, "", ["--max-risk", "0.5"], 0),
    (50000, "", ["--max-risk", "50%"], 0),
    (5000, "", ["--max-risk", "0.1%"], 1),
    (5000, "", ["--max-risk", "0"], 1),
    (50000, "conventions: { max_risk: 0.5 }\n", [], 0),
    (50000, "conventions: { max_risk: 0.5 }\n", ["--max-risk", "1%"], 1),
])
def test_limit_of_the_risk_is_the_options_else_the_files_else_1_percent(check, expected, convention, args, code):
    done = check(RISKY % (expected, convention), *args)
    assert done.code == code, done


# ---- the formats


def test_for_people_each_finding_is_a_line_that_editors_can_follow(check):
    lines = check(UNKNOWN_FIELD).out.splitlines()
    assert re.fullmatch(r"locks\.yaml:4:1: error: the registry has no field 'surprise' \[unknown-field\]", lines[0])
    assert lines[1].startswith("    help: known here are version, strict, locks, conventions")
    assert len(lines) == 2


def test_colour_is_for_terminals(tmp_path):
    (tmp_path / "locks.yaml").write_text(UNKNOWN_FIELD)

    def on_a_terminal(**env):
        leader, terminal = pty.openpty()
        subprocess.run([cli.program(), "registry", "check", "locks.yaml"], stdout=terminal, cwd=tmp_path,
                       stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **env})
        os.close(terminal)
        shown = os.read(leader, 65536).decode()
        os.close(leader)
        return shown

    assert "\033[1;31merror:\033[0m" in on_a_terminal()
    assert "\033" not in on_a_terminal(NO_COLOR="1")


def test_nothing_that_a_terminal_would_obey_is_shown(check):
    done = check(UNKNOWN_FIELD, name="a\033[31m\nb.yaml")
    assert "\033" not in done.out
    assert done.out.startswith(r"a\x1b[31m\x0ab.yaml:4:1: error: ")


def test_json_has_every_part(check):
    document = json.loads(check(UNKNOWN_FIELD, "--json").out)
    finding, = document["findings"]
    assert set(finding) == {"rule", "severity", "file", "line", "column", "message", "remedy", "confidence"}
    assert (finding["rule"], finding["severity"]) == ("unknown-field", "error")
    assert (finding["file"], finding["line"], finding["column"]) == ("locks.yaml", 4, 1)
    assert finding["confidence"] is None
    assert document["counts"] == {"errors": 1, "warnings": 0, "notes": 0, "ignored": 0, "not_listed": 0}


def test_json_without_findings_is_still_a_document_and_stderr_is_silent(check):
    done = check(GOOD, "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["findings"] == []


def test_findings_are_in_the_order_of_the_file(check):
    text = GOOD + "b: 1\na: 2\n" + "c: 3\n"
    findings = json.loads(check(text, "--json").out)["findings"]
    assert [finding["line"] for finding in findings] == [4, 5, 6]


@pytest.mark.parametrize("text", [GOOD, UNKNOWN_FIELD, NO_YAML, RISKY % (50000, ""), "", "\0"],
                         ids=["good", "unknown-field", "no-yaml", "risky", "empty", "nul"])
def test_sarif_is_as_the_standard_demands(check, text):
    document = json.loads(check(text, "--format", "sarif").out)
    jsonschema.validate(document, SARIF)
    run, = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in run["results"]:
        rule = rules[result["ruleIndex"]]
        assert (rule["id"], rule["defaultConfiguration"]["level"]) == (result["ruleId"], result["level"])


def test_sarif_says_where_and_what(check):
    document = json.loads(check(UNKNOWN_FIELD, "--format", "sarif").out)
    result, = document["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": "locks.yaml"}, "region": {"startLine": 4, "startColumn": 1}}
    assert (result["ruleId"], result["level"]) == ("unknown-field", "error")
    message, remedy = result["message"]["text"].split("\n")
    assert "surprise" in message and "known here are" in remedy


@pytest.mark.parametrize("name, uri", [
    ("a b%ü:1.yaml", "a%20b%25%C3%BC%3A1.yaml"),
    ("./locks.yaml", "locks.yaml"),
])
def test_sarif_paths_are_uris(check, name, uri):
    document = json.loads(check(UNKNOWN_FIELD, "--format", "sarif", name=name).out)
    jsonschema.validate(document, SARIF)
    assert document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": uri}


def test_sarif_path_that_is_absolute_has_a_scheme(check, tmp_path):
    document = json.loads(check(UNKNOWN_FIELD, "--format", "sarif", name=f"{tmp_path}/locks.yaml").out)
    location = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == f"file://{tmp_path}/locks.yaml"


def test_github_command_points_to_the_line(check):
    done = check(UNKNOWN_FIELD, "--format", "github")
    line, = done.out.splitlines()
    assert line.startswith("::error file=locks.yaml,line=4,col=1,title=unknown-field::the registry has no field")
    assert "%0Aknown here are" in line


def test_github_properties_and_text_are_escaped(check):
    done = check(GOOD + '"50%\\r": 1\n', "--format", "github", name="a,b:100%.yaml")
    line, = done.out.splitlines()
    assert line.startswith("::error file=a%2Cb%3A100%25.yaml,line=4,col=1,title=unknown-field::")
    assert "'50%25" in line and "\r" not in line


def test_findings_beyond_the_limit_are_counted_and_not_listed(check):
    lock = "- { name: n%d, key: { fixed: %d }, a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 }\n"
    text = "version: 1\nlocks:\n" + "".join(lock % (i, i + 100000) for i in range(17000))
    document = json.loads(check(text, "--json").out)
    assert len(document["findings"]) == 100000
    assert document["counts"]["not_listed"] >= 2000

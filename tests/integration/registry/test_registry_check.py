"""holdfast registry check: what it finds in a registry, and in what is none."""

import json

import pytest

import hf
import hf_registry
import sanitizers
from cli import EXIT_CONFIG
from hf import Derivation

CLEAN = [
    "name: cleanup, key: { fixed: 42424242 }, lifetime: session",
    "name: transfer, key: { pattern: 'Transfer:{from}:{to}' }, expected: 100000",
    "name: booking, key: { pattern: 'Booking:{tenant}:{date}', as: fnv1a32-js }, expected: 1000,"
    " placeholders: { date: '\\d{4}-\\d{2}-\\d{2}' }",
]


@pytest.fixture
def check(holdfast, tmp_path):
    """Checks a registry of these locks, or this text, and gives [(line, column, rule)]."""

    def run(locks, *options, conventions=None, code=1):
        if isinstance(locks, (str, bytes)):
            path = tmp_path / "locks.yaml"
            path.write_bytes(locks.encode() if isinstance(locks, str) else locks)
        else:
            path = hf_registry.write(tmp_path, locks, conventions)
        done = holdfast("registry", "check", "--json", *options, path)
        assert done.code == code, done
        run.findings = json.loads(done.out)["findings"]
        return [(one["line"], one["column"], one["rule"]) for one in run.findings]

    return run


def rules(findings):
    return [rule for _, _, rule in findings]


def test_a_clean_registry_has_no_findings(check, holdfast, tmp_path):
    assert check(CLEAN, code=0) == []
    done = holdfast("registry", "check", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert "3 locks" in done.err


def test_the_example_of_the_documentation_is_told_its_risk_and_its_missing_source(check):
    found = check("""version: 1
locks:
  - name: idempotency-cleanup
    key: { fixed: 42424242 }
    lifetime: session
    source: [server/src/services/idempotency.service.ts]
  - name: booking-create
    key: { pattern: "{tenant}:{date}", as: fnv1a32-js }
    placeholders: { date: "\\\\d{4}-\\\\d{2}-\\\\d{2}" }
    lifetime: transaction
    expected: 50000
    order: 20
conventions: { label: "Operation:resource", min_fixed: 1000, generic: [lock, global, test] }
""")
    assert found == [(6, 14, "missing-source"), (11, 15, "risk")]
    assert "25.3 %" in check.findings[1]["message"]
    assert "sha256" in check.findings[1]["remedy"]


# --- ids ----------------------------------------------------------------------------------------------


def test_an_id_for_two_locks_is_found_in_each_space(check):
    found = check(["name: a, key: { fixed: 5000 }", "name: b, key: { pair: [0, 5000] }",
                   "name: c, key: { fixed: 5000 }", "name: d, key: { pair: [0, 5000] }"])
    assert [(line, rule) for line, _, rule in found] == [(5, "duplicate-id"), (6, "duplicate-id")]
    assert "line 3" in check.findings[0]["message"]


@pytest.mark.parametrize("key", [1, 0, -1, 999, -999, 123456, 0xDEADBEEF, 2147483647])
def test_ids_that_others_will_choose_too_are_found(check, key):
    assert rules(check([f"name: a, key: {{ fixed: {key} }}"])) == ["common-id"]


def test_the_least_id_is_the_conventions_to_say(check):
    assert check(["name: a, key: { fixed: 7 }"], conventions="min_fixed: 5", code=0) == []
    assert rules(check(["name: a, key: { fixed: 5001 }"], conventions="min_fixed: 6000")) == ["common-id"]


# --- patterns -----------------------------------------------------------------------------------------


def pattern(name, text, derivation="sha256", **placeholders):
    given = ", ".join(f"{key}: '{value}'" for key, value in placeholders.items())
    return (f"name: {name}, expected: 10, key: {{ pattern: '{text}', as: {derivation} }}" +
            (f", placeholders: {{ {given} }}" if given else ""))


@pytest.mark.parametrize("first, second, witness", [
    (pattern("a", "{x}:{y}"), pattern("b", "booking:{z}"), "booking:"),
    (pattern("a", "{x}-1"), pattern("b", "{y}", y="[a-c]+-[0-9]"), "-1"),
    (pattern("a", "job:{n}", n="\\d+"), pattern("b", "job:{n}", n="0x[0-9a-f]+|42"), "job:42"),
    (pattern("a", "same"), pattern("b", "same"), "same"),
    (pattern("a", "ü:{x}"), pattern("b", "{x}:é", x="[^:]+"), "ü:é"),
])
def test_patterns_that_meet_are_found_with_a_label_of_both(check, first, second, witness):
    assert rules(check([first, second])) == ["patterns-meet"]
    message = check.findings[0]["message"]
    assert witness in message.split("'")[1], message


@pytest.mark.parametrize("first, second", [
    (pattern("a", "{x}:{y}"), pattern("b", "{x}:{y}:{z}")),
    (pattern("a", "job:{n}", n="\\d+"), pattern("b", "job:{n}", n="[a-z]+")),
    (pattern("even", "{n}", n="(aa)+"), pattern("odd", "{n}", n="a(aa)*b?")),
    (pattern("a", "x{n}", n="\\d{3}"), pattern("b", "x{n}", n="\\d{4,}")),
])
def test_patterns_that_never_meet_are_not(check, first, second):
    assert check([first, second], code=0) == []


def test_the_witness_is_a_label_of_both_locks(check, holdfast, tmp_path):
    check([pattern("a", "{x}:{y}", x="[a-f]{2,5}"), pattern("b", "{x}:{y}", x="[e-z]+", y="\\d{3}")])
    witness = check.findings[0]["message"].split("'")[1]
    for other in ("[a-f]{2,5}", "[e-z]+"):
        path = hf_registry.write(tmp_path, [pattern("p", "{x}:{y}", x=other)], name="one.yaml")
        done = holdfast("key", "--json", "--registry", path, witness)
        assert json.loads(done.out)["keys"][0]["name"] == "p", witness


def test_patterns_of_different_derivations_that_meet_are_ambiguous(check):
    assert rules(check([pattern("a", "Op:{x}"), pattern("b", "Op:{y}", "fnv1a64")])) == ["patterns-ambiguous"]


def test_patterns_in_different_classes_have_different_keys(check):
    first, second = (f"name: {name}, expected: 3, key: {{ class: {number}, pattern: 'job:{{id}}', as: hashtext }}"
                     for name, number in (("a", 1), ("b", 2)))
    assert rules(check([first, second])) == ["patterns-ambiguous"]


def test_what_takes_too_many_states_is_reported_as_undecided(check):
    first = pattern("a", "{x}", x="(?:[ab]{1,1400}c){1,6}[ab]*z")
    second = pattern("b", "{x}", x="(?:[abc]{1,1300}d?){1,6}y")
    assert rules(check([first, second])) == ["patterns-undecided"]


def test_a_name_that_is_a_label_of_another_lock_is_found(check):
    found = check(["name: 'job:one', key: { fixed: 5000 }", pattern("b", "job:{n}")])
    assert found == [(3, 13, "name-is-label")]


def test_an_id_that_a_patterns_label_hits_is_found(check):
    key = hf.derive("wallet-backend-ingest-pubnet", Derivation.FNV1A64)
    found = check([f"name: a, key: {{ fixed: {key} }}",
                   pattern("b", "wallet-backend-ingest-{net}", "fnv1a64", net="testnet|pubnet")])
    assert rules(found) == ["id-is-hit"]
    assert "wallet-backend-ingest-pubnet" in check.findings[0]["message"]


# --- keys of different labels -------------------------------------------------------------------------


def compared(holdfast, path):
    return json.loads(holdfast("registry", "check", "--json", path).out)["compared"]


def test_two_labels_that_are_one_key_are_found_and_risk_and_doc_say_so(check, holdfast, tmp_path):
    found = check([pattern("a", "costarring", "fnv1a32"), pattern("b", "liquid", "fnv1a32")])
    assert [(line, rule) for line, _, rule in found] == [(4, "same-key")]
    message = check.findings[0]["message"]
    for word in ("'costarring'", "'liquid'", "1582148253", "a (line 3)"):
        assert word in message
    risk = json.loads(holdfast("registry", "risk", "--json", cwd=tmp_path).out)
    assert {(row["name"], row["shared"], row["probability"]) for row in risk["risks"]} == {
        ("fnv1a32", 1, 1), ("all bigint", 1, 1)}
    assert "certain: one key is shared already" in holdfast("registry", "doc", cwd=tmp_path).out


@pytest.mark.parametrize("first, second", [
    ("key: { pattern: '{w}', as: fnv1a32 }, placeholders: { w: [one, costarring] }",
     "key: { pattern: '{w}', as: fnv1a32 }, placeholders: { w: [liquid, two] }"),
    ("key: { class: 7, pattern: costarring, as: fnv1a32 }", "key: { class: 7, pattern: liquid, as: fnv1a32 }"),
    ("key: { pattern: costarring, as: fnv1a32 }", "key: { pattern: liquid, as: fnv1a32-js }"),
])
def test_keys_of_lists_classes_and_two_derivations_are_compared(check, first, second):
    assert rules(check([f"name: a, {first}", f"name: b, {second}"])) == ["same-key"]


def test_labels_of_one_pattern_that_share_a_key_are_found(check):
    found = check(["name: a, key: { pattern: '{w}', as: fnv1a32 }, placeholders: { w: [costarring, x, liquid] }"])
    assert rules(found) == ["same-key"]


def test_keys_in_different_spaces_and_distinct_keys_are_no_finding(check, holdfast, tmp_path):
    assert check(["name: a, key: { class: 7, pattern: costarring, as: fnv1a32 }",
                  "name: b, key: { class: 8, pattern: costarring2, as: fnv1a32 }",
                  "name: c, key: { pattern: liquid, as: fnv1a32 }"], code=0) == []
    assert compared(holdfast, tmp_path / "locks.yaml") == {"keys": 3, "not_enumerated": 0, "probability": 0}


def test_every_hit_is_found_however_late_the_label_comes(check):
    labels = ["Job:54321", "Job:99998", "Job:00007"]
    ids = [f"name: id{i}, key: {{ fixed: {hf.derive(label, Derivation.FNV1A64)} }}" for i, label in enumerate(labels)]
    found = check([*ids, pattern("b", "Job:{n}", "fnv1a64", n="\\d{5}")])
    assert rules(found) == ["id-is-hit"] * 3
    for finding, label in zip(check.findings, labels):
        assert f"'{label}'" in finding["message"]


def test_an_id_that_several_labels_hit_is_found_for_each(check):
    found = check(["name: id, key: { fixed: 1582148253 }", pattern("a", "costarring", "fnv1a32"),
                   pattern("b", "liquid", "fnv1a32")])
    assert sorted(rules(found)) == ["id-is-hit", "id-is-hit", "same-key"]


def test_a_pair_that_is_the_key_of_a_label_in_its_class_is_found(check):
    found = check(["name: id, key: { pair: [7, 1582148253] }",
                   "name: a, key: { class: 7, pattern: liquid, as: fnv1a32 }"])
    assert rules(found) == ["id-is-hit"]


def test_what_cannot_be_enumerated_is_told_with_its_odds(check, holdfast, tmp_path):
    found = check([pattern("days", "Day:{d}", "fnv1a32", d="\\d{4}-\\d{2}-\\d{2}").replace("10,", "1000,")], code=0)
    assert rules(found) == ["not-enumerated"]
    assert "100 000 000" in check.findings[0]["message"]
    assert "1 in 8 600" in check.findings[0]["message"]
    check([pattern("open", "Day:{d}", "fnv1a32").replace("10,", "1000,")], code=0)
    done = holdfast("registry", "check", cwd=tmp_path)
    assert "1 pattern has more labels" in done.err and "1 in 8 600" in done.err
    assert compared(holdfast, tmp_path / "locks.yaml")["not_enumerated"] == 1


def test_odds_that_nobody_can_tell_are_not_called_none(check, holdfast, tmp_path):
    check(["name: open, key: { pattern: 'Day:{d}' }"], code=0)
    done = holdfast("registry", "check", cwd=tmp_path)
    assert "not known, for not all say how many labels they expect" in done.err and "never" not in done.err
    check(["name: open, key: { pattern: 'Day:{d}' }", pattern("told", "Hour:{d}", "fnv1a32").replace("10,", "1000,")], code=0)
    assert "1 in 8 600 (0.0116 %), or more" in holdfast("registry", "check", cwd=tmp_path).err


def test_an_id_that_cannot_be_read_is_no_id(check):
    assert rules(check(["name: a, key: { fixed: 12x }", "name: b, key: { fixed: 0x }",
                        "name: c, key: { pair: [x, 1] }"])) == ["wrong-type"] * 3


def test_no_two_patterns_meet_in_the_empty_label(check):
    assert check([pattern("one", "{x}", x="[a-c]*"), pattern("two", "{x}", x="[0-9]*")], code=0) == []
    assert rules(check([pattern("one", "{x}", x="[a-c]*"), pattern("two", "{x}", x="[c-e]*")])) == ["patterns-meet"]
    assert "'c'" in check.findings[0]["message"]


def test_a_million_labels_are_compared(check, holdfast, tmp_path):
    # With fnv1a32 such numbers differ in all keys but few: what counts is that all are looked at.
    check([pattern("a", "N:{n}", n="\\d{6}")], code=0)
    assert compared(holdfast, tmp_path / "locks.yaml")["keys"] == 1000000


# --- conventions, sources, risk -------------------------------------------------------------------------


def test_labels_that_say_nothing_are_found(check):
    found = check(["name: global, key: { fixed: 5000 }", "name: a, key: { pattern: Lock }"])
    assert rules(found) == ["generic-label", "generic-label"]
    assert rules(check(["name: a, key: { pattern: stuff }"], conventions="generic: [stuff]")) == ["generic-label"]


def test_labels_against_the_convention_are_found(check):
    found = check(["name: a, key: { pattern: 'free-form' }", "name: b, key: { pattern: 'Op:{x}' }, expected: 1"],
                  conventions="label: 'Operation:resource'")
    assert [(line, rule) for line, _, rule in found] == [(3, "label-convention")]


def test_source_files_are_looked_for_beside_the_registry(check, tmp_path):
    (tmp_path / "there.c").touch()
    found = check(["name: a, key: { fixed: 5000 }, source: [there.c, gone.c]"])
    assert rules(found) == ["missing-source"]
    assert "gone.c" in check.findings[0]["message"]


@pytest.mark.parametrize("limit, code", [("0.5", 0), ("30%", 0), ("0.2", 1), ("1%", 1)])
def test_the_limit_of_the_risk_can_be_given(check, limit, code):
    locks = ["name: a, key: { pattern: 'A:{x}', as: fnv1a32 }, expected: 50000"]
    assert rules(check(locks, "--max-risk", limit, code=code)) == (["risk"] if code else [])


def test_a_pattern_that_does_not_say_how_many_labels_is_a_note_and_no_finding(check):
    assert rules(check(["name: a, key: { pattern: 'A:{x}', as: fnv1a32 }"], code=0)) == ["risk-unknown"]


# --- what is no registry ----------------------------------------------------------------------------------

HEAD = "version: 1\nlocks:\n"

BAD = {
    "broken YAML": ("version: [1\n", 2, 1, "yaml"),
    "an anchor that loops": ("a: &a [*a]\n", 1, 8, "yaml"),
    "a NUL byte": (b"version: 1\nlocks: \0\n", 2, 8, "yaml"),
    "invalid UTF-8": (b"version: 1\n# \xff\n", 2, 3, "yaml"),
    "a tab": (HEAD + "\t- name: a\n", 3, 1, "yaml"),
    "deep nesting": ("[" * 10000, 1, 33, "too-large"),
    "a duplicate key": (HEAD + "  - name: a\n    name: b\n    key: { fixed: 5000 }\n", 4, 5, "repeated-field"),
    "a number as a string": (HEAD + "  - name: a\n    key: { fixed: '5000' }\n", 4, 19, "number-as-string"),
    "an expression that explodes": (HEAD + "  - name: a\n    key: { pattern: '{b}' }\n"
                                    "    placeholders: { b: '((x{999}){999}){999}' }\n", 5, 24, "expression-limit"),
    "aliases that multiply": ("".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9 if i else ['x'] * 9)}]\n"
                                      for i in range(12)), 7, 6, "too-large"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_registry_is_refused_where_the_fault_stands(check, name):
    text, line, column, rule = BAD[name]
    found = check(text, code=EXIT_CONFIG)
    assert rule in rules(found)
    if name != "aliases that multiply":
        assert (line, column, rule) in found


@pytest.mark.parametrize("name", BAD)
def test_every_command_refuses_it_with_line_and_column(holdfast, tmp_path, name):
    text, line, column, _ = BAD[name]
    (tmp_path / "locks.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused = holdfast("run", "a", "true", cwd=tmp_path)
    assert refused.code == EXIT_CONFIG
    if name != "aliases that multiply":
        assert f"locks.yaml:{line}:{column}: " in refused.err


def test_other_line_ends_are_read(check):
    assert check((HEAD + "  - name: a\n    key: { fixed: 5000 }\n").replace("\n", "\r\n"), code=0) == []


def test_faults_of_the_schema_are_findings(check):
    found = check(HEAD + "  - name: a\n    kye: { fixed: 5000 }\n")
    assert rules(found) == ["missing-field", "unknown-field"]


@sanitizers.with_own_memory
def test_a_hundred_megabytes_are_refused_in_bounded_memory(holdfast, tmp_path):
    with open(tmp_path / "locks.yaml", "wb") as file:
        file.write(b"version: 1\nlocks:\n")
        line = b"  - { name: a, key: { fixed: 5000 } }\n" * 1000
        while file.tell() < 100_000_000:
            file.write(line)
    limit = "ulimit -v 300000; exec \"$@\""
    refused = holdfast("registry", "check", cwd=tmp_path, prefix=("sh", "-c", limit, "sh"))
    assert refused.code == EXIT_CONFIG
    assert "bytes" in refused.err + refused.out


def test_a_registry_that_is_not_there_is_refused(holdfast, tmp_path):
    for words in (["check"], ["check", tmp_path / "none.yaml"], ["check", tmp_path]):
        refused = holdfast("registry", *words, cwd=tmp_path)
        assert refused.code == EXIT_CONFIG, words
        assert refused.err.startswith("error: ")

"""holdfast registry lint: the samples of tests/lint, the files that it looks at, ignores and formats."""
import json
import re
import subprocess

import pytest

import hf

SAMPLES = hf.ROOT / "tests/lint"
EXIT_OK, EXIT_FINDINGS, EXIT_USAGE, EXIT_BAD_DATA, EXIT_CONFIG = 0, 1, 64, 65, 78

STRAY = "SELECT pg_advisory_xact_lock(987654321)"
REGISTRY = """
version: 1
locks:
  - name: report
    key: { fixed: 42424242 }
    lifetime: session
"""


@pytest.fixture
def lint(holdfast, tmp_path):
    """Lints below a folder of the test's own; its findings, as JSON gives them."""
    folder = tmp_path / "work"
    folder.mkdir()

    def run(*args, code=None, cwd=folder):
        done = holdfast("registry", "lint", "--json", *args, cwd=cwd)
        assert done.code in (EXIT_OK, EXIT_FINDINGS) if code is None else done.code == code, done.err
        return json.loads(done.out)

    run.folder = folder
    return run


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def rules(result):
    return sorted(finding["rule"] for finding in result["findings"])


def files(result):
    return sorted({finding["file"] for finding in result["findings"]})


# --- samples ----------------------------------------------------------------------------------------


def expected_in(path):
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.search(r"expect: ([a-z, -]+)", line)
        if match:
            found += [(number, rule.strip()) for rule in match.group(1).split(",")]
    return sorted(found)


@pytest.mark.parametrize("path", sorted((SAMPLES / "bad").iterdir()), ids=lambda p: p.name)
def test_bad_samples_have_exactly_the_findings_they_announce(lint, path):
    assert expected_in(path), "a bad sample announces something"
    result = lint("--registry", SAMPLES / "locks.yaml", "--confidence", "low", path.name, cwd=path.parent)
    assert sorted((f["line"], f["rule"]) for f in result["findings"]) == expected_in(path)


@pytest.mark.parametrize("path", sorted((SAMPLES / "good").iterdir()), ids=lambda p: p.name)
def test_good_samples_have_none(lint, path):
    result = lint("--registry", SAMPLES / "locks.yaml", "--confidence", "low", path.name, cwd=path.parent)
    assert result["findings"] == []


def test_every_language_has_a_good_and_a_bad_sample():
    wanted = set(".c .cpp .go .ts .js .py .rb .java .kt .cs .rs .php .ex .sql .prisma .pm .sh .xml .eex".split())
    for folder in ("good", "bad"):
        assert {path.suffix for path in (SAMPLES / folder).iterdir()} == wanted


# --- what a finding says ----------------------------------------------------------------------------


def test_a_finding_has_place_rule_sentence_and_remedy(lint):
    put(lint.folder, "a.py", f'é = 1; db.run("{STRAY}")\n')
    put(lint.folder, "locks.yaml", REGISTRY)
    (finding,) = lint()["findings"]
    assert (finding["file"], finding["line"]) == ("a.py", 1)
    assert finding["column"] == f'é = 1; db.run("{STRAY}")'.index("pg_advisory") + 1  # characters, not bytes
    assert finding["rule"] == "unregistered-id"
    assert "987654321" in finding["message"] and "locks.yaml" in finding["message"]
    assert finding["remedy"]


def test_people_get_a_line_and_a_summary(holdfast, lint):
    put(lint.folder, "a.py", 'db.run("SELECT pg_advisory_xact_lock(1)")\n')
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert done.code == EXIT_FINDINGS
    assert done.out.startswith("a.py:1:16: warning: pg_advisory_xact_lock(1)")
    assert "[common-id]" in done.out and "help:" in done.out
    assert "1 file, 1 warning" in done.err


def test_nothing_wrong_is_exit_0(holdfast, lint):
    put(lint.folder, "a.py", "print(1)\n")
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert (done.code, done.out) == (EXIT_OK, "")
    assert "1 file, no findings" in done.err


def test_without_a_registry_its_rules_are_off_and_a_note_says_so(holdfast, lint):
    put(lint.folder, "a.py", f'db.run("{STRAY}")\n')
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert done.code == EXIT_OK
    assert "no registry" in done.err


def test_a_broken_registry_is_refused_before_anything_is_looked_at(holdfast, lint):
    put(lint.folder, "locks.yaml", "version: 1\nlocks: [}\n")
    put(lint.folder, "a.py", 'db.run("SELECT pg_advisory_xact_lock(1)")\n')
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert (done.code, done.out) == (EXIT_CONFIG, "")
    assert "locks.yaml:2:" in done.err


def test_sarif_names_the_rules_and_the_places(holdfast, lint):
    put(lint.folder, "a.py", 'db.run("SELECT pg_advisory_xact_lock(1)")\n')
    done = holdfast("registry", "lint", "--format", "sarif", cwd=lint.folder)
    (run,) = json.loads(done.out)["runs"]
    assert "snapshot-trap" in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    (result,) = run["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (result["ruleId"], region["startLine"], region["startColumn"]) == ("common-id", 1, 16)


def test_github_gets_annotations(holdfast, lint):
    put(lint.folder, "a.py", 'db.run("SELECT pg_advisory_xact_lock(1)")\n')
    done = holdfast("registry", "lint", "--format", "github", cwd=lint.folder)
    assert done.out.startswith("::warning file=a.py,line=1,col=16")


# --- rules that need more than one file, or none ------------------------------------------------------


def test_patterns_of_the_registry_decide_exactly_whether_a_template_can_match(lint):
    put(lint.folder, "locks.yaml", """
version: 1
locks:
  - name: booking
    key: { pattern: "booking:{id}", as: hashtext }
    placeholders: { id: "\\\\d+" }
""")
    put(lint.folder, "a.py", '''
db.run(f"SELECT pg_advisory_xact_lock(hashtext('booking:{x}'))")
db.run(f"SELECT pg_advisory_xact_lock(hashtext('booking:{x}:late'))")
db.run("SELECT pg_advisory_xact_lock(hashtext('booking:12'))")
db.run("SELECT pg_advisory_xact_lock(hashtext('booking:twelve'))")
''')
    found = lint("--rule", "unregistered-label")["findings"]
    assert [f["line"] for f in found] == [3, 5]


def test_locks_of_one_entry_go_by_their_keys(lint, holdfast):
    put(lint.folder, "locks.yaml", """
version: 1
locks:
  - name: seat
    key: { pattern: "seat:{n}", as: sha256 }
    order: 1
""")
    keys = {label: int(holdfast("key", "--as", "sha256", label, cwd=lint.folder).out)
            for label in ("seat:1", "seat:2")}
    low, high = sorted(keys, key=keys.get)
    put(lint.folder, "right.c", f'void f(void) {{\n g(HF_LABEL("{low}"),\n HF_LABEL("{high}")); }}\n')
    put(lint.folder, "wrong.c", f'void f(void) {{\n g(HF_LABEL("{high}"),\n HF_LABEL("{low}")); }}\n')
    assert [(f["file"], f["line"], f["rule"]) for f in lint()["findings"]] == [("wrong.c", 3, "lock-order")]


def test_pairs_and_classes_are_looked_up(lint):
    put(lint.folder, "locks.yaml", """
version: 1
locks:
  - name: both
    key: { pair: [7, 8] }
  - name: by-class
    key: { class: 9, pattern: "shop:{id}", as: hashtext }
""")
    put(lint.folder, "a.sql", """
SELECT pg_advisory_xact_lock(7, 8);
SELECT pg_advisory_xact_lock(7, 9);
SELECT pg_advisory_xact_lock(9, hashtext('shop:1'));
SELECT pg_advisory_xact_lock(9, hashtext('other'));
""")
    found = lint("--rule", "unregistered-id", "--rule", "unregistered-label")["findings"]
    assert [(f["line"], f["rule"]) for f in found] == [(3, "unregistered-id"), (5, "unregistered-label")]


def test_low_confidence_is_reported_only_when_asked_for(lint):
    put(lint.folder, "a.py", '''
def f(cur):
    cur.execute("SELECT name FROM users")
    cur.execute("SELECT pg_advisory_xact_lock(12345678)")
''')
    assert lint()["findings"] == []
    (finding,) = lint("--confidence", "low")["findings"]
    assert (finding["rule"], finding["confidence"]) == ("lock-after-read", "low")


def test_rules_can_be_chosen(lint):
    put(lint.folder, "a.py", 'db.run("SELECT pg_advisory_lock(1)")\n')
    assert rules(lint()) == ["common-id", "session-lock-without-unlock"]
    assert rules(lint("--rule", "common-id")) == ["common-id"]
    assert rules(lint("--no-rule", "common-id")) == ["session-lock-without-unlock"]


def test_the_rules_are_listed(holdfast):
    done = holdfast("registry", "lint", "--list-rules")
    assert done.code == EXIT_OK
    assert "snapshot-trap" in done.out and "unlock-result-ignored" in done.out


def test_a_note_does_not_fail_a_build(lint):
    put(lint.folder, "a.py", 'db.run("SELECT pg_advisory_lock(123456789)")\n')
    assert rules(lint(code=EXIT_OK)) == ["session-lock-without-unlock"]


@pytest.mark.parametrize("text,derivation", [
    ("hashtext('booking:' || id)", "hashtext"), ("hashtextextended('booking:1', 7)", "hashtextextended"),
    ("abs(hashtext('booking:1'))", "hashtext")])
def test_another_hash_or_seed_is_another_lock_also_with_holes(lint, text, derivation):
    put(lint.folder, "locks.yaml", f"""
version: 1
locks:
  - name: booking
    key: {{ pattern: "booking:{{id}}", as: {"sha256" if "||" in text else derivation} }}
""")
    put(lint.folder, "a.sql", f"SELECT pg_advisory_xact_lock({text});\n")
    assert rules(lint("--rule", "wrong-derivation")) == ["wrong-derivation"]


@pytest.mark.parametrize("args", [["--rule", "nonsense"], ["--no-rule", "x"], ["--confidence", "some"],
                                  ["--format", "xml"]])
def test_a_wrong_option_is_refused(holdfast, args, tmp_path):
    done = holdfast("registry", "lint", *args, cwd=tmp_path)
    assert (done.code, done.out) == (EXIT_USAGE, "")


# --- every use is accounted for -----------------------------------------------------------------------

COMPUTED = 'def f(db):\n    db.run("SELECT pg_advisory_xact_lock(%s)", [secrets.randbelow(9)])\n'


def test_a_key_that_cannot_be_read_is_a_finding_not_a_registered_lock(lint):
    put(lint.folder, "locks.yaml", REGISTRY)
    put(lint.folder, "a.py", COMPUTED)
    result = lint(code=EXIT_FINDINGS)
    assert [(f["line"], f["rule"]) for f in result["findings"]] == [(2, "unresolved-key")]


def test_a_pair_with_an_unknown_class_is_unresolved_too(lint):
    put(lint.folder, "locks.yaml", REGISTRY)
    put(lint.folder, "a.sql", "SELECT pg_advisory_xact_lock(random(), hashtext('a'));\n")
    assert "unresolved-key" in rules(lint())


def test_the_ledger_says_what_became_of_every_site(lint, holdfast):
    put(lint.folder, "locks.yaml", REGISTRY)
    put(lint.folder, "a.py", COMPUTED + """
    db.run("SELECT pg_advisory_lock(42424242)")
    db.run("SELECT pg_advisory_xact_lock(987654321)")
    db.run("SELECT pg_advisory_xact_lock(987654322)")  # holdfast-ignore: unregistered-id a guest's
    assert db.run("SELECT pg_advisory_unlock(42424242)").one()
""")
    ledger = lint()["ledger"]
    assert ledger == {"sites": 4, "registered": 1, "unregistered": 1, "read": 0, "unresolved": 1, "passed_on": 0,
                      "ignored": 1, "release": 1}
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert done.err.endswith("4 lock sites: 1 registered, 1 unregistered, 1 unresolved, 1 ignored\n")


def test_a_rule_that_is_off_hides_a_finding_but_not_the_site(lint):
    put(lint.folder, "locks.yaml", REGISTRY)
    put(lint.folder, "a.py", COMPUTED)
    result = lint("--no-rule", "unresolved-key")
    assert (result["findings"], result["ledger"]["unresolved"]) == ([], 1)


def test_all_uses_are_listed_for_people_and_for_programs(lint, holdfast):
    put(lint.folder, "locks.yaml", REGISTRY)
    put(lint.folder, "a.py", COMPUTED + '    db.run("SELECT pg_try_advisory_lock(42424242)")\n')
    uses = lint("--list", code=EXIT_OK)["uses"]
    assert [(u["line"], u["outcome"], u["key"], u["name"]) for u in uses] == \
        [(2, "unresolved", None, None), (3, "registered", "42424242", "report")]
    assert uses[0]["why"] and uses[1]["call"] == "pg_try_advisory_lock" and uses[1]["lifetime"] == "session"
    done = holdfast("registry", "lint", "--list", cwd=lint.folder)
    assert done.code == EXIT_OK
    assert "a.py:3:20" in done.out and "report" in done.out and "unresolved" in done.out


# --- wrappers, and keys that are put together ---------------------------------------------------------


def keys(lint, *args):
    return [(u["file"], u["line"], u["outcome"], u["key"]) for u in lint("--list", *args)["uses"]
            if u["outcome"] not in ("release", "passed on")]


def test_a_function_that_locks_its_parameter_is_a_wrapper_and_its_callers_are_sites(lint):
    put(lint.folder, "locks.yaml", REGISTRY)
    put(lint.folder, "lock.go", """package lock

func Acquire(ctx context.Context, conn *sql.Conn, key int64) error {
	query := `SELECT pg_advisory_lock($1)`
	_, err := conn.ExecContext(ctx, query, key)
	return err
}
""")
    put(lint.folder, "jobs/report.go", """package jobs

func Run(ctx context.Context, conn *sql.Conn) {
	lock.AcquireFor(ctx, conn, 5)
	lock.AcquireIt(ctx, conn, 42424242)
	lock.AcquireIt(ctx, conn, locks.Cleanup)
}
""")
    put(lint.folder, "locks/ids.go", "package locks\n\nconst (\n\tReport = iota + 7000\n\tCleanup // why\n)\n")
    text = (lint.folder / "lock.go").read_text().replace("func Acquire(", "func AcquireIt(")
    put(lint.folder, "lock.go", text)
    assert keys(lint) == [("jobs/report.go", 5, "registered", "42424242"),
                          ("jobs/report.go", 6, "unregistered", "7001")]
    assert rules(lint("--rule", "unregistered-id", "--rule", "unresolved-key")) == ["unregistered-id"]


def test_a_wrapper_that_nobody_calls_is_reported_once_where_it_is_defined(lint):
    put(lint.folder, "locks.yaml", REGISTRY)
    put(lint.folder, "a.py", """
def hold(cur, key):
    cur.execute("SELECT pg_try_advisory_xact_lock(%s)", [key])
    cur.execute("SELECT pg_advisory_xact_lock(%s)", [key])
""")
    found = lint("--rule", "unresolved-key")["findings"]
    assert [(f["line"], f["rule"]) for f in found] == [(2, "unresolved-key")]


def test_callers_that_cannot_be_read_are_one_finding_at_the_wrapper(lint):
    put(lint.folder, "locks.yaml", REGISTRY)
    put(lint.folder, "a.py", """
def hold(cur, key):
    cur.execute("SELECT pg_advisory_xact_lock(%s)", [key])

def use(cur, config):
    hold(cur, 42424242)
    hold(cur, config.one())
    hold(cur, config.two())
""")
    found = lint("--rule", "unresolved-key")["findings"]
    assert [f["line"] for f in found] == [2]
    assert "2 of 3" in found[0]["message"]


def test_a_wrapper_may_be_declared(lint):
    put(lint.folder, "locks.yaml", REGISTRY + """
  - name: booking
    key: { pattern: "booking:{id}", as: fnv1a64 }
wrappers:
  - call: "Serialize(ctx, {label})"
    as: fnv1a64
    lifetime: transaction
""")
    put(lint.folder, "a.go", """package a

func f(ctx context.Context, id string) {
	store.Serialize(ctx, fmt.Sprintf("booking:%s", id))
	store.Serialize(ctx, "other:1")
}
""")
    result = lint()
    assert [(f["line"], f["rule"]) for f in result["findings"]] == [(5, "unregistered-label")]
    assert [(u["key"], u["derivation"], u["lifetime"]) for u in lint("--list")["uses"]] == \
        [("'booking:…'", "fnv1a64", "transaction"), ("'other:1'", "fnv1a64", "transaction")]


@pytest.mark.parametrize("wrapper", ["call: 5", "call: Serialize", "call: \"f({a}, {b})\"", "as: sha256",
                                     "{call: \"f({x})\", as: md4}"])
def test_a_wrapper_that_makes_no_sense_is_refused_with_its_place(holdfast, lint, wrapper):
    put(lint.folder, "locks.yaml", REGISTRY + f"wrappers:\n  - {wrapper}\n")
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert done.code == EXIT_CONFIG
    assert re.search(r"locks.yaml:8:\d+: ", done.err)


FNV = {
    "a.ts": ("""
function hashString(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  return hash | 0;
}
export async function f(tx: Tx, id: string) {
  await tx.query('SELECT pg_advisory_xact_lock($1)', [hashString(`Job:${id}`)]);
}
""", "fnv1a32-js"),
    "a.go": ("""package a

func hashString(s string) int64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return int64(h.Sum64())
}

func f(tx *sql.Tx, id string) {
	tx.Exec("SELECT pg_advisory_xact_lock($1)", hashString("Job:" + id))
}
""", "fnv1a64"),
    "a.py": ("""
def hash_string(text):
    h = 2166136261
    for b in text.encode():
        h = ((h ^ b) * 16777619) & 0xffffffff
    return h - 0x100000000 if h & 0x80000000 else h

def f(cur, id):
    cur.execute("SELECT pg_advisory_xact_lock(%s)", [hash_string(f"Job:{id}")])
""", "fnv1a32"),
}


@pytest.mark.parametrize("name", FNV)
def test_fnv1a_is_recognised_by_its_constants(lint, name):
    put(lint.folder, name, FNV[name][0])
    assert [(u["key"], u["derivation"]) for u in lint("--list")["uses"]] == [("'Job:…'", FNV[name][1])]


def test_what_a_helper_puts_before_its_parameter_belongs_to_the_label(lint):
    put(lint.folder, "a.go", FNV["a.go"][0].replace("[]byte(s)", '[]byte("app:" + s)'))
    assert [u["key"] for u in lint("--list")["uses"]] == ["'app:Job:…'"]


BUILT = {
    "a.py": ["f\"Job:{x}\"", "'Job:%s' % x", "'Job:%s' % (x,)", "'Job:{}'.format(x)", "'Job:' + str(x)",
             "'Job:{n}'.format(n=x)", "':'.join(['Job', x])", "('Job:'\n    '%s' % x)"],
    "a.go": ["fmt.Sprintf(\"Job:%d\", x)", "\"Job:\" + x", "strings.Join([]string{\"Job\", x}, \":\")"],
    "a.ts": ["`Job:${x}`", "'Job:' + x", "['Job', x].join(':')", "'Job:'\n  + x"],
    "a.rs": ["format!(\"Job:{}\", x)", "format!(\"Job:{x}\")", "format!(\n    \"Job:{}\",\n    x,\n  )"],
    "a.rb": ["\"Job:#{x}\"", "'Job:' + x", "format('Job:%s', x)", "'Job:%s' % x"],
    "a.java": ["String.format(\"Job:%s\", x)", "\"Job:\" + x"],
    "a.kt": ["\"Job:$x\"", "\"Job:${x}\""],
    "a.cs": ["$\"Job:{x}\"", "string.Format(\"Job:{0}\", x)"],
    "a.php": ["'Job:' . $x", "\"Job:$x\"", "\"Job:{$x}\"", "sprintf('Job:%s', $x)"],
    "a.ex": ["\"Job:#{x}\"", "\"Job:\" <> x"],
}
CALL = {"a.rs": "fn f() {{ sqlx::query(\"SELECT pg_advisory_xact_lock(hashtext($1))\").bind({}); }}\n",
        "a.ex": "def f(x) do\n  Repo.query(\"SELECT pg_advisory_xact_lock(hashtext($1))\", [{}])\nend\n",
        "a.php": "<?php $db->run('SELECT pg_advisory_xact_lock(hashtext(?))', [{}]);\n"}


@pytest.mark.parametrize("name,expression", [(n, e) for n, many in BUILT.items() for e in many])
def test_labels_that_are_put_together_are_read_with_holes(lint, name, expression):
    put(lint.folder, name, CALL.get(name, "db.run('SELECT pg_advisory_xact_lock(hashtext($1))', [{}]);\n"
                                    .replace("'", '"') if name != "a.py" else
                                    "db.run('SELECT pg_advisory_xact_lock(hashtext(%s))', [{}])\n").format(expression))
    assert [u["key"] for u in lint("--list")["uses"]] == ["'Job:…'"]


def test_sql_puts_labels_together_too(lint):
    put(lint.folder, "a.sql", """
SELECT pg_advisory_xact_lock(hashtext('Job:' || id)) FROM t;
SELECT pg_advisory_xact_lock(hashtext(concat('Job:', id))) FROM t;
SELECT pg_advisory_xact_lock(hashtext(format('Job:%s', id))) FROM t;
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(':', 'Job', id), 0)) FROM t;
""")
    assert [u["key"] for u in lint("--list")["uses"]] == ["'Job:…'"] * 4


def test_numbers_are_followed_to_where_they_are_written(lint):
    put(lint.folder, "ids.ts", "export enum Locks {\n  Report = 4711,\n  Import = 4712,\n}\n")
    put(lint.folder, "a.ts", """
const LOCKS = { cleanup: 4713 };
await db.query('SELECT pg_advisory_xact_lock($1)', [Locks.Report]);
await db.query('SELECT pg_advisory_xact_lock($1)', [BigInt('4714')]);
await db.query(`SELECT pg_advisory_xact_lock(${LOCKS.cleanup})`);
""")
    put(lint.folder, "a.py", """
class Locks(enum.IntEnum):
    REPORT = enum.auto()
    CLEANUP = enum.auto()

KEYS = {'import': 4715}

def f(cur):
    cur.execute("SELECT pg_advisory_xact_lock(%s)", [Locks.CLEANUP.value])
    cur.execute("SELECT pg_advisory_xact_lock(%s)", [KEYS['import']])
""")
    put(lint.folder, "A.cs", 'class A { void F() { new PostgresAdvisoryLockKey(3, 5); } }\n')
    assert [key for _, _, _, key in keys(lint)] == ["(3, 5)", "2", "4715", "4711", "4714", "4713"]


# --- ignores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    'f("SELECT pg_advisory_xact_lock(1)")  # holdfast-ignore: common-id only in tests\n',
    '# holdfast-ignore: common-id only in tests\nf("SELECT pg_advisory_xact_lock(1)")\n',
    '# holdfast-ignore: common-id only in tests\n# and more to say\nf("SELECT pg_advisory_xact_lock(1)")\n',
    'f("""\n-- holdfast-ignore: common-id only in tests\nSELECT pg_advisory_xact_lock(1)""")\n',
])
def test_an_ignore_covers_its_line_or_the_next_and_is_counted(lint, text):
    put(lint.folder, "a.py", text)
    result = lint()
    assert result["findings"] == []
    assert result["counts"]["ignored"] == 1


def test_an_ignore_may_name_several_rules(lint):
    put(lint.folder, "a.go",
        '// holdfast-ignore: common-id, session-lock-without-unlock the process is short\n'
        'var q = f("SELECT pg_advisory_lock(1)")\n')
    result = lint()
    assert (result["findings"], result["counts"]["ignored"]) == ([], 2)


def test_an_ignore_covers_no_other_rule_and_no_other_line(lint):
    put(lint.folder, "a.py", '''
# holdfast-ignore: common-id only in tests
f("SELECT pg_advisory_lock(1)")
f("SELECT pg_advisory_xact_lock(2)")
''')
    assert [(f["line"], f["rule"]) for f in lint()["findings"]] == \
        [(3, "session-lock-without-unlock"), (4, "common-id")]


def test_an_ignore_without_a_reason_works_and_is_a_finding(lint):
    put(lint.folder, "a.c", 'f("SELECT pg_advisory_xact_lock(1)"); /* holdfast-ignore: common-id */\n')
    result = lint()
    assert (rules(result), result["counts"]["ignored"]) == (["ignore-without-reason"], 1)


def test_an_ignore_of_an_unknown_rule_is_a_finding(lint):
    put(lint.folder, "a.py", "# holdfast-ignore: comon-id a slip of the hand\n")
    assert rules(lint()) == ["unknown-rule"]


def test_an_ignore_of_nothing_is_a_finding(lint):
    put(lint.folder, "a.py", "x = 1  # holdfast-ignore: common-id was needed once\n")
    assert rules(lint()) == ["unused-ignore"]


def test_an_ignore_of_a_rule_that_is_off_is_not_called_unused(lint):
    put(lint.folder, "a.py", f'f("{STRAY}")  # holdfast-ignore: unregistered-id not ours\n')
    assert rules(lint()) == []  # no registry: the rule is off
    assert rules(lint("--no-rule", "common-id")) == []


def test_a_comment_about_ignore_comments_ignores_nothing(lint):
    put(lint.folder, "a.py", "# write `holdfast-ignore: RULE reason` above the line\nx = 'holdfast-ignore: x'\n")
    assert lint()["findings"] == []


# --- which files ------------------------------------------------------------------------------------


def test_folders_are_walked_in_order_and_files_are_taken_by_suffix(lint):
    for name in ("b/z.py", "b/a.ts", "a.go", "c.txt", ".hidden/x.sql", "x.PY"):
        put(lint.folder, name, 'f("SELECT pg_advisory_xact_lock(1)")\n')
    seen = [f["file"] for f in lint()["findings"]]
    assert seen == [".hidden/x.sql", "a.go", "b/a.ts", "b/z.py", "x.PY"]


def test_include_adds_files_by_glob(lint):
    for name in ("run.tcl", "deep/er/run.tcl", "db/x.txt", "other/x.txt"):
        put(lint.folder, name, 'psql -c "SELECT pg_advisory_xact_lock(1)"\n# SELECT pg_advisory_xact_lock(2)\n')
    assert files(lint("--include", "*.tcl")) == ["deep/er/run.tcl", "run.tcl"]
    assert files(lint("--include", "db/**/*.txt", "--include", "/run.tcl")) == ["db/x.txt", "run.tcl"]


def test_folders_of_other_peoples_code_are_left_out_and_told(lint, holdfast):
    for name in ("node_modules/x/a.js", "api/vendor/b.go", ".venv/lib/c.py", "vendors/d.py"):
        put(lint.folder, name, 'f("SELECT pg_advisory_xact_lock(1)")\n')
    assert files(lint()) == ["vendors/d.py"]
    assert "3 vendored folders left out" in holdfast("registry", "lint", cwd=lint.folder).err
    assert len(files(lint("--vendored"))) == 4
    assert files(lint("node_modules/x")) == ["node_modules/x/a.js"]  # what is named is looked at


def test_exclude_leaves_out_files_and_folders_by_glob(lint):
    for name in ("a.py", "gen/b.py", "deep/gen/c.py", "d_test.go"):
        put(lint.folder, name, 'f("SELECT pg_advisory_xact_lock(1)")\n')
    assert files(lint("--exclude", "gen", "--exclude", "*_test.go")) == ["a.py"]
    assert files(lint("--exclude", "/gen")) == ["a.py", "d_test.go", "deep/gen/c.py"]


def test_a_baseline_accepts_what_is_there_and_nothing_more(lint, holdfast):
    put(lint.folder, "a.py", 'f("SELECT pg_advisory_xact_lock(1)")\n')
    assert holdfast("registry", "lint", "--write-baseline", "accepted", cwd=lint.folder).code == EXIT_OK
    assert lint("--baseline", "accepted", code=EXIT_OK)["baseline"] == {"accepted": 1, "gone": 0}
    put(lint.folder, "a.py", '\n\n# moved\nf("SELECT pg_advisory_xact_lock(1)")\n' * 2)
    result = lint("--baseline", "accepted", code=EXIT_FINDINGS)
    assert (rules(result), result["baseline"]["accepted"]) == (["common-id"], 1)
    put(lint.folder, "a.py", "x = 1\n")
    done = holdfast("registry", "lint", "--baseline", "accepted", cwd=lint.folder)
    assert done.code == EXIT_OK
    assert "gone" in done.err


@pytest.mark.parametrize("text,place", [(None, "accepted"), ("common-id only\n", "accepted:1:1"),
                                        ("# fine\n\nx\ty\n", "accepted:3:1")])
def test_a_baseline_that_is_none_is_refused(lint, holdfast, text, place):
    if text is not None:
        put(lint.folder, "accepted", text)
    done = holdfast("registry", "lint", "--baseline", "accepted", cwd=lint.folder)
    assert (done.code, done.out) == (EXIT_BAD_DATA, "")
    assert place in done.err


def test_a_file_that_is_named_is_taken_whatever_its_name_and_gitignore_say(lint):
    put(lint.folder, ".gitignore", "*\n")
    put(lint.folder, "notes.txt", "SELECT pg_advisory_xact_lock(1);\n")
    assert files(lint("notes.txt")) == ["notes.txt"]
    put(lint.folder, ".gitignore", "*\n!b.py\n")
    put(lint.folder, "b.py", "pass\n")
    assert files(lint(".")) == []


@pytest.mark.parametrize("options", [(), ("--list",), (".", "also")])
def test_where_nothing_is_looked_at_nothing_is_said_to_be_right(holdfast, tmp_path, options):
    put(tmp_path, ".gitignore", "*.py\n")
    put(tmp_path, "a.py", "pass\n")
    put(tmp_path, "also/notes.txt", "none\n")
    done = holdfast("registry", "lint", *options, cwd=tmp_path)
    assert done.code == EXIT_BAD_DATA and "no source file in" in done.err and "hint:" in done.err


def test_a_file_that_two_paths_lead_to_is_reported_once(lint):
    put(lint.folder, "src/a.py", 'f("SELECT pg_advisory_xact_lock(1)")\n')
    assert len(lint(".", "src", "src/a.py")["findings"]) == 1


@pytest.mark.parametrize("missing", ["nowhere", "a.py/b"])
def test_a_missing_path_is_an_error_before_anything_is_printed(holdfast, lint, missing):
    put(lint.folder, "a.py", 'f("SELECT pg_advisory_xact_lock(1)")\n')
    done = holdfast("registry", "lint", "a.py", missing, cwd=lint.folder)
    assert (done.code, done.out) == (EXIT_BAD_DATA, "")
    assert missing in done.err


def test_links_are_not_followed_and_a_loop_ends(lint, tmp_path):
    put(lint.folder, "src/a.py", 'f("SELECT pg_advisory_xact_lock(1)")\n')
    put(tmp_path / "outside", "b.py", 'f("SELECT pg_advisory_xact_lock(1)")\n')
    (lint.folder / "src/loop").symlink_to("..")
    (lint.folder / "src/again.py").symlink_to("a.py")
    (lint.folder / "src/out").symlink_to(tmp_path / "outside")
    assert files(lint()) == ["src/a.py"]
    assert files(lint("src/out")) == ["src/out/b.py"]  # a link that is named is


def test_binary_files_are_skipped_and_counted(holdfast, lint):
    put(lint.folder, "a.py", b'f("SELECT pg_advisory_xact_lock(1)")\n\0')
    put(lint.folder, "b.py", b"x = 1\n")
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert done.code == EXIT_OK
    assert "1 file (1 skipped)" in done.err


def test_a_huge_file_is_skipped_with_a_warning(holdfast, lint):
    put(lint.folder, "big.sql", b"SELECT pg_advisory_lock(1);\n" + b"-- x\n" * (2 * 1024 * 1024))
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert done.code == EXIT_OK
    assert "warning" in done.err and "big.sql" in done.err and "8 MiB" in done.err


def test_invalid_utf8_is_read_and_shown_safely(holdfast, lint):
    put(lint.folder, "a.py", b"# \xff\xfe \xc3\nx = 'caf\xe9'; f(\"SELECT pg_advisory_xact_lock(hashtext('caf\xe9\x1b[31m'))\")\n")
    (finding,) = lint()["findings"]
    assert (finding["line"], finding["rule"]) == (2, "hashtext")
    done = holdfast("registry", "lint", cwd=lint.folder)
    assert "\x1b" not in done.out


def test_an_unreadable_file_is_a_warning(holdfast, lint, unprivileged):
    put(lint.folder, "a.py", 'f("SELECT pg_advisory_xact_lock(1)")\n')
    put(lint.folder, "secret.py", "x\n")
    (lint.folder / "secret.py").chmod(0)
    done = holdfast("registry", "lint", cwd=lint.folder, prefix=unprivileged)
    assert done.code == EXIT_FINDINGS, done.err
    assert "secret.py" in done.err and "Permission denied" in done.err


def test_strings_that_never_end_are_survived(lint):
    for name, text in {"a.py": '"""', "b.rb": "<<~SQL\nx", "c.rs": 'r#"x', "d.cpp": 'R"(', "e.ts": "`${`${",
                       "f.php": "<?php <<<X\n", "g.sql": "$a$ '", "h.ex": '~s(', "i.kt": '"""${', "j.c": "/* '",
                       "k.cs": '@"', "l.go": "`"}.items():
        put(lint.folder, name, f"pg_advisory_lock( {text}")
        put(lint.folder, "2" + name, f"{text} SELECT pg_advisory_lock(")
    lint()


@pytest.mark.parametrize("name,text", [
    ("a.ts", "f('SELECT pg_advisory_xact_lock(1)', () => { " * 20000),
    ("b.py", "'' + " * 200000 + "'SELECT pg_advisory_xact_lock(1)'"),
    ("c.sql", "SELECT pg_advisory_xact_lock('" * 50000),
    ("d.js", "=/[" * 500000 + "'SELECT pg_advisory_xact_lock(1)'"),
    ("e.txt", "SELECT pg_advisory_xact_lock(?) " * 50000),
    ("f.xml", "<sql>SELECT pg_advisory_xact_lock(1) " * 50000),
    ("g.go", 'func fun(k int) { g("SELECT pg_advisory_xact_lock($1)", k) }; fun(1) \n' * 5000),
    ("h.py", "def fun(k):\n  a = " + "(" * 20000 + "'SELECT pg_advisory_xact_lock(%s)' % k\n"),
], ids=lambda value: value if len(value) < 6 else "")
def test_a_file_of_one_long_line_ends_in_time(lint, name, text):
    put(lint.folder, name, text)
    lint("--include", "*.txt")


def test_too_many_locks_in_one_file_are_reported_as_such(lint):
    put(lint.folder, "a.sql", "SELECT pg_advisory_xact_lock(123456789);\n" * 6000)
    assert rules(lint()) == ["match-limit"]


# --- .gitignore: git itself is the judge ----------------------------------------------------------------

TREE = ["a.py", "b.py", "keep.py", "x/a.py", "x/b.py", "x/y/a.py", "x/y/b.py", "x/y/z/a.py", "build/a.py",
        "x/build/a.py", "logs/x.py", "logs/deep/x.py", "foo bar.py", "foo.py ", "#hash.py", "!bang.py", "a[1].py",
        "doc/a.py", "doc/sub/a.py", "doc/sub/keep.py", "A.py", "x/y/build.py", "back\\slash.py", "é.py", "-dash.py",
        "x/caret^.py", "abc/def/ghi.py", "abc/ghi.py", "tmp1/a.py", "tmp2/a.py", "vendor/lib/a.py"]

PATTERNS = [
    "a.py", "/a.py", "*.py\n!keep.py", "build/", "build", "/build", "x/y/", "x/*", "x/**", "**/a.py", "x/**/a.py",
    "**/build/", "**", "*", "doc/\n!doc/sub/keep.py", "doc/*\n!doc/sub/\ndoc/sub/*\n!doc/sub/keep.py", "foo bar.py",
    "foo.py\\ ", "foo.py ", "\\#hash.py", "#hash.py", "\\!bang.py", "!bang.py", "a[1].py", "a\\[1\\].py", "[ab].py",
    "[!a].py", "[^a].py", "[a-b].py", "[b-a].py", "[[:alpha:]].py", "[[:upper:]].py", "[[:nope:]].py", "[abc", "?.py",
    "x?a.py", "x/?/a.py", "abc/**/ghi.py", "abc/*/ghi.py", "a**.py", "**b.py", "x/y**", "tmp[0-9]/", "*/a.py",
    "/*/a.py", "x/", "x", "/", "//", "!", "a.py\r", "a.py   ", "  a.py", "back\\\\slash.py", "back\\slash.py", "é.py",
    "-dash.py", "x/caret^.py", "x/caret[^a].py", "[]-a].py", "[\\]a].py", "***/a.py", "x/***/a.py", "\\a.py", "a.py\\",
    "vendor/\n!vendor/lib/", "logs/**/x.py", "logs/**", "!logs\nlogs/", "*.py\n!x/\n!*/a.py", "[a\\-c].py", "{a,b}.py",
    "/x/y", "x/y/b.py\n!x/y/b.py", "[!", "[!]a]*.py", "*[", "\\*", "a.p*y", "*a*.p*", "\ufeffa.py",
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ignored")
    for name in TREE:
        put(folder, name, 'f("SELECT pg_advisory_xact_lock(1)")\n')
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def kept_by_git(folder):
    command = ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout.decode().split("\0")
    return sorted(name for name in names if name.endswith(".py"))


@pytest.mark.parametrize("patterns", PATTERNS)
def test_gitignore_means_what_git_says(holdfast, tree, patterns):
    put(tree, ".gitignore", patterns + "\n")
    done = holdfast("registry", "lint", "--json", "--vendored", cwd=tree)
    found = json.loads(done.out)["findings"] if done.code != EXIT_BAD_DATA else []  # no file is left
    assert sorted({f["file"] for f in found}) == kept_by_git(tree)


@pytest.mark.parametrize("start", [".", "x", "x/y"])
def test_nested_gitignores_win_and_those_above_count_from_any_folder(holdfast, tree, start):
    put(tree, ".gitignore", "b.py\n/x/y/a.py\nz/\n")
    put(tree, "x/.gitignore", "!b.py\n/build\n")
    put(tree, "x/y/.gitignore", "!a.py\n")
    try:
        done = holdfast("registry", "lint", "--json", "--vendored", cwd=tree / start)
        seen = sorted({f["file"] for f in json.loads(done.out)["findings"]})
        assert seen == kept_by_git(tree / start)
    finally:
        (tree / "x/.gitignore").unlink()
        (tree / "x/y/.gitignore").unlink()


def test_without_a_repository_gitignore_counts_from_the_folder_down(lint):
    put(lint.folder, ".gitignore", "*.py\n")
    put(lint.folder, "x/.gitignore", "!a.py\n")
    for name in ("a.py", "x/a.py", "x/b.py"):
        put(lint.folder, name, 'f("SELECT pg_advisory_xact_lock(1)")\n')
    assert files(lint()) == ["x/a.py"]
    assert files(lint("x")) == ["x/a.py", "x/b.py"]


def test_a_repository_inside_has_rules_of_its_own(lint):
    put(lint.folder, ".gitignore", "*.py\n")
    put(lint.folder, "sub/a.py", 'f("SELECT pg_advisory_xact_lock(1)")\n')
    for folder in (".", "sub"):
        subprocess.run(["git", "init", "-q", folder], cwd=lint.folder, check=True)
    assert files(lint()) == ["sub/a.py"]


def test_git_itself_is_never_looked_into(lint):
    subprocess.run(["git", "init", "-q"], cwd=lint.folder, check=True)
    put(lint.folder, ".git/hooks/a.py", 'f("SELECT pg_advisory_xact_lock(1)")\n')
    put(lint.folder, "b.py", "pass\n")
    assert lint()["findings"] == []

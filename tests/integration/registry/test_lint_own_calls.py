"""holdfast registry lint: Holdfast's own calls, in SQL and in its bindings, are judged like others."""
import json

import pytest

REGISTRY = """
version: 1
locks:
  - { name: account, key: { pattern: "Account:{id}", as: sha256 } }
  - { name: nightly, key: { pattern: "nightly", as: sha256 } }
  - { name: old, key: { pattern: "Old:{id}", as: hashtext } }
  - { name: number, key: { fixed: 42424242 } }
  - { name: pair, key: { pair: [7771, 8881] } }
"""


@pytest.fixture
def judged(holdfast, tmp_path):
    """What lint says about files: the (outcome, key) of each use, and the rules that found something."""
    def run(files):
        work = tmp_path / "work"
        work.mkdir()
        (tmp_path / "locks.yaml").write_text(REGISTRY)
        for name, text in files.items():
            (work / name).write_text(text)
        lint = ("registry", "lint", "--json", "--registry", "../locks.yaml")
        listed = json.loads(holdfast(*lint, "--list", ".", cwd=work).out)
        found = json.loads(holdfast(*lint, ".", cwd=work).out)
        return ([(use["outcome"], use["key"]) for use in listed["uses"]],
                [finding["rule"] for finding in found["findings"]])

    return run


def registered(*keys):
    return [("registered", key) for key in keys], []


PYTHON = "import holdfast\n"
GO = 'package p\nimport "holdfast"\nfunc f(ctx C, store *holdfast.Store, tx *sql.Tx, id string) {\n\t%s\n}\n'
NODE = 'import { open, serialize } from "holdfast";\n'


@pytest.mark.parametrize("name,text,keys", [
    ("a.sql", "SELECT holdfast.serialize('nightly');\n", ["'nightly'"]),
    ("a.sql", "SELECT holdfast.try_serialize('Account:' || id) FROM t;\n", ["'Account:…'"]),
    ("a.sql", "SELECT holdfast.serialize('Old:7', 'hashtext');\n", ["'Old:7'"]),
    ("a.sql", "SELECT pg_advisory_xact_lock(holdfast.key('nightly'));\n", ["'nightly'"]),
    ("a.sql", "SELECT pg_advisory_xact_lock(holdfast.key('Old:7', 'hashtext'));\n", ["'Old:7'"]),
    ("a.rb", "db.exec_params(\"SELECT holdfast.serialize($1)\", ['nightly'])\n", ["'nightly'"]),
    ("A.java", 'class A { void f() { db.query("SELECT holdfast.serialize(?)", "nightly"); } }\n', ["'nightly'"]),
    ("a.py", PYTHON + 'with store.lock("nightly", wait=0): pass\n', ["'nightly'"]),
    ("a.py", PYTHON + 'store.lock(what="nightly")\n', ["'nightly'"]),
    ("a.py", PYTHON + 'store.lock([f"Account:{a}", 42424242, (7771, 8881), holdfast.Label("Old:1", "hashtext")])\n',
     ["'Account:…'", "42424242", "(7771, 8881)", "'Old:1'"]),
    ("a.py", PYTHON + '@self.hf.locked(lambda a: f"Account:{a}", wait=30)\ndef f(a): ...\n', ["'Account:…'"]),
    ("a.py", PYTHON + 'store.transact(move, labels=["Account:a", "Account:b"])\n', ["'Account:a'", "'Account:b'"]),
    ("a.py", PYTHON + 'both = ["Account:a", "nightly"]\nstore.transact(move, both)\n', ["'Account:a'", "'nightly'"]),
    ("a.py", PYTHON + '@store.transaction(labels="nightly")\ndef f(tx): ...\n', ["'nightly'"]),
    ("a.py", PYTHON + 'holdfast.serialize(connection, "Account:a")\n', ["'Account:a'"]),
    ("a.py", "import holdfast.aio\nholdfast.aio.serialize(connection, 'Old:1', derivation='hashtext')\n", ["'Old:1'"]),
    ("a.py", PYTHON + "store.transact(move)\nlock.transact(move)\nconnection.transaction()\n", []),
    ("a.go", GO % 'lock, err := store.Lock(ctx, "nightly", holdfast.NoWait())', ["'nightly'"]),
    ("a.go", GO % 'store.Lock(ctx, "Old:1", holdfast.As(holdfast.Hashtext))', ["'Old:1'"]),
    ("a.go", GO % 's.hf.WithLock(ctx, fmt.Sprintf("Account:%s", id), run)', ["'Account:…'"]),
    ("a.go", GO % 'store.LockAll(ctx, []holdfast.Target{holdfast.Label("nightly"), holdfast.Key(42424242), '
     'holdfast.Pair(7771, 8881), holdfast.LabelAs("Old:1", holdfast.Hashtext)})',
     ["'nightly'", "42424242", "(7771, 8881)", "'Old:1'"]),
    ("a.go", GO % 'store.Transact(ctx, holdfast.Labels("Account:a", "nightly"), move)', ["'Account:a'", "'nightly'"]),
    ("a.go", GO % 'holdfast.Serialize(ctx, tx, "Account:a")', ["'Account:a'"]),
    ("a.go", GO % 'holdfast.SerializeAs(ctx, tx, "Old:1", holdfast.Hashtext)', ["'Old:1'"]),
    ("a.go", GO % 'lock.Transact(ctx, func(tx *holdfast.Tx) error { return nil })\n\tmutex.Lock()', []),
    ("a.ts", NODE + 'await using lock = await store.lock("nightly", { wait: 0 });\n', ["'nightly'"]),
    ("a.ts", NODE + 'await store.lock([`Account:${id}`, 42424242n, { label: "Old:1", as: "hashtext" }, '
     '{ pair: [7771, 8881] }]);\n', ["'Account:…'", "42424242", "'Old:1'", "(7771, 8881)"]),
    ("a.ts", NODE + 'await store.withLock("nightly", async (lock) => work());\n', ["'nightly'"]),
    ("a.ts", NODE + 'await store.transact(["Account:a", "nightly"], async (tx) => { await tx.serialize("Account:b"); });\n',
     ["'Account:a'", "'nightly'", "'Account:b'"]),
    ("a.ts", NODE + 'await serialize(tx, "Account:a");\n', ["'Account:a'"]),
    ("a.js", 'const { open } = require("holdfast");\nawait store.lock("nightly");\nlock.transact(async (tx) => 1);\n',
     ["'nightly'"]),
    ("a.c", '#include <holdfast/holdfast.h>\nvoid f(void) { hf_lock_spec s = {.target = HF_LABEL("nightly")}; }\n',
     ["'nightly'"]),
    ("a.c", '#include <holdfast/holdfast.h>\nhf_target t = HF_LABEL_AS("Old:1", HF_HASHTEXT);\n', ["'Old:1'"]),
    ("a.c", '#include <holdfast/holdfast.h>\nhf_target t[] = {{.label = "nightly"}, HF_KEY(42424242)};\n',
     ["'nightly'", "42424242"]),
])
def test_own_calls_name_registered_locks(judged, name, text, keys):
    assert judged({name: text}) == registered(*keys)


@pytest.mark.parametrize("name,text", [
    ("a.sql", "SELECT holdfast.serialize('Acount:7');\n"),
    ("a.py", PYTHON + 'store.lock("Acount:7")\n'),
    ("a.go", GO % 'store.Lock(ctx, "Acount:7")'),
    ("a.ts", NODE + 'await store.lock("Acount:7");\n'),
    ("a.c", '#include <holdfast/holdfast.h>\nhf_target t = HF_LABEL("Acount:7");\n'),
])
def test_own_calls_of_labels_that_no_entry_has_are_findings(judged, name, text):
    assert judged({name: text}) == ([("unregistered", "'Acount:7'")], ["unregistered-label"])


@pytest.mark.parametrize("name,text", [
    ("a.sql", "SELECT holdfast.serialize('Old:7');\n"),
    ("a.py", PYTHON + 'holdfast.serialize(connection, "Old:7")\n'),
    ("a.go", GO % 'holdfast.Serialize(ctx, tx, "Old:7")'),
    ("a.ts", NODE + 'await serialize(tx, "Old:7");\n'),
    ("a.c", '#include <holdfast/holdfast.h>\nhf_target t = HF_LABEL_AS("Old:7", HF_SHA256);\n'),
])
def test_own_calls_with_another_derivation_than_registered_are_findings(judged, name, text):
    assert judged({name: text}) == ([("registered", "'Old:7'")], ["wrong-derivation"])


@pytest.mark.parametrize("name,text", [
    ("a.sql", "SELECT holdfast.serialize(t.label) FROM t;\n"),
    ("a.py", PYTHON + "store.lock(read())\n"),
    ("a.go", GO % "store.Lock(ctx, read())"),
    ("a.ts", NODE + "await store.lock([read()]);\n"),
])
def test_own_calls_that_cannot_be_read_are_unresolved(judged, name, text):
    assert judged({name: text}) == ([("unresolved", None)], ["unresolved-key"])


def test_a_store_may_be_passed_to_a_file_that_does_not_load_holdfast(judged):
    assert judged({
        "a.py": 'def job(store):\n    with store.lock("nightly"): pass\n',
        "b.py": PYTHON + "job(holdfast.Store())\n",
    }) == registered("'nightly'")


def test_without_holdfast_a_store_is_something_else(judged):
    assert judged({"a.py": 'store.lock("nightly")\n', "a.ts": 'store.transact(["x"], f);\n'}) == ([], [])


def test_a_function_around_an_own_call_is_a_wrapper(judged):
    assert judged({"a.py": PYTHON + """
def hold(store, label):
    return store.lock(label, wait=5)

hold(store, "nightly")
"""}) == ([("passed on", None), ("registered", "'nightly'")], [])


def test_an_own_unlock_that_fails_by_itself_is_no_finding(judged):
    assert judged({"a.py": """
cur.execute("SELECT holdfast.try_lock('nightly')")
if cur.fetchone()[0]:
    cur.execute("SELECT holdfast.unlock('nightly')")
"""}) == ([("registered", "'nightly'"), ("release", "'nightly'")], [])


def test_init_does_not_guess_the_lifetime_of_own_locks_and_knows_how_they_are_hashed(holdfast, tmp_path):
    (tmp_path / "a.py").write_text(PYTHON + 'store.transact(move, labels=[f"Account:{a}"])\n')
    done = holdfast("registry", "init", "a.py", cwd=tmp_path)
    assert "lifetime" not in done.out and "check 'as'" not in done.out, done.out
    assert 'pattern: "Account:{a}", as: sha256' in done.out

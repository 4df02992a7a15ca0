"""holdfast registry lint: keys that are not written where the lock is taken."""
import json

import pytest

EXIT_OK, EXIT_FINDINGS = 0, 1


@pytest.fixture
def listed(holdfast, tmp_path):
    """What --list says about files: (outcome, key) of each site, in the order of files and lines."""
    def run(files, *args):
        for name, text in files.items():
            path = tmp_path / "work" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = holdfast("registry", "lint", "--list", "--json", *args, ".", cwd=tmp_path / "work")
        assert done.code in (EXIT_OK, EXIT_FINDINGS), done.err
        return [(use["outcome"], use["key"]) for use in json.loads(done.out)["uses"] if use["outcome"] != "release"]

    return run


PASSED = ("passed on", None)


def read(*keys):
    return [("read", key) for key in keys]


def test_a_python_function_may_be_declared_over_several_lines(listed):
    assert listed({"a.py": """
def hold(
    cur,
    key: int,
) -> None:
    cur.execute("SELECT pg_advisory_lock(%s)", (key,))

hold(cur, 424242)
"""}) == [PASSED, *read("424242")]


@pytest.mark.parametrize("name,definition,call", [
    ("a.py", 'def hold(cur, key, wait=True):\n    cur.execute("SELECT pg_advisory_lock(%s)", [key])\n',
     "hold(wait=False, cur=cur, key=424242)\n"),
    ("a.rb", 'def hold(conn:, key:)\n  conn.execute("SELECT pg_advisory_lock(#{key})")\nend\n',
     "hold(key: 424242, conn: c)\n"),
    ("A.cs", 'class A { void Hold(Conn c, long key) { c.Query($"SELECT pg_advisory_lock({key})"); }\n',
     "void F() { Hold(key: 424242, c: c); } }\n"),
    ("a.kt", 'fun hold(c: Conn, key: Long) { c.query("SELECT pg_advisory_lock($key)") }\n',
     "fun f() { hold(key = 424242, c = c) }\n"),
])
def test_arguments_may_be_passed_by_name(listed, name, definition, call):
    assert listed({name: definition + call}) == [PASSED, *read("424242")]


SERVICE = """
enum Locks { MIGRATE = 1005, SETTINGS = 1007 }
export class LockService {
  async withLock(id: Locks, fn: Fn, options?: Options) {
    return await this.db.transaction(async (tx) => {
      const keys = options?.sub === undefined ? [id] : [id, options.sub];
      await tx.query(
        keys.length === 1 ? 'SELECT pg_advisory_xact_lock($1)' : 'SELECT pg_advisory_xact_lock($1, $2)',
        keys,
      );
    });
  }
  async inContext(id: Locks, fn: Fn, options?: { wait?: number }) {
    return await this.withLock(id, fn, options);
  }
}
"""


@pytest.mark.parametrize("call,found", [
    ("withLock(Locks.MIGRATE, fn)", ("read", "1005")),
    ("withLock(Locks.MIGRATE, fn, { wait: 5 })", ("read", "1005")),
    ("withLock(Locks.MIGRATE, fn, { sub: 9 })", ("read", "(1005, 9)")),
    ("withLock(Locks.MIGRATE, fn, { sub: tenant() })", ("read", "(1005, …)")),
    ("withLock(Locks.MIGRATE, fn, settings())", ("unresolved", None)),
    ("inContext(Locks.SETTINGS, fn, { wait: 5 })", ("read", "1007")),
])
def test_sql_may_be_chosen_by_what_is_passed(listed, call, found):
    found_there = listed({"a.ts": SERVICE, "b.ts": f"await locks.{call};\n"})
    assert found_there[:2] == [PASSED, PASSED]
    assert found_there[3:] == [found]


def test_a_lock_may_be_a_field_of_what_is_passed(listed):
    assert listed({"a.ts": """
async function take(db, options) {
  await db.query('SELECT pg_advisory_lock($1)', [options.lockId]);
}
const lockId = 434343;
take(db, { wait: true, lockId: 424242 });
take(db, { lockId });
"""}) == [PASSED, *read("424242", "434343")]


def test_a_field_that_one_caller_does_not_show_is_unresolved(listed):
    assert listed({"a.ts": """
async function take(db, options) {
  await db.query('SELECT pg_advisory_lock($1)', [options.lockId]);
}
take(db, { lockId: 424242 });
take(db, readOptions());
"""}) == [("unresolved", None), *read("424242")]


def test_a_parameter_hides_a_constant_of_the_same_name(listed):
    assert listed({"a.js": """
const id = 434343;
function take(db, id) { db.query('SELECT pg_advisory_lock($1)', [id]); }
take(db, 424242);
"""}) == [PASSED, *read("424242")]


def test_names_of_a_folder_come_before_those_of_others_and_tests_define_nothing(listed):
    use = 'package p\nfunc f(db DB) { db.Query("SELECT pg_advisory_lock($1)", %s) }\n'
    assert listed({
        "a/use.go": use % "jobLock", "a/names.go": "package p\nconst jobLock = 424242\n",
        "b/use.go": use % "jobLock", "b/names.go": "package p\nconst jobLock = 434343\n",
        "c/use.go": use % "TestLock", "c/use_test.go": "package p\nconst TestLock = 454545\n",
    }) == [*read("424242", "434343"), ("unresolved", None)]


def test_a_method_that_calls_one_of_its_own_name_passes_on_what_it_gets(listed):
    assert listed({
        "driver/driver.go": 'package d\nfunc (e *E) TakeLock(ctx C, key int64) { sql.New().TakeLock(ctx, e.db, key) }\n',
        "sql/sql.go": 'package sql\nfunc (q *Q) TakeLock(ctx C, db DB, key int64) {\n'
                      '  db.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", key)\n}\n',
        "use.go": "package p\nfunc f() { exec.TakeLock(ctx, 424242) }\n",
    })[:2] == [PASSED, PASSED]


def test_a_class_is_known_also_beside_an_unknown_number(listed):
    assert listed({"a.sql": """
SELECT pg_advisory_xact_lock(4711, q.id) FROM q;
SELECT pg_advisory_xact_lock(hashtext('names'), q.id) FROM q;
SELECT pg_advisory_xact_lock(hashtext('names'), hashtext(a || ':' || b)) FROM q;
SELECT pg_advisory_xact_lock(q.id, 4711) FROM q;
"""}) == [*read("(4711, …)", "(-1333323731, …)", "(-1333323731, …)"), ("unresolved", None)]


REGISTRY = """
version: 1
locks:
  - {name: slots, key: {class: 4711, pattern: "slot:{id}", as: hashtext}}
  - {name: one, key: {pair: [4712, 1]}}
  - {name: jobs, key: {pattern: "job:{id}", as: sha256}}
"""


@pytest.mark.parametrize("number,found", [
    (4711, ("registered", "(4711, …)")),
    (4712, ("unresolved", "(4712, …)")),  # it may be another one than (4712, 1)
    (4713, ("unregistered", "(4713, …)")),
])
def test_a_class_is_compared_with_the_registry(listed, number, found):
    files = {"locks.yaml": REGISTRY, "a.sql": f"SELECT pg_advisory_xact_lock({number}, q.id) FROM q;\n"}
    assert listed(files, "--registry", "locks.yaml") == [found]


HASHES = {
    "a.py": ['lock(int.from_bytes(hashlib.sha256(f"job:{n}".encode()).digest()[:8], "big", signed=True))',
             'lock(int(hashlib.md5(f"job:{n}".encode()).hexdigest()[:15], 16))',
             'lock(zlib.crc32(f"job:{n}".encode()) & 0x7fffffff)'],
    "a.ts": ["lock(createHash('sha256').update(`job:${n}`).digest().readBigInt64BE(0))",
             "lock(parseInt(createHash('md5').update('job:' + n).digest('hex').slice(0, 15), 16))"],
    "a.rb": ['lock(Digest::SHA256.digest("job:#{n}").unpack1("q>"))', 'lock(Zlib.crc32("job:#{n}"))'],
    "A.java": ['lock(("job:" + n).hashCode());'],
    "a.php": ['lock(crc32("job:$n"));', 'lock(hexdec(substr(hash("sha256", "job:$n"), 0, 15)));'],
}
LOCKING = {
    "a.py": 'def lock(key):\n    cur.execute("SELECT pg_advisory_lock(%s)", [key])\ndef f(n):\n    ',
    "a.ts": "function lock(key) { db.query('SELECT pg_advisory_lock($1)', [key]); }\nfunction f(n) { ",
    "a.rb": 'def lock(key)\n  conn.execute("SELECT pg_advisory_lock(#{key})")\nend\ndef f(n)\n  ',
    "A.java": 'class A { void lock(long key) { t.query("SELECT pg_advisory_lock(?)", key); }\nvoid f(String n) { ',
    "a.php": '<?php\nfunction lock($key) { $db->query("SELECT pg_advisory_lock($key)"); }\nfunction f($n) { ',
}
CLOSING = {"a.rb": "\nend\n", "a.ts": " }\n", "A.java": " }}\n", "a.php": " }\n"}


@pytest.mark.parametrize("name,call", [(name, call) for name, calls in HASHES.items() for call in calls])
def test_what_is_hashed_is_the_label_whatever_is_made_of_the_hash(listed, name, call):
    found = listed({name: LOCKING[name] + call + CLOSING.get(name, "\n")})
    assert found == [PASSED, ("read", "'job:…'")]


GO_HASH = """package p
func key(name string) int64 {
	h := %s
	h.Write([]byte("job:" + name))
	return int64(h.Sum64())
}
func f(db DB) { db.Query("SELECT pg_advisory_lock($1)", key("nightly")) }
"""


def test_a_hasher_of_go_is_given_the_label(listed):
    assert listed({"a.go": GO_HASH % "fnv.New64()"}) == read("'job:nightly'")


@pytest.mark.parametrize("call,outcome", [
    (HASHES["a.py"][0], "registered"),
    (HASHES["a.py"][1], "unresolved"),  # another hash than the registry's, as far as anybody can tell
])
def test_a_hash_that_nobody_can_tell_is_never_a_registered_lock(listed, call, outcome):
    found = listed({"locks.yaml": REGISTRY, "a.py": LOCKING["a.py"] + call + "\n"}, "--registry", "locks.yaml")
    assert found == [PASSED, (outcome, "'job:…'")]


def test_a_label_of_which_only_punctuation_is_known_is_not_read(listed):
    assert listed({"a.py": 'cur.execute("SELECT pg_advisory_lock(hashtext(%s))", [f"{a}:{b}"])\n'}) == [
        ("unresolved", None)]


FIELDS = {
    "a.ts": ("class Job {\n  private id = 424242;\n  run() { this.db.query('SELECT pg_advisory_lock($1)', [this.id]); }\n}\n"
             "class Mutex {\n  constructor(private readonly db: Db, private readonly key: number) {}\n"
             "  take() { this.db.query('SELECT pg_advisory_lock($1)', [this.key]); }\n}\nnew Mutex(db, 434343);\n"),
    "a.py": ("class Job:\n  def __init__(self):\n    self.id = 424242\n"
             "  def run(self, cur):\n    cur.execute('SELECT pg_advisory_lock(%s)', [self.id])\n"
             "class Mutex:\n  def __init__(self, key):\n    self._key = key\n"
             "  def take(self, cur):\n    cur.execute('SELECT pg_advisory_lock(%s)', [self._key])\nMutex(434343)\n"),
    "a.rb": ("class Job\n  def initialize\n    @id = 424242\n  end\n"
             "  def run\n    conn.execute(\"SELECT pg_advisory_lock(#{@id})\")\n  end\nend\n"
             "class Mutex\n  def initialize(key)\n    @key = key\n  end\n"
             "  def take\n    conn.execute(\"SELECT pg_advisory_lock(#{@key})\")\n  end\nend\nMutex.new(434343)\n"),
    "A.java": ("class Job {\n  private final long id = 424242;\n  void run() { t.query(\"SELECT pg_advisory_lock(?)\", id); }\n}\n"
               "class Mutex {\n  private final long key;\n  Mutex(long key) { this.key = key; }\n"
               "  void take() { t.query(\"SELECT pg_advisory_lock(?)\", this.key); }\n"
               "  static void f() { new Mutex(434343L).take(); }\n}\n"),
    "A.cs": ("class Job {\n  const long Id = 424242;\n  void Run() { c.Query($\"SELECT pg_advisory_lock({Id})\"); }\n}\n"
             "class Mutex {\n  readonly long _key;\n  public Mutex(long key) { _key = key; }\n"
             "  void Take() { c.Query($\"SELECT pg_advisory_lock({_key})\"); }\n"
             "  static void F() { new Mutex(434343).Take(); }\n}\n"),
    "a.go": ("package p\nfunc New() *Job { return &Job{id: 424242} }\n"
             "func (j *Job) Run(c Conn) { c.Query(\"SELECT pg_advisory_lock($1)\", j.id) }\n"
             "func NewMutex(key int64) *Mutex { return &Mutex{lockKey: key} }\n"
             "func (m *Mutex) Take(c Conn) { c.Query(\"SELECT pg_advisory_lock($1)\", m.lockKey) }\n"
             "func f() { NewMutex(434343) }\n"),
    "a.rs": ("impl Job {\n  const ID: i64 = 424242;\n"
             "  async fn run(&self) { sqlx::query(\"SELECT pg_advisory_lock($1)\").bind(Self::ID).execute(c).await; }\n}\n"
             "impl Mutex {\n  pub fn new(key: i64) -> Self { Self { key } }\n"
             "  async fn take(&self) { sqlx::query(\"SELECT pg_advisory_lock($1)\").bind(self.key).execute(c).await; }\n}\n"
             "fn f() { let m = Mutex::new(434343); }\n"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_followed_to_where_they_are_set_and_constructors_are_wrappers(listed, name):
    assert listed({name: FIELDS[name]}) == [*read("424242"), PASSED, *read("434343")]


@pytest.mark.parametrize("name,text", [
    ("A.cs", 'class A {\n  long Key => 424242;\n  void F() { c.Query($"SELECT pg_advisory_lock({Key})"); }\n}\n'),
    ("A.kt", 'class A {\n  fun key(): Long = 424242\n  fun f() { db.query("SELECT pg_advisory_lock(?)", key()) }\n}\n'),
    ("a.ex", 'defmodule A do\n  def f(repo) do\n    repo.query("SELECT pg_advisory_lock($1)", [key()])\n  end\n'
             '  defp key, do: 424242\nend\n'),
    ("a.rb", 'def key\n  424242\nend\ndef f\n  conn.execute("SELECT pg_advisory_lock(#{key})")\nend\n'),
    ("a.rs", 'fn key() -> i64 {\n  424242\n}\nfn f() {\n  sqlx::query("SELECT pg_advisory_lock($1)").bind(key());\n}\n'),
    ("a.py", 'KEY = 424242  # why\ncur.execute("SELECT pg_advisory_lock(%s)", [KEY])\n'),
    ("a.pm", 'use constant KEY => 424242;\nsub f { $dbh->do("SELECT pg_advisory_lock(?)", undef, KEY); }\n'),
])
def test_what_a_function_of_one_expression_gives_is_read(listed, name, text):
    assert listed({name: text}) == read("424242")


def test_parameters_of_perl_are_read(listed):
    assert listed({"a.pm": """
sub hold { my ($self, $key) = @_; $self->dbh->do('SELECT pg_advisory_lock(?)', undef, $key); }
sub f { $self->hold(424242); }
"""}) == [PASSED, *read("424242")]


def test_pipes_of_elixir_are_calls(listed):
    assert listed({"a.ex": """
defmodule A do
  @key "partitions" |> :erlang.crc32() |> rem(32_768)
  def f(repo), do: repo.query("SELECT pg_advisory_lock($1)", [@key])
end
"""}) == read("'partitions'")


@pytest.mark.parametrize("name,text", [
    ("a.ts", "const fn = 'pg_advisory_xact_lock';\nexecute(`SELECT ${fn}(?)`, [compute()]);\n"),
    ("a.py", "fn = 'pg_try_advisory_lock_shared'\nexecute(f'SELECT {fn}(:key)')\n"),
    ("a.go", 'package p\nfunc f() string { return "pg_advisory_lock" }\n'),
    ("a.ex", 'def hold(key), do: run("pg_advisory_xact_lock", key)\n'),
    ("A.java", 'class A { void f() { cb.function("pg_advisory_xact_lock", Object.class, cb.literal(7)); } }\n'),
])
def test_the_name_of_a_function_alone_is_a_site_too(listed, name, text):
    assert listed({name: text}) == [("unresolved", None)]


def test_the_name_of_a_column_is_no_site(listed):
    assert listed({"a.ts": "f(row['pg_try_advisory_lock'], rs.get('pg_try_advisory_lock'));\n"}) == []


def test_a_lock_in_a_block_of_sequel_is_a_site(listed):
    assert listed({"a.rb": "DB.get{pg_advisory_lock(424242)}\n"}) == read("424242")


def test_a_call_whose_closure_is_too_long_to_be_read_is_a_site(listed):
    body = "  await step();\n" * 400
    assert listed({"a.ts": "function hold(db, key, fn) { db.query('SELECT pg_advisory_lock($1)', [key]); }\n"
                           "hold(db, 424242, async () => {\n" + body + "});\n"}) == [PASSED, *read("424242")]


@pytest.mark.parametrize("name,text,found", [
    ("a.py", "args = (424242,)\ncur.execute('SELECT pg_advisory_lock(%s)', args)\n", ("read", "424242")),
    ("a.go", 'package p\nfunc f(c C) {\n\targs := []any{424242}\n\tc.Query("SELECT pg_advisory_lock($1)", args...)\n}\n',
     ("read", "424242")),
    ("a.go", 'package p\nfunc f(c C) {\n\tkey := compute(42)\n\tc.Query("SELECT pg_advisory_lock($1)", key)\n}\n',
     ("unresolved", None)),
])
def test_values_may_be_a_list_with_a_name_and_a_call_is_none(listed, name, text, found):
    assert listed({name: text}) == [found]


@pytest.mark.parametrize("pattern", [
    "$x =~ /[ \"'\\\\]/;", "$x =~ s/([\"'])/\\\\$1/g;", "$x =~ s{'}{quote};", "$x =~ tr/'/`/;", "my $r = qr{[\"']};",
    "my @parts = split /'/, $x;", "if ($x =~ m/'/) { }", "my $y = $h{s}; my $w = -s $file;",
])
def test_quotes_in_a_pattern_of_perl_open_no_string(listed, pattern):
    assert listed({"a.pm": f"{pattern}\nsub f {{ $dbh->do('SELECT pg_advisory_lock(424242)'); }}\n"}) == read("424242")


@pytest.mark.parametrize("name,text", [
    ("a.go", "package p\nvar q = ' SELECT pg_advisory_lock(424242)\n"),
    ("a.py", "x = y' SELECT 1\nSELECT pg_advisory_lock(424242)\n"),
])
def test_what_the_scanner_takes_for_code_is_a_site_all_the_same(listed, name, text):
    assert listed({name: text}) == read("424242")


def test_a_function_of_the_project_with_the_name_of_a_lock_is_no_site(listed):
    assert listed({"a.py": "def pg_advisory_lock(cur): pass\n", "a.ts": "function pg_advisory_lock(db) {}\n"}) == []


@pytest.mark.parametrize("name,text,sites", [
    ("a.ts", "const fn = 'pg_advisory_xact_lock';\nexecute(`SELECT ${fn}(?, ?)`, [42, 7]);\n", 1),
    ("a.ts", "const fn = wait ? 'pg_advisory_lock' : 'pg_try_advisory_lock';\nexecute('SELECT ' + fn + '(42, 7)');\n", 2),
    ("a.py", "fn = 'pg_try_advisory_lock' if once else 'pg_advisory_lock'\nexecute(f'SELECT {fn}(%s, %s)', (42, 7))\n", 1),
    ("a.rb", 'fn = "pg_advisory_lock"\nconn.execute("SELECT #{fn}(42, 7)")\n', 1),
    ("a.ex", 'def f do\n  fun = "pg_advisory_lock"\n  query("SELECT #{fun}($1, $2)", [42, 7])\nend\n', 1),
    ("a.php", "<?php\n$fn = 'pg_advisory_lock';\n$db->query('SELECT ' . $fn . '(42, 7)');\n", 1),
    ("a.cs", 'class A { void F() { var fn = "pg_advisory_lock"; c.Run($"SELECT {fn}(42, 7)"); } }\n', 1),
    ("a.kt", 'fun f() {\n  val fn = "pg_advisory_lock"\n  c.run("SELECT ${fn}(42, 7)")\n}\n', 1),
    ("A.java", 'class A { void f() { String fn = "pg_advisory_lock"; c.run("SELECT " + fn + "(42, 7)"); } }\n', 1),
    ("a.go", 'package p\nfunc f() {\n\tfn := "pg_advisory_lock"\n\tdb.Exec("SELECT " + fn + "(42, 7)")\n}\n', 1),
    ("a.rs", 'fn f() { let fun: &str = "pg_advisory_lock"; c.run(format!("SELECT {fun}(42, 7)")); }\n', 1),
])
def test_sql_may_be_made_with_the_name_of_its_function(listed, name, text, sites):
    assert listed({name: text}) == read("(42, 7)") * sites


@pytest.mark.parametrize("name,text", [
    ("A.java", 'class A { void f() { run("SELECT pg_" + (wait ? "" : "try_") + "advisory_" + "lock(?)"); } }\n'),
    ("a.py", "cur.execute(f'SELECT pg_{how}advisory_lock({key})')\n"),
    ("a.ts", "db.query(`SELECT pg_advisory_${kind}lock($1)`, [key]);\n"),
    ("a.rb", 'conn.execute("SELECT pg_try_advisory_#{kind}(#{key})")\n'),
    ("a.go", 'package p\nfunc f() { db.Exec(fmt.Sprintf("SELECT pg_advisory_%s($1)", kind), key) }\n'),
])
def test_a_part_of_a_functions_name_is_a_site_too(listed, name, text):
    assert listed({name: text}) == [("unresolved", None)]


def test_a_function_of_the_project_may_have_the_name_of_a_lock(listed):
    assert listed({"a.py": "def pg_try_advisory_lock(env, key):\n  env.cr.execute('SELECT pg_try_advisory_xact_lock(%s)', (key,))\n",
                   "b.py": "from a import pg_try_advisory_lock\npg_try_advisory_lock(env, 424242)\n"}) == [PASSED, *read("424242")]

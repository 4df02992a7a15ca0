"""holdfast registry lint: keys that are made elsewhere: by functions, maps, defaults and SQL of the project."""
import pytest


PASSED = ("passed on", None)


def read(*keys):
    return [("read", key) for key in keys]


@pytest.mark.parametrize("call", [
    'pglock.advisory(lock_id=f"sync/{tenant}", timeout=0)', 'pglock.advisory(timeout=0, lock_id=f"sync/{tenant}")',
    'advisory_lock(lock_id=f"sync/{tenant}", wait=False)',
])
def test_a_library_may_be_given_its_label_by_name(listed, call):
    assert listed({"a.py": f"with {call}: pass\n"}) == read("'sync/…'")


FORMATTED = {
    "a.rs": 'impl A {\n    const KEY: i64 = 424242;\n    fn f(&self) { self.db.query(&format!("SELECT pg_advisory_lock({})", Self::KEY)); }\n}\n',
    "a.py": 'KEY = 424242\ncur.execute("SELECT {}, pg_advisory_lock({})".format(one, KEY))\n',
}


@pytest.mark.parametrize("name", FORMATTED)
def test_braces_may_be_empty(listed, name):
    assert listed({name: FORMATTED[name]}) == read("424242")


LAMBDAS = {
    "js": ("export const Locks = {\n  Import: (tenant: string) => hash(`import:${tenant}`),\n  All: () => hash('all'),\n};\n",
           "await tx.raw('SELECT pg_advisory_xact_lock(?)', [Locks.Import(id)]);\n"
           "await tx.raw('SELECT pg_advisory_xact_lock(?)', [Locks.All()]);\n",
           "export const hash = (text: string) => {\n  return crc32(text) % 2 ** 31;\n};\n"),
    "kt": ('object Locks {\n  fun importOf(tenant: String): Long = hash("import:$tenant")\n  fun all() = hash("all")\n}\n',
           'fun f() {\n  db.query("SELECT pg_advisory_xact_lock(${Locks.importOf(id)})")\n'
           '  db.query("SELECT pg_advisory_xact_lock(${Locks.all()})")\n}\n',
           "fun hash(text: String): Long { return crc32(text) }\n"),
    "cs": ('static class Locks {\n  public static long Import(string tenant) => Hash.Make($"import:{tenant}");\n'
           '  public static long All() => Hash.Make("all");\n}\n',
           'class A { void F() {\n  db.Query($"SELECT pg_advisory_xact_lock({Locks.Import(id)})");\n'
           '  db.Query($"SELECT pg_advisory_xact_lock({Locks.All()})");\n} }\n',
           "static class Hash { public static long Make(string text) { return Crc32.Checksum(text); } }\n"),
    "ex": ('defmodule Locks do\n  def import_of(tenant), do: :erlang.crc32("import:#{tenant}")\n'
           '  def all(), do: :erlang.crc32("all")\nend\n',
           'defmodule A do\n  def f(id) do\n    Repo.query!("SELECT pg_advisory_xact_lock($1)", [Locks.import_of(id)])\n'
           '    Repo.query!("SELECT pg_advisory_xact_lock($1)", [Locks.all()])\n  end\nend\n', ""),
    "py": ("import zlib\nimport_lock = lambda tenant: zlib.crc32(f'import:{tenant}'.encode())\nall_lock = lambda: zlib.crc32(b'all')\n",
           "def f(cur, id):\n    cur.execute('SELECT pg_advisory_xact_lock(%s)', [import_lock(id)])\n"
           "    cur.execute('SELECT pg_advisory_xact_lock(%s)', [all_lock()])\n", ""),
}


@pytest.mark.parametrize("suffix", LAMBDAS)
def test_a_function_that_is_one_expression_makes_keys(listed, suffix):
    locks, use, hashing = LAMBDAS[suffix]
    suffix = "ts" if suffix == "js" else suffix
    assert listed({f"keys/locks.{suffix}": locks, f"lib/hash.{suffix}": hashing, f"use.{suffix}": use}) \
        == read("'import:…'", "'all'")


MAPS = {
    "ex": ("defmodule L do\n  @locks %{report: 424242, import: 434343}\n  def hold(name) do\n"
           '    Repo.query!("SELECT pg_advisory_xact_lock($1)", [Map.fetch!(@locks, name)])\n  end\nend\n',
           "defmodule A do\n  def f, do: L.hold(:import)\nend\n"),
    "rb": ("class L\n  LOCKS = { report: 424242, import: 434343 }.freeze\n  def hold(name)\n"
           '    db.execute("SELECT pg_advisory_xact_lock(#{LOCKS.fetch(name)})")\n  end\nend\n', "hold(:import)\n"),
    "py": ("LOCKS = {'report': 424242, 'import': 434343}\ndef hold(cur, name):\n"
           "    cur.execute('SELECT pg_advisory_xact_lock(%s)', [LOCKS[name]])\n", "hold(cur, 'import')\n"),
    "ts": ("const LOCKS = { report: 424242, import: 434343 } as const;\nexport async function hold(db, name) {\n"
           "  await db.query('SELECT pg_advisory_xact_lock($1)', [LOCKS[name]]);\n}\n", "await hold(db, 'import');\n"),
    "php": ("<?php\nclass L {\n  const LOCKS = ['report' => 424242, 'import' => 434343];\n  function hold($name) {\n"
            "    $this->db->query('SELECT pg_advisory_xact_lock(?)', [self::LOCKS[$name]]);\n  }\n}\n",
            "<?php\n$l->hold('import');\n"),
    "go": ('package p\nvar Locks = map[string]int64{\n\t"report": 424242,\n\t"import": 434343,\n}\nfunc hold(db DB, name string) {\n'
           '\tdb.Exec("SELECT pg_advisory_xact_lock($1)", Locks[name])\n}\n', 'package p\nfunc f() { hold(db, "import") }\n'),
}


@pytest.mark.parametrize("suffix", MAPS)
def test_a_map_of_constants_may_be_asked_by_a_parameter(listed, suffix):
    definition, call = MAPS[suffix]
    assert listed({f"a.{suffix}": definition, f"b.{suffix}": call}) == [PASSED, *read("434343")]


def test_bits_of_a_hash_in_elixir_are_its_key(listed):
    assert listed({"a.ex": """
defmodule L do
  def hold(name, work) do
    Repo.transaction(fn ->
      <<key::signed-integer-size(64), _::binary>> = :crypto.hash(:sha256, name |> to_string)
      Repo.query!("SELECT pg_advisory_xact_lock($1)", [key])
      work.()
    end)
  end
end
""", "b.ex": 'defmodule A do\n  def f do\n    L.hold(:nightly, fn -> :ok end)\n    L.hold("report", fn -> :ok end)\n  end\nend\n'}) \
        == [PASSED, *read("'nightly'", "'report'")]


def test_a_method_of_go_may_be_small_and_fail(listed):
    assert listed({"a.go": """package p
func (s *S) lockKey(name string) (int64, error) {
	return int64(crc32.ChecksumIEEE([]byte("job:" + name))), nil
}
func (s *S) f(db DB) {
	key, err := s.lockKey("nightly")
	db.Exec("SELECT pg_advisory_lock($1)", key)
}
"""}) == read("'job:nightly'")


def test_functions_of_sql_make_keys_too(listed):
    assert listed({
        "keys.sql": """
CREATE FUNCTION app.report_class() RETURNS int LANGUAGE sql AS $$ SELECT 4711 $$;
CREATE FUNCTION app.key_of(name text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN hashtextextended('app:' || key_of.name, 0);
END $$;
""",
        "use.sql": """
SELECT pg_advisory_xact_lock(app.report_class(), 7);
SELECT pg_advisory_xact_lock(app.key_of('nightly'));
""",
        "use.py": "cur.execute(\"SELECT pg_advisory_xact_lock(app.key_of('weekly'))\")\n",
    }) == read("'app:weekly'", "(4711, 7)", "'app:nightly'")


def test_a_class_is_told_by_the_first_callers_alone(listed):
    assert listed({"a.py": """
def take(cur, id):
    cur.execute("SELECT pg_advisory_xact_lock(4711, %s)", [id])

def publish(cur, id):
    take(cur, id)

publish(cur, read())
"""}) == [("passed on", "(4711, …)"), ("read", "(4711, …)")]


DEFAULTS = {
    "a.py": ('def hold(cur, key=424242, *, wait=True):\n    cur.execute("SELECT pg_advisory_lock(%s)", [key])\n',
             "hold(cur)\nhold(cur, 434343)\n"),
    "a.ts": ("async function hold(db: Db, key = 424242, wait?: boolean) {\n"
             "  await db.query('SELECT pg_advisory_lock($1)', [key]);\n}\n", "await hold(db);\nawait hold(db, 434343);\n"),
    "a.rb": ('def hold(conn, key: 424242)\n  conn.execute("SELECT pg_advisory_lock(#{key})")\nend\n',
             "hold(c)\nhold(c, key: 434343)\n"),
    "a.kt": ('fun hold(c: Conn, key: Long = 424242) { c.query("SELECT pg_advisory_lock($key)") }\n',
             "fun f() {\n hold(c)\n hold(c, 434343)\n}\n"),
    "A.cs": ('class A { void Hold(Conn c, long key = 424242) { c.Query($"SELECT pg_advisory_lock({key})"); }\n',
             "void F() {\n Hold(c);\n Hold(c, 434343);\n} }\n"),
    "a.php": ("<?php\nfunction hold($c, int $key = 424242) { $c->query('SELECT pg_advisory_lock(?)', [$key]); }\n",
              "hold($c);\nhold($c, 434343);\n"),
    "a.ex": ('defmodule A do\n  def hold(repo, key \\\\ 424242) do\n    repo.query!("SELECT pg_advisory_lock($1)", [key])\n'
             "  end\n", "  def f do\n    hold(Repo)\n    hold(Repo, 434343)\n  end\nend\n"),
    "a.sql": ("CREATE FUNCTION hold(key bigint DEFAULT 424242) RETURNS void LANGUAGE plpgsql AS $$\n"
              "BEGIN PERFORM pg_advisory_lock(key); END $$;\n", "SELECT hold();\nSELECT hold(434343);\n"),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_parameter_has_its_default_only_where_nothing_is_passed(listed, name):
    definition, calls = DEFAULTS[name]
    assert listed({name: definition + calls}) == [PASSED, *read("424242", "434343")]


@pytest.mark.parametrize("name,text", [
    ("a.py", 'def hold(cur, key=None):\n    if key is None:\n        key = 424242\n'
             '    cur.execute("SELECT pg_advisory_lock(%s)", [key])\nhold(cur, 434343)\n'),
    ("a.js", "async function hold(db, key) {\n  if (!key) { key = 424242; }\n"
             "  await db.query('SELECT pg_advisory_lock($1)', [key]);\n}\nhold(db, 434343);\n"),
    ("a.go", "package p\nfunc hold(db DB, key int64) {\n\tif key == 0 { key = 424242 }\n"
             '\tdb.Exec("SELECT pg_advisory_lock($1)", key)\n}\nfunc f() { hold(db, 434343) }\n'),
    ("A.cs", "class A { void Hold(Conn c, long key) {\n  if (key == 0) key = 424242;\n"
             '  c.Query($"SELECT pg_advisory_lock({key})"); }\nvoid F() { Hold(c, 434343); } }\n'),
])
def test_what_stands_in_for_a_parameter_does_not_hide_what_is_passed(listed, name, text):
    assert listed({name: text}) == [PASSED, *read("434343")]


def test_a_default_in_a_pattern_of_javascript_is_not_the_key_of_all_callers(listed):
    assert listed({"a.ts": """
async function hold(db: Db, { lockKey = 424242 }: Options = {}) {
  await db.query('SELECT pg_advisory_lock($1)', [lockKey]);
}
await hold(db, { lockKey: 434343 });
"""})[0] == ("unresolved", None)


def test_arguments_that_are_spread_leave_no_defaults(listed):
    assert listed({"a.py": """
def hold(cur, key=424242):
    cur.execute("SELECT pg_advisory_lock(%s)", [key])

hold(*args)
"""}) == [PASSED, ("unresolved", None)]


def test_values_may_stand_beside_the_text_of_a_query(listed):
    assert listed({"a.ts": "await t.query<Row>({\n  text: `SELECT pg_try_advisory_xact_lock($1) AS locked;`,\n"
                           "  values: [-424242],\n});\n"}) == read("-424242")


@pytest.mark.parametrize("name,text", [
    ("A.java", 'class A { void f(Connection c) {\n  PreparedStatement p = c.prepareStatement("SELECT pg_advisory_lock(?)");\n'
               "  p.setLong(1, KEY);\n  p.execute();\n}\nstatic final long KEY = 424242L; }\n"),
    ("A.java", 'class A { void f(Connection c) {\n  String sql = "SELECT pg_advisory_lock(?)";\n'
               "  execute(c, sql, p -> { p.setLong(1, KEY); });\n}\nstatic final long KEY = 424242L; }\n"),
    ("a.kt", 'fun f(c: Connection) {\n  val p = c.prepareStatement("SELECT pg_advisory_lock(?)")\n  p.setLong(1, 424242)\n}\n'),
])
def test_values_may_be_set_one_by_one(listed, name, text):
    assert listed({name: text}) == read("424242")


@pytest.mark.parametrize("name,hashing,use", [
    ("ts", "export function hashText(text: string): number {\n  let h = 5381;\n"
           "  for (let i = 0; i < text.length; i++) h = (h * 33) ^ text.charCodeAt(i);\n  return h >>> 0;\n}\n",
     "const id = hashText(`job:${name}`);\nawait db.query('SELECT pg_advisory_lock($1)', [id]);\n"),
    ("py", "def hash_text(text):\n    h = 5381\n    for c in text:\n        h = (h * 33) ^ ord(c)\n    return h\n",
     "id = hash_text(f'job:{name}')\ncur.execute('SELECT pg_advisory_lock(%s)', [id])\n"),
    ("go", "package p\nfunc hashText(text string) int64 {\n\th := int64(5381)\n\tfor _, c := range text {\n\t\th = h*33 ^ int64(c)\n"
           '\t}\n\treturn h\n}\n', 'package p\nfunc f() { db.Exec("SELECT pg_advisory_lock($1)", hashText("job:"+name)) }\n'),
])
def test_a_hash_may_be_home_made(listed, name, hashing, use):
    assert listed({f"a.{name}": hashing, f"b.{name}": use}) == read("'job:…'")


HOLD = "package {p}\nfunc hold(db DB, id string) {{ db.Exec(\"SELECT pg_advisory_lock(hashtext($1))\", {key}) }}\n"


def test_of_two_functions_of_one_name_neither_is_taken_for_the_other(listed):
    assert listed({
        "a/a.go": HOLD.format(p="a", key='"order:" + id'), "a/use.go": 'package a\nfunc f() { hold(db, "1") }\n',
        "b/b.go": HOLD.format(p="b", key="id"), "b/use.go": 'package b\nfunc f() { hold(db, "invoice:1") }\n',
        "b/far/use.go": 'package far\nfunc f() { hold(db, "invoice:3") }\n',
        "c/use.go": 'package c\nfunc f() { hold(db, "2") }\n',
    }) == [("read", "'order:…'"), PASSED, *read("'invoice:3'", "'invoice:1'"), ("unresolved", None)]


def test_what_a_later_round_knows_needs_no_callers(listed):
    """The class stands in a file that is read after the callers, which must not stay wrappers."""
    assert listed({"api/a.go": """package api
func (s *Service) touch(ctx context.Context, space string) error { return s.store.TouchUser(ctx, space) }
func (s *Service) serve() { s.touch(ctx, request.Space) }
""", "store/user.go": """package store
func (s *Store) TouchUser(ctx context.Context, space string) error { return AcquireIn(ctx, tx, LockKeyUser, space) }
""", "store/zlock.go": """package store
const LockKeyUser LockKey = 1004
func AcquireIn(ctx context.Context, tx *sql.Tx, space LockKey, key string) error {
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1, hashtext($2))", int32(space), key)
	return err
}
"""}) == [*read("(1004, …)"), PASSED]


@pytest.mark.parametrize("name,text", [
    ("a.rs", 'fn f() { c.execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", &[&"layout"]); }\n'),
    ("a.rs", 'fn f() { c.execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", &[&&NAME]); }\nconst NAME: &str = "layout";\n'),
])
def test_a_reference_is_what_it_points_to(listed, name, text):
    assert listed({name: text}) == read("'layout'")


COMMON = {
    "go": ('package d\nfunc (d *Driver) Lock(ctx context.Context, name string, wait time.Duration) error {\n'
           '\t_, err := d.db.ExecContext(ctx, "SELECT pg_advisory_lock(hashtext($1))", name)\n\treturn err\n}\n',
           'package p\nfunc f() {\n\tc.mu.Lock()\n\td.Lock(ctx)\n\tdrv.Lock(ctx, "layout", wait)\n}\n'),
    "py": ("class Locker:\n  async def acquire(self, name, timeout):\n"
           "    await self.c.execute('SELECT pg_advisory_lock(hashtext($1))', name)\n",
           "async def f():\n  semaphore.acquire()\n  await store.acquire('layout', 5)\n"),
    "ts": ("export class Pg {\n  async lock(name: string, ms: number) {\n"
           "    await this.db.query('SELECT pg_advisory_lock(hashtext($1))', [name]);\n  }\n}\n",
           "async function f() {\n  mutex.lock();\n  await backend.lock('layout', 500);\n}\n"),
    "cs": ("class Pg {\n  public Task LockAsync(string name, CancellationToken stop) {\n"
           "    return c.Run($\"SELECT pg_advisory_lock(hashtext('{name}'))\");\n  }\n}\n",
           'class A { void F() {\n  semaphore.LockAsync(stop);\n  await store.LockAsync("layout", stop);\n} }\n'),
    "rb": ("class NamedLock\n  def self.run(name, &block)\n    new(name).go(&block)\n  end\n  def initialize(name)\n    @name = name\n"
           "  end\n  def go\n    conn.execute(\"SELECT pg_advisory_lock(hashtext('#{@name}'))\")\n  end\nend\n",
           "Thread.run('x')\nOther.new('y')\nNamedLock.run('layout') { work }\n"),
}


@pytest.mark.parametrize("suffix", COMMON)
def test_a_name_that_everybody_has_counts_with_its_class_or_its_arguments(listed, suffix):
    definition, calls = COMMON[suffix]
    found = listed({f"lib/a.{suffix}": definition, f"use.{suffix}": calls})
    assert found == [PASSED] * (2 if suffix == "rb" else 1) + read("'layout'")


CLASSES = {
    "py": ("class Lock:\n  def __init__(self, kind, wait):\n    self.kind = kind\n"
           "  def __enter__(self):\n    cur.execute('SELECT pg_advisory_xact_lock(%s)', [self.kind.value])\n"
           "class LockFailed(Exception):\n  def __init__(self, kind):\n    super().__init__(f'no {kind}')\n",
           "from a import Lock\nclass Kind(Enum):\n  REPORT = 424242\nwith Lock(Kind.REPORT, 5): pass\nasyncio.Lock()\n"),
    "rb": ("class ReportMutex\n  attr_reader :name\n  def initialize(name)\n    @name = name\n  end\n"
           "  def go\n    conn.execute(\"SELECT pg_advisory_lock(#{name})\")\n  end\nend\n", "ReportMutex.new(424242).go\n"),
    "ts": ("export class Mutex {\n  constructor(private readonly id: number) {}\n"
           "  take() { db.query('SELECT pg_advisory_lock($1)', [this.id]); }\n}\n", "new Mutex(424242).take();\n"),
    "php": ("<?php\nclass PgLock {\n  public function __construct(private int $id) {}\n"
            "  function take() { $this->db->query('SELECT pg_advisory_lock(?)', [$this->id]); }\n}\n",
            "<?php\n$l = new PgLock(424242);\n"),
}


@pytest.mark.parametrize("suffix", CLASSES)
def test_any_field_may_be_the_key_of_a_class_that_is_a_lock(listed, suffix):
    definition, call = CLASSES[suffix]
    assert listed({f"lib/a.{suffix}": definition, f"use.{suffix}": call}) == [PASSED, *read("424242")]


@pytest.mark.parametrize("name,text", [
    ("a.ts", "const KEY = config.lockKey ?? 424242;\ndb.query('SELECT pg_advisory_lock($1)', [KEY]);\n"),
    ("a.ts", "db.query('SELECT pg_advisory_lock($1)', [Number(process.env.LOCK_KEY || '424242')]);\n"),
    ("a.cs", 'class A { void F() { var key = options.Key ?? 424242; c.Run($"SELECT pg_advisory_lock({key})"); } }\n'),
    ("a.php", "<?php\n$key = $config['lock'] ?? 424242;\n$db->query('SELECT pg_advisory_lock(?)', [$key]);\n"),
    ("a.php", "<?php\n$key = $config->lock ?: 424242;\n$db->query('SELECT pg_advisory_lock(?)', [$key]);\n"),
    ("a.kt", 'fun f() {\n  val key = config.key ?: 424242L\n  db.query("SELECT pg_advisory_lock(?)", key)\n}\n'),
    ("a.rb", 'key = options[:key] || 424242\nconn.execute("SELECT pg_advisory_lock(#{key})")\n'),
    ("a.rb", 'key = ENV.fetch("LOCK", 424242)\nconn.execute("SELECT pg_advisory_lock(#{key})")\n'),
    ("a.pm", "sub f { my $key = $self->{key} // 424242; $dbh->do('SELECT pg_advisory_lock(?)', undef, $key); }\n"),
    ("a.py", "key = settings.key or 424242\ncur.execute('SELECT pg_advisory_lock(%s)', [key])\n"),
    ("a.py", "key = int(os.environ.get('LOCK', '424242'))\ncur.execute('SELECT pg_advisory_lock(%s)', [key])\n"),
    ("a.ex", 'def f(opts) do\n  key = Keyword.get(opts, :key, 424242)\n  query("SELECT pg_advisory_lock($1)", [key])\nend\n'),
    ("a.rs", 'fn f() { let key = config.key.unwrap_or(424242); sqlx::query("SELECT pg_advisory_lock($1)").bind(key); }\n'),
    ("A.java", 'class A { void f() { long key = config.key().orElse(424242L); t.query("SELECT pg_advisory_lock(?)", key); } }\n'),
])
def test_a_default_is_the_key_when_nobody_can_tell_what_replaces_it(listed, name, text):
    assert listed({name: text}) == read("424242")


@pytest.mark.parametrize("name,text", [
    ("a.ts", "const KEY = compute(name) || 1;\ndb.query('SELECT pg_advisory_lock($1)', [KEY]);\n"),
    ("a.py", "key = compute(name) or 1\ncur.execute('SELECT pg_advisory_lock(%s)', [key])\n"),
])
def test_a_computed_key_is_not_its_default(listed, name, text):
    assert listed({name: text}) == [("unresolved", None)]


@pytest.mark.parametrize("suffix,definition,calls", [
    ("ts", "export function hold(db, options) {\n  db.query('SELECT pg_advisory_lock($1)', [options.key ?? 424242]);\n}\n",
     "hold(db, { key: 434343 });\nhold(db, { wait: true });\nhold(db);\n"),
    ("py", "def hold(cur, key=None):\n  key = key or 424242\n  cur.execute('SELECT pg_advisory_lock(%s)', [key])\n",
     "hold(cur, 434343)\nhold(cur)\nhold(cur)\n"),
    ("rb", "def hold(key)\n  conn.execute(\"SELECT pg_advisory_lock(#{key || 424242})\")\nend\n", "hold(434343)\nhold()\nhold()\n"),
])
def test_callers_that_pass_nothing_get_the_default(listed, suffix, definition, calls):
    assert listed({f"a.{suffix}": definition, f"b.{suffix}": calls}) == [PASSED, *read("434343", "424242", "424242")]


@pytest.mark.parametrize("name,text", [
    ("a.php", "<?php\n$lock = $pdo->prepare('SELECT pg_advisory_lock(?, ?)');\n$lock->execute([42, 7]);\n"),
    ("a.php", "<?php\n$pdo->prepare('SELECT pg_advisory_lock(?, ?)')->execute([42, 7]);\n"),
    ("a.go", 'package p\nfunc f() { stmt, err := db.Prepare("SELECT pg_advisory_lock($1, $2)")\n\tstmt.ExecContext(ctx, 42, 7)\n}\n'),
    ("a.go", 'package p\nfunc n() *D { return &D{lock: p.P("SELECT pg_advisory_lock($1, $2)")} }\n'
             'func (d *D) f() { tx.Stmt(d.lock).QueryRowContext(ctx, 42, 7) }\n'),
    ("a.kt", 'class A {\n  fun f() = c.preparedQuery(SQL).execute(Tuple.of(42, 7))\n  companion object {\n'
             '    const val SQL = """SELECT pg_advisory_lock($1, $2)"""\n  }\n}\n'),
    ("a.pm", "my $lock = $dbh->prepare('SELECT pg_advisory_lock(?, ?)');\n$lock->execute(42, 7);\n"),
    ("a.py", "lock = await c.prepare('SELECT pg_advisory_lock($1, $2)')\nawait lock.fetchval(42, 7)\n"),
    ("a.ts", "const lock = db.prepare('SELECT pg_advisory_lock(?, ?)');\nawait lock.execute([42, 7]);\n"),
])
def test_a_prepared_statement_is_given_its_values_later(listed, name, text):
    assert listed({name: text}) == read("(42, 7)")


@pytest.mark.parametrize("text", [
    'const char *values[] = {"42", "7"};\nPQexecParams(c, "SELECT pg_advisory_lock($1, $2)", 2, NULL, values, NULL, NULL, 0);\n',
    '#define KEY 42\nvoid f(void) {\n  const char *values[2];\n  char text[20];\n  snprintf(text, sizeof text, "%d", KEY);\n'
    '  values[0] = text;\n  values[1] = "7";\n'
    '  res = PQexecParams(c, "SELECT pg_advisory_lock($1, $2)", 2, NULL, values, NULL, NULL, 0);\n}\n',
    'void f(void) {\n  Datum values[2];\n  values[0] = Int32GetDatum(42);\n  values[1] = Int32GetDatum(7);\n'
    '  SPI_execute_with_args("SELECT pg_advisory_lock($1, $2)", 2, types, values, NULL, false, 0);\n}\n',
])
def test_values_in_an_array_of_c_are_read(listed, text):
    assert listed({"a.c": text}) == read("(42, 7)")

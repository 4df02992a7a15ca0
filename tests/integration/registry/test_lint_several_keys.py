"""holdfast registry lint: keys that one site may have several of, and keys that are put together far away."""
import pytest


PASSED = ("passed on", None)


def read(*keys):
    return [("read", key) for key in keys]


BRANCHES = {
    "a.py": "def f(cur, full):\n    if full:\n        key = 424242\n    else:\n        key = 434343\n"
            "    cur.execute('SELECT pg_advisory_lock(%s)', [key])\n",
    "a.go": 'package p\nfunc f(full bool) {\n\tvar key int64\n\tif full {\n\t\tkey = 424242\n\t} else {\n\t\tkey = 434343\n\t}\n'
            '\tdb.Exec(ctx, "SELECT pg_advisory_lock($1)", key)\n}\n',
    "a.ts": "function f(full) {\n  let key = 0;\n  switch (full) {\n  case 1:\n    key = 424242;\n    break;\n  default:\n    key = 434343;\n  }\n"
            "  db.query('SELECT pg_advisory_lock($1)', [key]);\n}\n",
    "b.ts": "function f(full) {\n  const key = full ? 424242 : 434343;\n  db.query('SELECT pg_advisory_lock($1)', [key]);\n}\n",
    "b.py": "def f(cur, full):\n    key = 424242 if full else 434343\n    cur.execute('SELECT pg_advisory_lock(%s)', [key])\n",
    "A.java": 'class A { void f(boolean full) {\n  long key = 424242;\n  if (full)\n    key = 434343;\n'
              '  db.query("SELECT pg_advisory_lock(?)", key);\n} }\n',
    "a.cs": 'class A { void F(bool full) {\n  var key = full ? 424242 : 434343;\n  db.Query($"SELECT pg_advisory_lock({key})");\n} }\n',
    "a.php": "<?php\nfunction f($full) {\n  $key = $full ? 424242 : 434343;\n  $db->query(\"SELECT pg_advisory_lock($key)\");\n}\n",
    "a.rs": 'fn f(full: bool) {\n    let key = if full { 424242 } else { 434343 };\n    query("SELECT pg_advisory_lock($1)").bind(key);\n}\n',
    "a.kt": 'fun f(full: Boolean) {\n  val key = if (full) 424242 else 434343\n  db.query("SELECT pg_advisory_lock($key)")\n}\n',
    "a.rb": "def f(full)\n  key = full ? 424242 : 434343\n  conn.execute(\"SELECT pg_advisory_lock(#{key})\")\nend\n",
    "c.py": "def key_of(full):\n    if full:\n        return 424242\n    return 434343\n"
            "def f(cur, full):\n    cur.execute('SELECT pg_advisory_lock(%s)', [key_of(full)])\n",
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_site_has_the_key_of_each_branch(listed, name):
    assert sorted(listed({name: BRANCHES[name]})) == read("424242", "434343")


def test_a_later_assignment_in_any_case_counts_alone(listed):
    assert listed({"a.py": "def f(cur):\n    key = 1\n    key = 424242\n    cur.execute('SELECT pg_advisory_lock(%s)', [key])\n",
                   "b.go": 'package p\nfunc f() {\n\tkey := 1\n\tkey = 434343\n\tdb.Exec(ctx, "SELECT pg_advisory_lock($1)", key)\n}\n'}) == \
        read("424242", "434343")


def test_a_branch_that_nobody_can_tell_leaves_the_site_unresolved_beside_the_other(listed):
    text = ("def f(cur, full):\n    key = 424242\n    if full:\n        key = compute(full)\n"
            "    cur.execute('SELECT pg_advisory_lock(%s)', [key])\n")
    assert listed({"a.py": text}) == [*read("424242"), ("unresolved", None)]


@pytest.mark.parametrize("name,text", [
    ("a.go", 'package p\nfunc (o Options) f() {\n\tkey := int64(424242)\n\tif o.Key > 0 {\n\t\tkey = o.Key\n\t}\n'
             '\tdb.Exec(ctx, "SELECT pg_advisory_lock($1)", key)\n}\n'),
    ("a.go", 'package p\nconst Default int64 = 424242\nfunc New() *L { c := conf{lockID: Default}\n\treturn &L{lockID: c.lockID} }\n'
             'func WithLockID(lockID int64) Option { return func(c *conf) { c.lockID = lockID } }\n'
             'func (l *L) Lock() { db.Exec(ctx, "SELECT pg_advisory_lock($1)", l.lockID) }\n'),
    ("a.php", "<?php\nclass A {\n  private const DEFAULT_ID = 424242;\n  function __construct($config) {\n"
              "    $this->config = array_merge(['table' => 'x', 'lock_id' => self::DEFAULT_ID], $config);\n  }\n"
              "  function f() { $db->query(sprintf('SELECT pg_advisory_lock(%s)', $this->config['lock_id'])); }\n}\n"),
])
def test_a_default_that_an_option_replaces_is_read(listed, name, text):
    assert listed({name: text})[0] == ("read", "424242")


LISTS = {
    "a.py": "def f(cur):\n    for key in [424242, 434343]:\n        cur.execute('SELECT pg_advisory_lock(%s)', [key])\n",
    "a.go": 'package p\nfunc f() {\n\tfor _, key := range []int64{424242, 434343} {\n\t\tdb.Exec(ctx, "SELECT pg_advisory_lock($1)", key)\n\t}\n}\n',
    "a.ts": "const KEYS = [424242, 434343];\nfunction f() {\n  for (const key of KEYS) {\n    db.query('SELECT pg_advisory_lock($1)', [key]);\n  }\n}\n",
    "A.java": 'class A { void f() {\n  for (long key : List.of(424242, 434343)) {\n    db.query("SELECT pg_advisory_lock(?)", key);\n  }\n} }\n',
    "a.php": "<?php\nfunction f() {\n  foreach ([424242, 434343] as $key) {\n    $db->query(\"SELECT pg_advisory_lock($key)\");\n  }\n}\n",
    "a.rb": "def f\n  [424242, 434343].each do |key|\n    conn.execute(\"SELECT pg_advisory_lock(#{key})\")\n  end\nend\n",
    "a.rs": 'fn f() {\n    for key in [424242, 434343] {\n        query("SELECT pg_advisory_lock($1)").bind(key);\n    }\n}\n',
    "b.py": "TASKS = [Task(name='a', lock_id=424242), Task(name='b', lock_id=434343)]\ndef f(cur):\n    for task in TASKS:\n"
            "        cur.execute('SELECT pg_advisory_lock(%s)', [task.lock_id])\n",
}


@pytest.mark.parametrize("name", LISTS)
def test_a_loop_takes_the_lock_of_each_item(listed, name):
    assert sorted(listed({name: LISTS[name]})) == read("424242", "434343")


def test_a_function_that_locks_a_list_takes_the_items_of_its_callers(listed):
    text = ('package p\nfunc hold(ctx C, lockKeys []string) {\n\tfor _, key := range lockKeys {\n'
            '\t\tdb.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", key)\n\t}\n}\n'
            'func f(id string) { hold(ctx, []string{"workspace:" + id, "property:" + id}) }\n')
    assert listed({"a.go": text}) == [PASSED, *read("'workspace:…'", "'property:…'")]


@pytest.mark.parametrize("suffix,constant,use", [
    ("go", "package p\nconst tryLock = `SELECT pg_try_advisory_lock($1)`\n",
     "package p\nconst lockID = 424242\nfunc f() { r := c.QueryRowContext(ctx, tryLock, lockID) }\n"),
    ("ts", "export const LOCK_STATEMENT = 'SELECT pg_try_advisory_lock($1)';\n", "const r = await c.query(LOCK_STATEMENT, [424242]);\n"),
    ("py", "LOCK_STATEMENT = 'SELECT pg_try_advisory_lock(%s)'\n", "def f(cur):\n    got = cur.execute(LOCK_STATEMENT, (424242,))\n"),
])
def test_sql_in_a_constant_of_another_file_is_given_its_values_there(listed, suffix, constant, use):
    assert listed({f"a.{suffix}": constant, f"b.{suffix}": use}) == [PASSED, *read("424242")]


@pytest.mark.parametrize("name,text", [
    ("a.go", 'package p\nfunc f(name string) {\n\th := fnv.New32()\n\th.Write([]byte("migrate:"))\n\th.Write([]byte(name))\n'
             '\tid := h.Sum32()\n\tdb.Exec(ctx, "SELECT pg_advisory_lock($1)", id)\n}\n'),
    ("a.py", "def f(cur, name):\n    h = hashlib.sha1()\n    h.update(b'migrate:')\n    h.update(name)\n"
             "    cur.execute('SELECT pg_advisory_lock(%s)', [int(h.hexdigest()[:8], 16)])\n"),
    ("a.rs", 'fn key_of(name: &str) -> i64 {\n    let key = format!("migrate:{name}");\n    let hash = blake3::hash(key.as_bytes());\n'
             '    let bytes: [u8; 8] = hash.as_bytes()[..8].try_into().unwrap_or([0u8; 8]);\n    i64::from_le_bytes(bytes)\n}\n'
             'fn f(name: &str) { query("SELECT pg_advisory_lock($1)").bind(key_of(name)); }\n'),
])
def test_the_label_is_all_that_is_written_into_a_hash(listed, name, text):
    assert listed({name: text}) == read("'migrate:…'")


def test_a_lazy_constant_of_rust_is_what_its_closure_makes(listed):
    text = ('static KEY: LazyLock<i64> = LazyLock::new(|| {\n    let hash = blake3::hash(b"whole-config");\n'
            '    let bytes: [u8; 8] = hash.as_bytes()[..8].try_into().unwrap_or([0u8; 8]);\n    i64::from_le_bytes(bytes)\n});\n'
            'fn f() { query("SELECT pg_advisory_lock($1)").bind(*KEY); }\n')
    assert listed({"a.rs": text}) == read("'whole-config'")


@pytest.mark.parametrize("files", [
    {"Locks.java": "public enum Locks {\n  REPORT(424242),\n  IMPORT(434343);\n  private final long id;\n"
                   "  Locks(long id) { this.id = id; }\n  public long id() { return id; }\n}\n",
     "Use.java": 'class A { void f() { db.query("SELECT pg_advisory_lock(?)", Locks.REPORT.id()); } }\n'},
    {"Locks.kt": "enum class Locks(val id: Long) {\n  REPORT(424242),\n  IMPORT(434343)\n}\n",
     "Use.kt": 'fun f() { db.query("SELECT pg_advisory_lock(${Locks.REPORT.id})") }\n'},
])
def test_a_member_of_an_enumeration_has_the_number_that_it_is_given(listed, files):
    assert listed(files) == read("424242")


def test_a_method_that_derived_classes_give_has_their_labels(listed):
    assert sorted(listed({
        "base.rb": "class Base\n  def call\n    Model.with_advisory_lock!(lock_key) { yield }\n  end\nend\n",
        "a.rb": 'class A < Base\n  def lock_key\n    "quote-#{id}"\n  end\nend\n',
        "b.rb": 'class B < Base\n  def lock_key\n    "wallet-#{id}"\n  end\nend\n',
    })) == read("'quote-…'", "'wallet-…'")


def test_a_method_is_that_of_the_class_it_is_called_on(listed):
    assert listed({
        "Queries.java": "class Queries {\n  static void hold(Start s, String key) {\n"
                        '    db.query("SELECT pg_advisory_lock(hashtext(?))", key);\n  }\n}\n',
        "Start.java": 'class Start {\n  private static final String NAME = "signing_key";\n'
                      "  void hold(String key) { Queries.hold(this, key); }\n  void f() { Queries.hold(this, NAME); }\n}\n",
    }) == [PASSED, PASSED, *read("'signing_key'")]


def test_a_member_of_a_variable_is_no_constant_of_another_file(listed):
    assert listed({
        "a/a.go": "package a\nconst AdvisoryLockKey int64 = 434343\n",
        "b/b.go": 'package b\nfunc f() {\n\topts := load()\n\tdb.Exec(ctx, "SELECT pg_advisory_lock($1)", opts.AdvisoryLockKey)\n}\n',
    }) == [("unresolved", None)]


def test_a_function_that_is_passed_with_its_arguments_is_called(listed):
    assert listed({"a.py": "def hold(lock_key):\n    cur.execute('SELECT pg_advisory_lock(hashtextextended(%s, 0))', [lock_key])\n"
                           "async def f():\n    await asyncio.to_thread(hold, 'maintenance')\n"}) == [PASSED, *read("'maintenance'")]


@pytest.mark.parametrize("name", ["MySqlStore.php", "mariadb/Store.php"])
def test_a_file_for_another_database_takes_no_locks_of_postgresql(listed, name):
    lock = ("<?php\nclass PostgresLock {\n  public function getLock(string $name) {\n"
            "    $this->db->query(\"SELECT pg_advisory_lock(hashtext('$name'))\");\n  }\n}\n")
    call = "<?php\nclass Store {\n  function f() { $this->lock->getLock('write'); }\n}\n"
    assert listed({"PostgresLock.php": lock, "PostgresStore.php": call, name: call}) == [PASSED, *read("'write'")]


def test_a_workflow_is_read(listed):
    assert listed({".github/workflows/a.yml": "jobs:\n  a:\n    # pg_advisory_lock(1), isn't it?\n    steps:\n      - run: |\n"
                                              '          psql -c "SELECT pg_advisory_lock(424242)"\n'}) == read("424242")


@pytest.mark.parametrize("name,text", [
    ("a.py", "lock_sql = sa.text(f'select pg_advisory_lock{self.suffix}(:key)')\n"),
    ("a.ts", "const sql = `select pg_try_advisory_xact_lock${suffix}($1)`;\n"),
])
def test_a_name_with_a_part_that_is_put_in_is_a_site(listed, name, text):
    assert [outcome for outcome, _ in listed({name: text})] == ["unresolved"]


def test_a_class_of_python_with_a_member_impl_is_no_lock(listed):
    assert listed({
        "a.py": "class PgLock:\n    def __init__(self, lock_id):\n        self.lock_id = lock_id\n"
                "    def hold(self, cur):\n        cur.execute('SELECT pg_advisory_lock(%s)', [self.lock_id])\n"
                "def f():\n    PgLock(424242).hold(cur)\n",
        "b.py": "class Other(Base):\n    impl = JSONB\n    def __init__(self, model):\n        super().__init__(model)\n",
    }) == [PASSED, *read("424242")]

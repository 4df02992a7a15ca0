"""holdfast registry import: the tables that teams keep, as a registry."""

import json
import random

import pytest
import yaml

import hf
import sanitizers
from cli import EXIT_DATA, EXIT_USAGE

SAMPLES = hf.ROOT / "tests/registry"
TABLES = sorted(SAMPLES.glob("*-table.md"))
FIXED = "| Lock ID | Component | Purpose | Scope | Lock Type | File Reference |\n|---|---|---|---|---|---|\n"
HASHED = FIXED.replace("Lock ID", "Hash Input Pattern")


@pytest.fixture
def imported(holdfast):
    """The locks of a text, by name; .text and .notes have the rest."""

    def run(text, code=0):
        data = text if isinstance(text, bytes) else text.encode()
        done = holdfast("registry", "import", "-", input=data)
        assert done.code == code, done
        run.text, run.notes = done.out, done.err
        if code != 0:
            assert done.out == ""
            return {}
        locks = yaml.safe_load(done.out)["locks"]
        assert len({lock["name"] for lock in locks}) == len(locks)
        return {lock["name"]: lock for lock in locks}

    return run


def row(*cells):
    return f"| {' | '.join(cells)} |\n"


def only(locks):
    assert len(locks) == 1, locks
    return next(iter(locks.values()))


@pytest.fixture
def key_of(imported):
    return lambda cell: only(imported(FIXED + row(cell, "A", "b", "", "session", "")))["key"]


@pytest.fixture
def pattern_of(imported):
    def run(cell):
        return only(imported("SHA-256\n\n" + HASHED + row(cell, "A", "b", "", "session", "")))["key"]["pattern"]

    return run


# --- whole files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_a_sample_gives_the_registry_beside_it(holdfast, table):
    done = holdfast("registry", "import", table.name, cwd=SAMPLES)
    assert done.code == 0
    assert done.out == table.with_suffix(".yaml").read_text()


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_what_comes_out_passes_the_check_but_for_what_is_true(holdfast, tmp_path, table):
    (tmp_path / "locks.yaml").write_text(holdfast("registry", "import", table).out)
    done = holdfast("registry", "check", "--json", cwd=tmp_path)
    found = {finding["rule"] for finding in json.loads(done.out)["findings"]}
    assert found <= {"missing-source", "risk-unknown", "patterns-meet"}


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_import_doc_and_import_again_give_the_same_locks(holdfast, tmp_path, table):
    first = holdfast("registry", "import", table).out
    (tmp_path / "locks.yaml").write_text(first)
    page = holdfast("registry", "doc", cwd=tmp_path)
    assert page.code == 0
    (tmp_path / "LOCKS.md").write_text(page.out)
    again = holdfast("registry", "import", "LOCKS.md", cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    expected = yaml.safe_load(first)["locks"]
    for lock in expected:
        lock.setdefault("mode", "exclusive")  # what the registry takes it for
    assert yaml.safe_load(again.out)["locks"] == by_kind(expected)


def by_kind(locks):
    """A page has the fixed ids first."""
    return sorted(locks, key=lambda lock: "pattern" in lock["key"])


def test_everything_a_registry_can_say_survives_doc_and_import(holdfast, tmp_path):
    locks = [
        {"name": "one", "key": {"fixed": -5000000000}, "lifetime": "session", "mode": "shared",
         "scope": "a | b", "component": "C*D*_e_ [f](g)", "purpose": "`x` <b>y</b> & \\z ~~w~~ $1",
         "source": ["a b.ts", "c|d.py"], "owner": "team <a@b.example>",
         "runbook": "https://wiki.example/locks?a=1&lt;=(2)_é", "order": 7, "histogram": True},
        {"name": "two", "key": {"pair": [-1, 2147483647]}, "mode": "exclusive"},
        {"name": "three/é:x", "key": {"pattern": "{{a}}:{b}*|`c`...", "as": "sha256"},
         "placeholders": {"b": "\\d{4}|x\\|`y`"}, "lifetime": "transaction", "mode": "exclusive",
         "expected": 50000, "order": -20},
        {"name": "four", "key": {"class": 7, "pattern": "{a}-{b}-{c}", "as": "hashtext"},
         "placeholders": {"a": ["x", "y z", "1"], "c": "[^-]+"}, "mode": "exclusive"},
        {"name": "five", "key": {"pattern": "minted:{x}", "as": "minted"}, "mode": "exclusive"},
        {"name": "six", "key": {"pattern": "six", "as": "sha256"}, "lifetime": "lease", "mode": "exclusive"},
        {"name": "seven", "key": {"pattern": "seven", "as": "sha256"}, "lifetime": "lease", "lease": "90s", "mode": "shared"},
        {"name": "eight", "key": {"pattern": "eight", "as": "sha256"}, "lifetime": "lease", "lease": "1500ms",
         "mode": "exclusive"},
    ]
    (tmp_path / "locks.yaml").write_text(yaml.safe_dump({"version": 1, "locks": locks}))
    page = holdfast("registry", "doc", "-o", "LOCKS.md", cwd=tmp_path)
    assert page.code == 0, page
    again = holdfast("registry", "import", "LOCKS.md", cwd=tmp_path)
    assert again.code == 0, again
    assert yaml.safe_load(again.out)["locks"] == locks


# --- tables -----------------------------------------------------------------------------------------


def test_columns_are_known_by_name_in_any_order(imported):
    lock = only(imported("Team|Source|Lock_ID (decimal)|DESCRIPTION|Lock Level|Run-book\n"
                         "-|-|-|-|-|-\n"
                         "core|a.go|77777|Why|transaction|https://r.example\n"))
    assert lock["key"] == {"fixed": 77777}
    assert (lock["owner"], lock["source"], lock["purpose"]) == ("core", ["a.go"], "Why")
    assert (lock["lifetime"], lock["runbook"]) == ("transaction", "https://r.example")


def test_other_tables_are_skipped_with_a_note_of_their_line(imported):
    imported("| Key | Value |\n|---|---|\n| a | 1 |\n\n" + FIXED + row("5000", "A", "b", "", "", ""))
    assert imported.notes == "note: standard input:1: skipped the table 'Key | Value': it is not about locks\n"


def test_id_and_key_alone_count_under_a_heading_about_locks(imported):
    table = "| ID | Purpose |\n|---|---|\n| 5001 | x |\n"
    imported("# Numbers\n\n" + table, code=EXIT_DATA)
    assert only(imported("# Numbers\n\n## Of locks\n\n" + table))["key"] == {"fixed": 5001}
    assert only(imported("Our locks\n---------\n\n" + table))["key"] == {"fixed": 5001}


@pytest.mark.parametrize("hidden", ["```\n%s```\n", "~~~sql\n%s~~~\n", "<!--\n%s-->\n"])
def test_code_and_comments_are_no_tables(imported, hidden):
    table = FIXED + row("5000", "A", "b", "", "", "")
    imported(hidden % table, code=EXIT_DATA)
    assert len(imported(hidden % table + "\n" + table.replace("5000", "5001"))) == 1


def test_a_table_in_a_quotation_or_a_list_counts(imported):
    table = FIXED + row("5000", "A", "b", "", "", "")
    assert imported("".join(f"> {line}\n" for line in table.splitlines()))
    assert imported("- a\n\n" + "".join(f"    {line}\n" for line in table.splitlines()))


def test_crlf_and_a_byte_order_mark_make_no_difference(imported):
    table = FIXED + row("5000", "A", "b", "", "session", "a.ts")
    assert imported(table.replace("\n", "\r\n")) == imported(table) == imported("\ufeff" + table)


def test_a_table_by_name_adds_owners_runbooks_and_order(imported):
    locks = imported("| Lock ID | Name |\n|---|---|\n| 5000 | a |\n| 5001 | b |\n\n"
                     "| Name | Owner | Runbook | Order |\n|---|---|---|---|\n"
                     "| b | core | <https://r.example/b> | 3 |\n| c | nobody | | |\n")
    assert locks["b"] == {"name": "b", "key": {"fixed": 5001}, "owner": "core",
                          "runbook": "https://r.example/b", "order": 3}
    assert "owner" not in locks["a"]
    assert "no table has a lock of that name" in imported.notes


def test_marks_of_markdown_are_gone_from_text(imported):
    lock = only(imported(FIXED + row("5000", "**Bold** _it_ `co*de`", r"a \| b \*c\* [link](u) snake_case &lt;x&gt; "
                                     "~~no~~ a<br>b <kbd>k</kbd> <id> 2*3*4 &#124;", "", "", "")))
    assert lock["component"] == "Bold it co*de"
    assert lock["purpose"] == "a | b *c* link snake_case <x> no a b k <id> 2*3*4 |"


def test_columns_without_a_meaning_become_comments(imported):
    imported("| Lock ID | Since |\n|---|---|\n| 5000 | 2019: spring |\n")
    assert "  # Since: 2019: spring\n" in imported.text


@pytest.mark.parametrize("mark", ["\r", "\x0b", "\u2028", "\u0085", "<br>", "&#10;"], ids=ascii)
def test_no_mark_in_a_title_or_a_cell_ends_a_comment(imported, mark):
    title, cell = f"a{mark}- b", f"c{mark}  - d: e"
    assert only(imported(f"| Lock ID | {title} |\n|---|---|\n| 5000 | {cell} |\n"))["key"] == {"fixed": 5000}
    assert "# a - b: c" in imported.text


# --- keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell, key", [
    ("42424242", 42424242),
    ("`42424242`", 42424242),
    ("**42424242**", 42424242),
    ("42_424_242", 42424242),
    ("42,424,242", 42424242),
    ("42424242n", 42424242),
    ("42424242::bigint", 42424242),
    ("0x2876CE4", 0x2876CE4),
    ("-7000", -7000),
    ("CLEANUP_LOCK_2 = 5000", 5000),
    ("5000 (0x1388)", 5000),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775808", -(2**63)),
    ("0xFFFFFFFFFFFFFFFF", -1),
])
def test_a_number_is_read_however_it_is_written(key_of, cell, key):
    assert key_of(cell) == {"fixed": key}


@pytest.mark.parametrize("cell, pair", [
    ("(1, 2)", [1, 2]),
    ("`(1,234)`", [1, 234]),
    ("1, 2", [1, 2]),
    ("7 / 42", [7, 42]),
    ("[-1; 2147483647]", [-1, 2147483647]),
    ("(0xFFFFFFFF, 1)", [-1, 1]),
])
def test_two_numbers_are_a_pair(key_of, cell, pair):
    assert key_of(cell) == {"pair": pair}


def test_class_and_object_id_in_two_columns_are_a_pair(imported):
    lock = only(imported("| Class ID | Object ID | Lock Type | Scope |\n|---|---|---|---|\n| 7 | 42 | session | x |\n"))
    assert lock["key"] == {"pair": [7, 42]}


@pytest.mark.parametrize("cell, why", [
    ("TBD", "no lock id or pattern"),
    ("soon", "no lock id"),
    ("1000-1999", "several numbers"),
    ("1000..1999", "several numbers"),
    ("9223372036854775808", "more than PostgreSQL takes"),
    ("99999999999999999999999999", "more than PostgreSQL takes"),
    ("(1, 4294967296)", "more than PostgreSQL takes"),
])
def test_a_row_without_a_usable_id_is_left_out_with_a_warning_and_kept_as_a_comment(imported, cell, why):
    assert imported(FIXED + row(cell, "Search", "Reindex", "", "", "")) == {}
    assert "warning: standard input:3: left out a row" in imported.notes and why in imported.notes
    assert "# - name: search\n" in imported.text


def test_a_key_that_stands_twice_is_left_out_the_second_time(imported):
    locks = imported(FIXED + row("5000", "A", "b", "", "", "") + row("0x1388", "C", "d", "", "", ""))
    assert list(locks) == ["a"]
    assert "left out c: its key stands in line 3 already" in imported.notes


@pytest.mark.parametrize("cell, pattern", [
    ("`${tenantId}:${date}`", "{tenant_id}:{date}"),
    ("`{tenantId}:balance:{bookingId}`", "{tenant_id}:balance:{booking_id}"),
    ("`tenant-<id>:x`", "tenant-{id}:x"),
    (r"tenant-\<id\>:x", "tenant-{id}:x"),
    ("`#{order.id}/{{HTTPHost}}`", "{order_id}/{http_host}"),
    ("`${this.tenantId}-${id}-${id}`", "{tenant_id}-{id}-{id_2}"),
    ("`job:%s:%d`", "job:{value}:{value_2}"),
    ("`job:%(name)s:$1`", "job:{name}:{arg_1}"),
    ("`job:$1:$1`", "job:{arg_1}:{arg_1_2}"),
    ("`[tenant]:{}`", "{tenant}:{value}"),
    ("`'nightly'`", "nightly"),
    ("`a{b`", "a{{b"),
    ("`x:*`", "x:{rest}"),
    ("`größe:{größe}`", "größe:{gr_e}"),
])
def test_placeholders_of_every_style_become_the_registrys(pattern_of, cell, pattern):
    assert pattern_of(cell) == pattern


def test_as_many_placeholders_as_there_are_stay_valid(pattern_of):
    assert pattern_of("`" + "${a}" * 40 + "`").endswith("{a_32}" + "${{a}}" * 8)


def test_what_an_ellipsis_stands_for_is_marked_as_unknown(imported):
    lock = only(imported(HASHED + row("`t-<id>:…`", "A", "b", "", "", "")))
    assert lock["placeholders"] == {"rest": ".+"}
    assert "# unknown: what '…' stands for is not stated, anything assumed: check" in imported.text


def test_a_lock_key_column_may_have_both_numbers_and_labels(imported):
    locks = imported("| Lock Key | Purpose |\n|---|---|\n| 5000 | a |\n| `day:{d}` | b |\n| hashtext('x') | c |\n")
    assert [lock["key"] for lock in locks.values()] == [
        {"fixed": 5000}, {"pattern": "day:{d}", "as": "sha256"}, {"pattern": "x", "as": "hashtext"}]


# --- lifetimes, files, derivations, names -------------------------------------------------------------


@pytest.mark.parametrize("cell, lifetime, mode", [
    ("Session-level exclusive", "session", "exclusive"),
    ("Transaction-level shared", "transaction", "shared"),
    ("`pg_advisory_xact_lock`", "transaction", "exclusive"),
    ("pg_try_advisory_lock", "session", "exclusive"),
    ("pg_try_advisory_xact_lock_shared", "transaction", "shared"),
    ("pg_advisory_lock_shared()", "session", "shared"),
    ("Transaction", "transaction", None),
    ("TX", "transaction", None),
    ("shared", None, "shared"),
    ("Lease, exclusive", "lease", "exclusive"),
    ("lease of 2y, shared", "lease", "shared"),
    ("session or lease, exclusive", None, "exclusive"),
    ("release, exclusive", None, "exclusive"),
    ("session or transaction, exclusive", None, "exclusive"),
    ("advisory", None, None),
    ("", None, None),
])
def test_a_lock_type_gives_lifetime_and_mode_or_says_that_it_does_not(imported, cell, lifetime, mode):
    lock = only(imported(FIXED + row("5000", "A", "b", "", cell, "")))
    assert (lock.get("lifetime"), lock.get("mode")) == (lifetime, mode)
    assert ("# unknown: lifetime" in imported.text) == (lifetime is None)
    assert ("# unknown: mode" in imported.text) == (mode is None)


@pytest.mark.parametrize("cell, sources", [
    ("`a/b.ts:123`", ["a/b.ts"]),
    ("a/b.ts:12-40, c.go:7:3", ["a/b.ts", "c.go"]),
    ("a.ts:1<br>a.ts:9", ["a.ts"]),
    ("[b.ts](a/b.ts#L12)", ["a/b.ts"]),
    ("[here](../a/b.ts#L1-L4)", ["../a/b.ts"]),
    ("https://git.example/t/p/blob/main/src/x.rs#L9", None),
    ("[x](https://git.example/t/p/blob/main/src/x.rs#L9)", ["src/x.rs"]),
    ("./src/Makefile and `lib/my file.py`", ["lib/my file.py"]),
    ("cleanup()", None),
    ("-", None),
])
def test_file_references_become_sources_without_lines(imported, cell, sources):
    assert only(imported(FIXED + row("5000", "A", "b", "", "", cell))).get("source") == sources


def test_the_line_of_a_reference_is_kept_in_a_comment(imported):
    imported(FIXED + row("5000", "A", "b", "", "", "`a/b.ts:123`"))
    assert "  # file reference: a/b.ts:123\n" in imported.text


@pytest.mark.parametrize("prose, source, derivation, comment", [
    ("Hashed with FNV-1a (32-bit).", "a.go", "fnv1a32", "derivation from line 3"),
    ("Hashed with 64-bit FNV-1a.", "a.ts", "fnv1a64", "derivation from line 3"),
    ("We use FNV-1a.", "a.go", "fnv1a32", "32 or 64 bits is not stated, 32 assumed"),
    ("FNV-1a 32-bit over `charCodeAt`", "a.go", "fnv1a32-js", "derivation from line 3"),
    ("FNV-1a 32 bit", "a.ts", "fnv1a32-js", "assumed for JavaScript"),
    ("`SELECT pg_advisory_lock(hashtext(key))`", "a.go", "hashtext", "derivation from line 3"),
    ("`hashtextextended(key, 0)`", "a.go", "hashtextextended", "derivation from line 3"),
    ("The first bytes of SHA-256.", "a.go", "sha256", "which bytes of SHA-256"),
    ("MurmurHash, cut.", "a.go", "sha256", "line 3 speaks of MurmurHash, which is no derivation here"),
    ("MD5, cut.", "a.go", "md5", "which bytes of MD5 make the key is not stated"),
    ("CRC-32 of it.", "a.go", "crc32", "how CRC-32 becomes the key is not stated"),
    ("FNV-1a now, hashtext before.", "a.go", "sha256", "several hashes are spoken of in lines 3 to 3"),
    ("Nothing.", "a.go", "sha256", "derivation not stated, sha256 assumed"),
])
def test_the_prose_near_a_table_tells_the_derivation(imported, prose, source, derivation, comment):
    lock = only(imported(f"# Hashed locks\n\n{prose}\n\n" + HASHED + row("`{a}`", "A", "b", "", "", source)))
    assert lock["key"]["as"] == derivation
    assert comment in imported.text


def test_the_nearest_section_decides_the_derivation(imported):
    table = HASHED + row("`{a}`", "%s", "b", "", "", "")
    locks = imported("# Locks\n\nhashtext\n\n## A\n\n" + table % "One" +
                     "\n## B\n\n" + (table % "Two").replace("{a}", "b{a}") + "\nSHA-256 here.\n\n## C\n\n" +
                     (table % "Three").replace("{a}", "c{a}"))
    assert [lock["key"]["as"] for lock in locks.values()] == ["hashtext", "sha256", "hashtext"]


def test_a_section_of_its_own_about_hashing_is_used_with_a_word_of_doubt(imported):
    lock = only(imported("# Locks\n\n" + HASHED + row("`{a}`", "A", "b", "", "", "") + "\n# Hashing\n\nhashtext\n"))
    assert lock["key"]["as"] == "hashtext"
    assert "# derivation from line 9, in another section: check" in imported.text


@pytest.mark.parametrize("cell, derivation", [("`fnv1a64`", "fnv1a64"), ("FNV-1a, 64-bit", "fnv1a64"), ("minted", "minted")])
def test_a_column_about_the_hash_goes_before_all_prose(imported, cell, derivation):
    text = "hashtext\n\n| Pattern | Hash Function | Scope |\n|---|---|---|\n" + row("`{a}`", cell, "x")
    assert only(imported(text))["key"]["as"] == derivation


def test_names_come_from_component_and_purpose_and_each_only_once(imported):
    locks = imported(FIXED + "".join(row(str(5000 + i), *cells, "", "", "") for i, cells in enumerate([
        ("IdempotencyService", "Only one cleans up"),
        ("HTTPServer v2", "Start the listener"),
        ("HTTPServer v2", "Stop the listener for the night and then start it again"),
        ("", "Purge: old & new"),
        ("", "purge old new"),
        ("", ""),
        ("Überweisung", "x"),
    ])))
    assert list(locks) == ["idempotency-service", "http-server-v2-start-the-listener",
                           "http-server-v2-stop-the-listener-for-the-night",
                           "purge-old-new", "purge-old-new-2", "lock-5005", "Überweisung"]


def test_many_rows_with_one_name_are_numbered_in_no_time(imported):
    locks = imported(FIXED + "".join(row(str(5000 + i), "A", "b", "", "", "") for i in range(10000)))
    assert list(locks)[-1] == "a-b-10000"


# --- YAML -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    "a: b", "a #b", "- x", "yes", "No", "null", "12", "0x1F", "1e3", "2024-01-01", "12:30", "? x", "x,y", "[x]", "{x}",
    "@x", "%x", "!x", "&x", "*x", "'x'", '"x"', "\\x", "x:", "#x", ".inf", "größe 東京 🔒", "a\u200bb", "\u202ex", "a\u00a0b",
    "\u0085", "x\u2028y", "\ufffe", "true", "on", "=", "<<", "x\x07y",
], ids=ascii)
def test_every_text_comes_through_yaml_as_it_was(imported, text):
    written = "".join(f"&#{ord(c)};" if not c.isalnum() else c for c in text)
    lock = only(imported(FIXED + row("5000", "x" + written, written, "s", "", "")))
    assert (lock["purpose"], lock["component"]) == (text, "x" + text)


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data, message", [
    (b"", "standard input has no table of locks"),
    (b"# Nothing\n\ntext\n", "standard input has no table of locks"),
    (FIXED.encode() + b"| 1 | a\0 |\n", "standard input:3: a NUL byte"),
    (FIXED.encode() + b"\n\n| 1 | \xff |\n", "standard input:5: byte 0xff is no UTF-8"),
    (bytes(range(256)), "standard input:1: a NUL byte"),
    ("| Lock ID |\n|--|\n".encode("utf-16"), "standard input:1: byte 0xff is no UTF-8"),
    (FIXED.encode() + b"| " + b"9" * 9000 + b" |\n", "standard input:3: a cell of the table has 9000 bytes"),
    (FIXED.encode() + b"".join(b"| %d |\n" % n for n in range(10001)), "standard input:10003: more than 10000 locks"),
], ids=["empty", "no-table", "nul", "not-utf8", "binary", "utf16", "large-cell", "too-many"])
def test_bad_input_is_refused_with_its_line(holdfast, data, message):
    done = holdfast("registry", "import", "-", input=data)
    assert (done.code, done.out) == (EXIT_DATA, "")
    assert message in done.err


def test_a_file_that_is_not_there_and_a_folder_are_refused(holdfast, tmp_path):
    for path in (tmp_path / "none.md", tmp_path):
        done = holdfast("registry", "import", path)
        assert done.code == EXIT_DATA and str(path) in done.err


def test_no_file_and_two_files_are_wrong_usage(holdfast):
    assert holdfast("registry", "import").code == EXIT_USAGE
    assert holdfast("registry", "import", "a", "b").code == EXIT_USAGE


@sanitizers.with_own_memory
def test_a_huge_file_is_refused_after_the_first_8_mib(holdfast, tmp_path):
    path = tmp_path / "huge.md"
    with path.open("wb") as file:
        file.truncate(100 * 1000 * 1000)
    limited = ("sh", "-c", 'ulimit -v 90000; exec "$@"', "sh")
    done = holdfast("registry", "import", path, prefix=limited)
    assert done.code == EXIT_DATA and "more than 8388608 bytes" in done.err


@pytest.mark.parametrize("piece", ["[", "[a](", "<code>", "<i>", "**a", "_a", "`", "``a`", "&", "\\", "<", "~~a", "${", "|"])
def test_marks_without_end_take_no_time(imported, piece):
    cell = piece * (8000 // len(piece))
    lines = (FIXED + row("5000", cell, cell, "", "", "")).encode() * 100
    imported(lines)


def mutated(text, chance):
    data = bytearray(text)
    for _ in range(chance.choice([1, 2, 5, 20, 100])):
        at, size = chance.randrange(len(data)), chance.choice([1, 1, 2, 10, 60])
        what = chance.randrange(5)
        if what == 0:
            del data[at:at + size]
        elif what == 1:
            data[at:at] = bytes(chance.choice(b"|-`<>{}[]()*_~\\&#$%:\n\r\t ,0x9e\"'!") for _ in range(size))
        elif what == 2:
            other = chance.randrange(len(data))
            data[at:at] = data[other:other + size]
        elif what == 3:
            data[at] = chance.choice(b"|`\\\n<&")
        else:
            data[at] = chance.randrange(256) if chance.random() < 0.05 else chance.randrange(0x20, 0x7F)
        if not data:
            return b" "
    return bytes(data)


def test_mutated_samples_are_imported_or_refused_and_what_comes_out_is_a_registry(holdfast, tmp_path):
    chance = random.Random(4)
    path, codes = tmp_path / "locks.yaml", set()
    samples = [table.read_bytes() for table in TABLES]
    for round_number in range(150):
        text = mutated(chance.choice(samples), chance)
        done = holdfast("registry", "import", "-", input=text)
        assert done.code in (0, EXIT_DATA), (text, done)
        codes.add(done.code)
        if done.code == 0:
            assert yaml.safe_load(done.out)["version"] == 1
        if done.code == 0 and round_number % 3 == 0:
            path.write_text(done.out)
            findings = json.loads(holdfast("registry", "check", "--json", path).out)["findings"]
            assert not [finding for finding in findings if finding["severity"] == "error"], (text, findings)
    assert codes == {0, EXIT_DATA}


def test_mutated_pages_are_imported_or_refused(holdfast, tmp_path):
    (tmp_path / "locks.yaml").write_text(holdfast("registry", "import", TABLES[0]).out)
    page = holdfast("registry", "doc", cwd=tmp_path).out.encode()
    chance = random.Random(5)
    for _ in range(60):
        text = mutated(page, chance)
        done = holdfast("registry", "import", "-", input=text)
        assert done.code in (0, EXIT_DATA), (text, done)
        if done.code == 0:
            assert yaml.safe_load(done.out)["version"] == 1


# --- what must not be read wrongly ----------------------------------------------------------------------


@pytest.mark.parametrize("minus, doubtful", [("\u2212", False), ("\uff0d", False), ("\u2013", True)])
def test_a_typographers_minus_is_a_minus(imported, minus, doubtful):
    lock = only(imported(FIXED + row(f"{minus}5000", "A", "b", "", "session", "")))
    assert lock["key"] == {"fixed": -5000}
    assert ("taken for a minus" in imported.text) == doubtful


def test_two_kinds_of_lock_in_one_cell_are_marked(imported):
    lock = only(imported(FIXED + row("5000", "A", "b", "", "`pg_advisory_lock` / `pg_advisory_xact_lock`", "")))
    assert "lifetime" not in lock
    assert "session or transaction" in imported.text


def test_a_table_of_patterns_and_derivations_is_read(imported):
    lock = only(imported("# Advisory locks\n\n| Pattern | Derivation |\n|---|---|\n| `Job:{id}` | crc32 |\n"))
    assert lock["key"] == {"pattern": "Job:{id}", "as": "crc32"}


@pytest.mark.parametrize("derivation", [
    "sha256", "fnv1a64", "fnv1a32", "fnv1a32-js", "hashtext", "hashtextextended", "crc32", "crc32-sqlx", "md5",
    "java-hashcode", "with-advisory-lock", "distributedlock-ascii", "distributedlock-hash"])
def test_every_derivation_is_read_by_its_name(imported, derivation):
    table = f"| Hash Input Pattern | Name | Derivation |\n|---|---|---|\n| `Job:{{id}}` | job | `{derivation}` |\n"
    key = only(imported(table))["key"]
    assert key.get("as", "sha256") == derivation


@pytest.mark.parametrize("text, said", [
    ("<table><tr><td>42424242</td></tr></table>\n", "a table in HTML"),
    ("- 42424242: the cleanup\n", "an item of a list"),
    ("* `Job:{id}` for jobs\n", "an item of a list"),
])
def test_locks_outside_of_tables_are_told_as_unread(imported, text, said):
    imported("# Advisory locks\n\n" + FIXED + row("5000", "A", "b", "", "session", "") + "\n" + text)
    assert "not read" in imported.notes and said in imported.notes


def test_a_pattern_with_a_control_character_is_left_out_and_told(imported):
    locks = imported("# Advisory locks\n\n| Pattern | Purpose |\n|---|---|\n| `Job:\x0b{id}` | a |\n| `Task:{id}` | b |\n")
    assert only(locks)["key"]["pattern"] == "Task:{id}"
    assert "control character" in imported.notes


def test_crossed_out_and_indented_rows_are_no_locks(imported):
    locks = imported(FIXED + row("~~5000~~", "Old", "b", "", "session", "") + row("6000", "A", "b", "", "session", ""))
    assert only(locks)["key"] == {"fixed": 6000}
    assert "crossed out" in imported.notes
    indented = "".join(f"    {line}\n" for line in (FIXED + row("7000", "C", "d", "", "session", "")).splitlines())
    locks = imported(FIXED + row("6000", "A", "b", "", "session", "") + "\nAn example:\n\n" + indented)
    assert only(locks)["key"] == {"fixed": 6000}
    assert len(imported(FIXED + row("6000", "A", "b", "", "session", "") + "\n- In a list:\n\n" + indented)) == 2


def test_a_try_is_not_lost(imported):
    imported(FIXED + row("5000", "A", "b", "", "`pg_try_advisory_lock`", ""))
    assert "acquired without waiting: pg_try_advisory_lock" in imported.text

"""holdfast registry doc: the registry as Markdown, and the check that it was written."""

import contextlib
import html.parser
import json
import os
import re
import stat

import pytest
import yaml

import hf
import hf_registry
from cli import EXIT_CONFIG, EXIT_FAILED

LOCKS = [
    "name: cleanup, key: { fixed: 42424242 }, lifetime: session, component: Idempotency, purpose: Clean up,"
    " source: [a.ts, b.ts], owner: payments, runbook: 'https://wiki.example/cleanup', order: 20",
    "name: negative, key: { fixed: -1 }, mode: shared, lifetime: session",
    "name: pair, key: { pair: [-2, 7] }, lifetime: transaction, order: 10",
    "name: booking, key: { pattern: 'Booking:{tenant}:{date}', as: fnv1a32-js }, expected: 50000,"
    " placeholders: { date: '\\d{4}' }, lifetime: transaction",
    "name: transfer, key: { pattern: 'Transfer:{from}' }, expected: 100, placeholders: { from: [a, b] }",
    "name: legacy, key: { class: 7, pattern: 'old:{x}', as: hashtext }",
]


def test_with_json_it_prints_one_document(holdfast, tmp_path):
    (tmp_path / "locks.yaml").write_text("version: 1\nlocks: []\n")
    page = holdfast("registry", "doc", cwd=tmp_path).out
    assert json.loads(holdfast("registry", "doc", "--json", cwd=tmp_path).out) == {
        "format": "markdown", "file": None, "page": page}
    done = holdfast("registry", "doc", "--json", "-o", "page.md", cwd=tmp_path)
    assert json.loads(done.out) == {"format": "markdown", "file": "page.md", "page": None}
    done = holdfast("registry", "doc", "--json", "--check", "-o", "page.md", cwd=tmp_path)
    assert json.loads(done.out)["stale"] is False
    (tmp_path / "page.md").write_text("old")
    done = holdfast("registry", "doc", "--json", "--check", "-o", "page.md", cwd=tmp_path)
    assert done.code == 1 and done.out == "" and "is stale" in json.loads(done.err)["error"]["message"]


@pytest.fixture
def doc(holdfast, tmp_path):
    """The page of these locks, or of a registry as Python has it."""

    def run(locks, *options, code=0, folder=tmp_path):
        if locks and isinstance(locks[0], dict):
            (folder / "locks.yaml").write_text(yaml.safe_dump({"version": 1, "locks": locks}))
        else:
            hf_registry.write(folder, locks) if locks else (folder / "locks.yaml").write_text("version: 1\nlocks: []\n")
        done = holdfast("registry", "doc", *options, cwd=folder)
        assert done.code == code, done
        return done.out

    return run


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]]


def tables(page):
    """{first title: [titles, row, …]}"""
    found, rows = {}, []
    for line in [*page.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(cells(line))
        elif rows:
            assert len({len(row) for row in rows}) == 1, rows
            found[tuple(rows[0])] = rows[2:]
            rows = []
    return found


def test_the_page_names_its_maker_and_has_every_section(doc):
    page = doc(LOCKS)
    assert page.splitlines()[0].startswith("<!-- Made by `holdfast registry doc`")
    assert "Do not edit" in page.splitlines()[0]
    assert re.findall(r"^## (.*)$", page, flags=re.M) == [
        "Fixed ids", "Patterns", "Lifetimes and modes", "Order", "Collision risk", "Owners and runbooks",
        "How to inspect"]


def test_fixed_ids_and_pairs_stand_in_the_order_of_the_file(doc):
    rows = tables(doc(LOCKS))[("Lock ID", "Name", "Component", "Purpose", "Lock Type", "File Reference")]
    assert rows == [
        ["`42424242`", "`cleanup`", "Idempotency", "Clean up", "session, exclusive", "`a.ts`<br>`b.ts`"],
        ["`-1`", "`negative`", "", "", "session, shared", ""],
        ["`(-2, 7)`", "`pair`", "", "", "transaction, exclusive", ""],
    ]


def test_patterns_tell_placeholders_derivation_and_what_is_expected(doc):
    rows = tables(doc(LOCKS))[("Hash Input Pattern", "Name", "Class", "Derivation", "Placeholders", "Expected",
                               "Lock Type")]
    assert rows == [
        ["`Booking:{tenant}:{date}`", "`booking`", "", "`fnv1a32-js`",
         "`tenant`: anything but `:`<br>`date`: `\\d{4}`", "50000", "transaction, exclusive"],
        ["`Transfer:{from}`", "`transfer`", "", "`sha256`", "`from`: one of `a`, `b`", "100", "exclusive"],
        ["`old:{x}`", "`legacy`", "`7`", "`hashtext`", "`x`: anything but `:`", "", "exclusive"],
    ]


def test_lifetimes_order_and_owners_have_tables_of_their_own(doc):
    found = tables(doc(LOCKS))
    kinds = {(row[0], row[1]): row[4] for row in found[("Lifetime", "Mode", "Taken with", "Ends", "Locks")]}
    assert kinds == {("session", "exclusive"): "`cleanup`", ("session", "shared"): "`negative`",
                     ("transaction", "exclusive"): "`pair`, `booking`",
                     ("not stated", "exclusive"): "`transfer`, `legacy`"}
    assert found[("Order", "Name")] == [["10", "`pair`"], ["20", "`cleanup`"]]
    assert found[("Name", "Owner", "Runbook")] == [
        ["`cleanup`", "payments", "[https://wiki.example/cleanup](https://wiki.example/cleanup)"]]


def test_the_risk_is_the_one_that_registry_risk_tells(doc, holdfast, tmp_path):
    rows = tables(doc(LOCKS))[("Keys", "Bits", "Fixed", "Labels", "Collision", "1 % at", "50 % at")]
    told = holdfast("registry", "risk", cwd=tmp_path).out
    assert {row[0] for row in rows} >= {"fnv1a32-js", "sha256"}
    for row in rows:
        assert re.search(rf"^{row[0]} .*{re.escape(row[4])}", told, flags=re.M), (row, told)


def test_the_page_is_the_same_in_every_folder_and_at_every_time(doc, tmp_path):
    (tmp_path / "other").mkdir()
    page = doc(LOCKS)
    assert doc(LOCKS, folder=tmp_path / "other") == page
    assert str(tmp_path) not in page and "locks.yaml" not in page


def test_an_empty_registry_gives_a_page_without_tables(doc):
    assert tables(doc([])) == {}


AWKWARD = ["a | b", "a \\| b", "\\", "`x`", "<script>alert(1)</script>", "[x](javascript:alert(1))", "![x](y)", "a\nb",
           "**b** _i_ ~~s~~", "&lt;", "$x$", "a\\`|`", "||", "\u202ex", "größe 東京", "snake_case_name", "x\x07"]


@pytest.mark.parametrize("text", AWKWARD, ids=ascii)
def test_no_text_breaks_out_of_its_cell(doc, text):
    locks = [{"name": "x", "key": {"fixed": 5000}, **{field: text for field in
              ("scope", "component", "purpose", "owner", "runbook")}, "source": [text]}]
    page = doc(locks)
    fixed = next(rows for titles, rows in tables(page).items() if titles[0] == "Lock ID")
    assert len(fixed) == 1
    for cell in fixed[0][2:5]:
        assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[]", cell) and "<script" not in cell
    owners = tables(page)[("Name", "Owner", "Runbook")]
    assert not re.search(r"(?<!\\)(?:\\\\)*\]\(", owners[0][2])


@pytest.mark.parametrize("url, is_link", [
    ("https://a.example/x?y=1&z=(2)", True), ("http://a.example/a|b", True), ("HTTPS://a.example", True),
    ("javascript:alert(1)", False), ("ftp://a.example", False), ("docs/runbook.md", False), ("https://a b", False)])
def test_a_runbook_is_a_link_only_to_the_web(doc, url, is_link):
    page = doc([{"name": "x", "key": {"fixed": 5000}, "runbook": url}])
    runbook = tables(page)[("Name", "Runbook")][0][1]
    assert bool(re.fullmatch(r"\[.*\]\([^()\s|]*\)", runbook)) == is_link


# --- what the page says works -------------------------------------------------------------------------


def sql_blocks(page):
    return re.findall(r"```sql\n(.*?)```", page, flags=re.S)


def test_the_query_of_the_page_finds_holders_and_waiters_of_fixed_ids(doc, db15):
    query = sql_blocks(doc([*LOCKS, "name: \"quo'te\", key: { fixed: 9223372036854775807 }"]))[0]
    with contextlib.closing(db15.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid(), pg_advisory_lock(42424242), pg_advisory_lock_shared(-1),"
                       " pg_advisory_lock(-2, 7), pg_advisory_lock(9223372036854775807), pg_advisory_lock(5)")
        pid = cursor.fetchone()[0]
        cursor.execute(query)
        held = [row[:4] for row in cursor.fetchall()]
    assert held == [("cleanup", pid, "ExclusiveLock", True), ("negative", pid, "ShareLock", True),
                    ("pair", pid, "ExclusiveLock", True), ("quo'te", pid, "ExclusiveLock", True)]


def test_the_halves_of_the_page_are_those_of_pg_locks(doc, db15):
    rows = tables(doc(LOCKS))[("Name", "Shown as classid", "Shown as objid", "Shown as objsubid")]
    with contextlib.closing(db15.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(42424242), pg_advisory_lock(-1), pg_advisory_lock(-2, 7)")
        cursor.execute("select classid::bigint, objid::bigint, objsubid from pg_locks"
                       " where locktype = 'advisory' and pid = pg_backend_pid()")
        assert {tuple(map(int, row[1:])) for row in rows} == set(cursor.fetchall())


def test_the_sql_of_the_page_gives_the_keys_that_holdfast_derives(doc, db15):
    page = doc([f"name: {name}, key: {{ pattern: '{name}:{{x}}', as: {name} }}"
                for name in ("sha256", "hashtext", "hashtextextended", "fnv1a64")])
    blocks = sql_blocks(page)
    assert len(blocks) == 3
    with contextlib.closing(db15.connect()) as connection, connection.cursor() as cursor:
        for block, name in zip(blocks, ("SHA256", "HASHTEXT", "HASHTEXTEXTENDED")):
            cursor.execute(block.replace("LABEL", "größe:7"))
            assert cursor.fetchone()[0] == hf.derive("größe:7", hf.Derivation[name])
    assert "`holdfast key --as fnv1a64 LABEL`" in page


# --- writing it ------------------------------------------------------------------------------------


def test_output_goes_to_the_file_and_nothing_else_is_left(doc, tmp_path):
    page = doc(LOCKS)
    assert doc(LOCKS, "-o", "LOCKS.md") == ""
    assert (tmp_path / "LOCKS.md").read_text() == page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["LOCKS.md", "locks.yaml"]


def test_a_new_file_follows_the_umask_and_an_old_one_keeps_its_mode(doc, tmp_path):
    file = tmp_path / "LOCKS.md"
    before = os.umask(0o027)
    try:
        doc(LOCKS, "-o", file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    file.chmod(0o604)
    inode = file.stat().st_ino
    doc(LOCKS[:1], "-o", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    assert file.stat().st_ino != inode


@pytest.mark.parametrize("exists", [True, False], ids=["link", "dangling-link"])
def test_a_symbolic_link_is_followed(doc, tmp_path, exists):
    (tmp_path / "docs").mkdir()
    target = tmp_path / "docs" / "real.md"
    if exists:
        target.write_text("old")
    (tmp_path / "docs" / "middle.md").symlink_to("real.md")
    (tmp_path / "LOCKS.md").symlink_to("docs/middle.md")
    doc(LOCKS, "-o", "LOCKS.md")
    assert (tmp_path / "LOCKS.md").is_symlink() and (tmp_path / "docs" / "middle.md").is_symlink()
    assert target.read_text() == doc(LOCKS)


def test_a_loop_of_links_and_a_missing_folder_are_refused(doc, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    doc(LOCKS, "-o", "a", code=EXIT_FAILED)
    doc(LOCKS, "-o", "none/LOCKS.md", code=EXIT_FAILED)
    doc(LOCKS, "-o", tmp_path, code=EXIT_FAILED)


def test_what_is_no_file_is_written_to(doc):
    assert doc(LOCKS, "-o", "/dev/stdout") == doc(LOCKS)


def test_a_failed_write_leaves_the_old_page(holdfast, tmp_path, unprivileged):
    hf_registry.write(tmp_path, LOCKS)
    (tmp_path / "LOCKS.md").write_text("old")
    tmp_path.chmod(0o555)
    done = holdfast("registry", "doc", "-o", "LOCKS.md", cwd=tmp_path, prefix=unprivileged)
    tmp_path.chmod(0o755)
    assert done.code == EXIT_FAILED and "cannot write LOCKS.md" in done.err
    assert (tmp_path / "LOCKS.md").read_text() == "old"


# --- checking it -----------------------------------------------------------------------------------


def test_check_is_content_with_what_doc_wrote(doc, tmp_path, holdfast):
    doc(LOCKS, "-o", "LOCKS.md")
    assert doc(LOCKS, "--check") == ""
    (tmp_path / "below").mkdir()
    assert holdfast("registry", "doc", "--check", cwd=tmp_path / "below").code == 0


def test_check_shows_the_first_line_that_differs_and_writes_nothing(doc, holdfast, tmp_path):
    doc(LOCKS, "-o", "LOCKS.md")
    old = (tmp_path / "LOCKS.md").read_bytes()
    hf_registry.write(tmp_path, [LOCKS[0].replace("42424242", "42424243"), *LOCKS[1:]])
    done = holdfast("registry", "doc", "--check", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "LOCKS.md is stale: line 11 differs" in done.err
    assert "it has '| `42424242`" in done.err and "the registry gives '| `42424243`" in done.err
    assert "hint: run 'holdfast registry doc -o " in done.err
    assert (tmp_path / "LOCKS.md").read_bytes() == old


@pytest.mark.parametrize("change, line", [
    (lambda page: page + b"\n", "differs"),
    (lambda page: page[:-30], "differs"),
    (lambda page: b"", "line 1 differs"),
    (lambda page: page.replace(b"Order", b"Odrer", 1), "differs"),
    (lambda page: page + b"x" * 10_000_000, "differs"),
    (lambda page: b"\xff\0" + page, "line 1 differs"),
], ids=["line-more", "cut", "empty", "letter", "huge", "binary"])
def test_check_finds_every_change(doc, holdfast, tmp_path, change, line):
    doc(LOCKS, "-o", "page.md")
    page = (tmp_path / "page.md").read_bytes()
    (tmp_path / "page.md").write_bytes(change(page))
    done = holdfast("registry", "doc", "--check", "-o", "page.md", cwd=tmp_path)
    assert done.code == 1 and line in done.err


def test_check_takes_crlf_for_lf(doc, tmp_path):
    doc(LOCKS, "-o", "LOCKS.md")
    page = (tmp_path / "LOCKS.md").read_bytes()
    (tmp_path / "LOCKS.md").write_bytes(page.replace(b"\n", b"\r\n"))
    doc(LOCKS, "--check")


def test_check_fails_without_a_file_and_makes_none(doc, holdfast, tmp_path):
    hf_registry.write(tmp_path, LOCKS)
    done = holdfast("registry", "doc", "--check", cwd=tmp_path)
    assert done.code == 1 and "LOCKS.md does not exist" in done.err
    assert not (tmp_path / "LOCKS.md").exists()


# --- without a registry ------------------------------------------------------------------------------


def test_no_registry_and_a_broken_one_are_refused_and_write_nothing(doc, holdfast, tmp_path):
    done = holdfast("registry", "doc", "-o", "LOCKS.md", cwd=tmp_path)
    assert done.code == EXIT_CONFIG
    doc(["name: a, key: { fixed: 5000 }", "name: a, key: { fixed: 5001 }"], "-o", "LOCKS.md", code=EXIT_CONFIG)
    assert not (tmp_path / "LOCKS.md").exists()


# --- there and back, and HTML -----------------------------------------------------------------------------


@pytest.mark.parametrize("sample", ["mixed", "team-table", "loose-table", "locks"])
def test_doc_and_import_and_doc_give_the_same_page(holdfast, tmp_path, sample):
    path = hf.ROOT / "tests/registry" / f"{sample}.yaml"
    if sample == "locks":
        path = hf_registry.write(tmp_path, LOCKS + [
            "name: many, key: { pattern: 'M:{v}' }, placeholders: { v: [" + ", ".join(f"v{i}" for i in range(50)) + "] }"])
    page = holdfast("registry", "doc", "--registry", path).out
    (tmp_path / "again.yaml").write_text(holdfast("registry", "import", "-", input=page.encode()).out)
    assert holdfast("registry", "doc", "--registry", tmp_path / "again.yaml").out == page


def test_the_risk_that_the_registry_allows_is_on_the_page_and_comes_back(holdfast, tmp_path):
    (tmp_path / "locks.yaml").write_text("""
version: 1
conventions: { max_risk: 0.0003 }
locks:
  - { name: jobs, key: { pattern: "job:{id}", as: hashtext }, expected: 4000 }
""")
    page = holdfast("registry", "doc", "--registry", tmp_path / "locks.yaml").out
    assert "with a probability of 0.0003.\n" in page
    (tmp_path / "again.yaml").write_text(holdfast("registry", "import", "-", input=page.encode()).out)
    assert holdfast("registry", "doc", "--registry", tmp_path / "again.yaml").out == page


class Page(html.parser.HTMLParser):
    """The text of the cells, and whether every element is closed in its place."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.tags = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("td", "th"):
            self.cells.append("")
        if tag not in ("meta", "br", "input", "p", "li"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("p", "li"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and ("td" in self.open or "th" in self.open):
            self.cells[-1] += data


def test_html_has_every_lock_and_a_search_and_escapes_what_the_registry_says(doc):
    hostile = "</td><script>alert(1)</script> & \\| `x` *y* [z](javascript:1)"
    text = doc([{"name": "cleanup", "key": {"fixed": 42424242}, "purpose": hostile, "runbook": "https://x.example/a?b=1&c"},
                {"name": "open", "key": {"pattern": "O:{x}:<b>"}, "placeholders": {"x": "[a|b`]+"}, "expected": 3}], "--html")
    page = Page(text)
    for cell in ("42424242", "cleanup", hostile, "O:{x}:<b>", "x: [a|b`]+"):
        assert cell in page.cells, cell
    assert ("input", {"type": "search", "id": "search", "autofocus": None}) in page.tags
    assert ("a", {"href": "https://x.example/a?b=1&c"}) in page.tags
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "http" not in re.sub(r"https://x\.example\S*", "", text)


def test_html_is_checked_like_markdown(doc, holdfast, tmp_path):
    doc(LOCKS, "--html", "-o", "LOCKS.html")
    doc(LOCKS, "--html", "--check")
    doc(LOCKS[:-1], "--html", "--check", code=1)

"""What README.md and docs/ show is run, on real servers, and does what they say. harness/pages.py has the rules."""

import re

import pytest

import hf
import sanitizers
from pages import SECONDS, Page, Runner, Wrong
from servers import free_port
from stellar_rpc import StellarRpc

PAGES = [hf.ROOT / "README.md", *sorted((hf.ROOT / "docs").glob("*.md"))]

pytestmark = pytest.mark.skipif(bool(sanitizers.KIND), reason="pages start the command and the library by name")


def name_of(path):
    return path.relative_to(hf.ROOT).as_posix()


def marked(path):
    """Where Go is shown, beside the tests of Go: what one of them builds, the others use."""
    marks = [pytest.mark.xdist_group("go")] if "```go" in path.read_text(encoding="utf-8") else []
    return pytest.param(path, id=name_of(path), marks=marks)


def postgres(request):
    server = request.getfixturevalue("pg15")
    database = server.create_database()
    request.addfinalizer(lambda: database.drop(expect_no_locks=False))
    here = f"app@127.0.0.1:{server.port}/{database.name}"
    return {"app@db/shop": here}, {"HOLDFAST_URL": f"postgresql://{here}", "PGHOST": "127.0.0.1", "PGPORT": str(server.port),
                                   "PGDATABASE": database.name, "PGUSER": "app"}


def clickhouse(request):
    database = request.getfixturevalue("ch")
    here = f"default@127.0.0.1:{database.server.http_port}/{database.name}"
    client = f"clickhouse-client --host 127.0.0.1 --port {database.server.tcp_port} -d {database.name}"
    return {"app@ch:8123/shop": here, "clickhouse-client -d shop": client, "shop.": f"{database.name}."}, {}


def rpc(request):
    server = StellarRpc().__enter__()
    request.addfinalizer(lambda: server.__exit__(None, None, None))
    server.close_ledgers(30)
    return {"rpc+https://rpc.example": server.url}, {}


SERVERS = {"postgres": postgres, "clickhouse": clickhouse, "rpc": rpc}


@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("path", map(marked, PAGES))
def test_all_that_the_page_shows_is_so(request, path):
    page = Page(path.read_text(encoding="utf-8"), name_of(path))
    names, variables = {"/path/to/holdfast": str(hf.ROOT), "127.0.0.1:7433": f"127.0.0.1:{free_port()}"}, {}
    for need in sorted(page.needs):
        more_names, more_variables = SERVERS[need](request)
        names.update(more_names)
        variables.update(more_variables)
    Runner(page, names, variables).run()


# --- every test that a page names ---------------------------------------------------------------------


def names_of_tests():
    """Of functions in Python and C, and of files."""
    found = set()
    for suffix, shape in (("*.py", r"\bdef (test_\w+)"), ("*.c", r"\b(test_\w+)\(")):
        for path in (hf.ROOT / "tests").rglob(suffix):
            found.add(path.name)
            found.update(re.findall(shape, path.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_test_that_the_page_names_exists(path):
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:[\w/]+/)?(test_\w+(?:\.py|\.c)?)`", text))
    assert not named - names_of_tests()


def test_every_guarantee_names_its_test():
    """In the table of what is guaranteed a row without a test would be a claim."""
    text = (hf.ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    promised = text.partition("## Guaranteed")[2].partition("\n## Not guaranteed")[0]
    rows = [row for row in promised.splitlines() if row.startswith("| ") and not row.startswith(("| what", "|--"))]
    assert rows and not [row for row in rows if "`test_" not in row]


def test_the_index_lists_every_guide():
    index = (hf.ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w[\w-]*\.md)\)", index)) == {path.name for path in PAGES if path.name != "README.md"}


# --- the rules themselves: what is wrong on a page is found -------------------------------------------

WRONG = {
    "a command that fails": ("```sh\nholdfast rum nightly -- true\n```", "exit 64"),
    "an option that does not exist": ("```sh\nholdfast run --no-such nightly -- true\n```", "exit 64"),
    "a failure that is not told": ("```console\n$ false\n```", "exit 1"),
    "another exit code": ("```console\n$ false\n$ echo $?\n0\n```", "another"),
    "another output": ("```console\n$ holdfast key --as crc32 a\n7\n```", "another"),
    "output that is not shown": ("```console\n$ echo one; echo two\none\n```", "another"),
    "a program that fails": ("```python\nimport no_such_module\n```", "no_such_module"),
    "a program that does not compile": ("```c\nint main(void) { return 0 }\n```", "expected"),
    "a registry that does not pass": ("```yaml\nversion: 1\nlocks:\n  - nam: x\n```", "nam"),
    "no reason": ("<!-- not run: -->\n```sh\ntrue\n```", "give the reason"),
    "not run, and does not exist": ("<!-- not run: takes an hour -->\n```sh\nmake no-such-target\n```", "no-such-target"),
    "not run, with a wrong option": ("<!-- not run: goes on -->\n```sh\nholdfast serve --no-such\n```", "--no-such"),
    "not run, and no shell": ("<!-- not run: goes on -->\n```sh\nif true\n```", "syntax error"),
    "not run, and no YAML": ("<!-- not run: a cluster is needed -->\n```yaml\na: [\n```", "flow"),
    "not run, and no C": ("<!-- not run: a part -->\n```c\nint x = y;\n```", "undeclared"),
    "no language": ("```\ntrue\n```", "no language"),
    "code without a fence": ("Text.\n\n    true\n", "fenced"),
    "a comment that nobody knows": ("<!-- norun: x -->\n", "norun"),
    "a comment without its block": ("<!-- not run: x -->\n\nText.\n", "no block follows"),
    "a file that nothing uses": ("```sh\n# job.sh\ntrue\n```", "nothing uses it"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_found(what):
    text, told = WRONG[what]
    with pytest.raises(Wrong, match=re.escape(told)):
        Runner(Page(text)).run()


def test_what_is_right_passes():
    Runner(Page("""
<!-- setup
export GREETING=hello
-->
```sh
#!/bin/sh
# greet.sh
echo "$GREETING from $$"
echo and
echo so on
```
```sh
holdfast run greeting -- sleep 60 &
```
<!-- wait: holdfast locks | grep -q greeting -->
```console
$ ./greet.sh
hello from …
…
$ holdfast run -n greeting -- true
error: not acquired: 'greeting' is held by sleep (holdfast run) on … (pid …) since …
hint: key …
$ echo $?
75
```
<!-- around
def work(number):
@@
work(1)
-->
```python
    assert number == 1
```
""")).run()

"""Every check of scripts/check-rooms finds what it is there for, and lets a tidy tree pass."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def rooms(monkeypatch):
    loader = importlib.machinery.SourceFileLoader("check_rooms", str(ROOT / "scripts/check-rooms"))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_rooms", loader))
    loader.exec_module(module)
    for name in "SMALL", "SQL_STAYS", "MESSAGES_READ", "SIDE_DOORS":
        monkeypatch.setattr(module, name, type(getattr(module, name))())
    monkeypatch.setattr(module, "SIZES", (1, 40))
    return module


TIDY = {
    "include/holdfast/holdfast.h": "typedef struct hf_error hf_error;\nint hf_open(void);\n",
    "src/lib/libholdfast.map": "HOLDFAST_0 {\n    hf_open;\n};\n",
    "src/base/text.h": "int hf__text_size(const char *text);\n",
    "src/base/text.c": '#include "base/text.h"\n\nint hf__text_size(const char *text)\n{\n    return *text;\n}\n',
    "src/lib/locks/engine.h": "struct hold {\n    int refs;\n};\n",
    "src/lib/locks/locks.h": "typedef struct hf__claim hf__claim;\nint hf__lock_try(hf__claim *claim);\n",
    "src/lib/locks/locks.c": (
        '#include "lib/locks/locks.h"\n\n#include "base/text.h"\n#include "lib/locks/engine.h"\n\n'
        "struct hf__claim {\n    struct hold hold;\n};\n\n"
        "int hf__lock_try(hf__claim *claim)\n{\n"
        '    return claim->hold.refs + hf__text_size("a session of SELECT");\n}\n'
    ),
    "src/lib/store.c": (
        '#include "lib/locks/locks.h"\n\nint hf_open(void);\n\n'
        "int hf_open(void)\n{\n    return hf__lock_try(0);\n}\n"
    ),
    "src/lib/tables/tables.sql": "-- name: live_id postgres\nSELECT 1\n\n-- name: live_id sqlite\nSELECT 2\n",
    "src/lib/tables/tables.h": "int hf__table_find(void);\n",
    "src/lib/tables/tables.c": (
        '#include "lib/tables/tables.h"\n\n#include "lib/tables/sql.h"\n\n'
        "int hf__table_find(void)\n{\n    return hf__sql_tables_live_id;\n}\n"
    ),
    "src/programs/append/main.c": (
        '#include "lib/tables/tables.h"\n\nint main(void)\n{\n    return hf__table_find();\n}\n'
    ),
}

# Generated, as meson does: in the build folder, where no check of sources sees it.
GENERATED = {
    "src/lib/tables/sql.h": "extern const int hf__sql_tables_live_id;\n",
    "src/lib/tables/sql.c": '#include "lib/tables/sql.h"\n\nconst int hf__sql_tables_live_id = 1;\n',
}

# Each check: what is added to the tidy tree, and the start and a part of what is then found.
PLANTED = {
    "every_file_has_a_room": [
        ({"src/attic/old.c": "\n"}, "src/attic/old.c:1:", "is in no room"),
    ],
    "includes_stay_within_rooms": [
        ({"src/base/text.c": '#include "cli/print.h"\n'}, "src/base/text.c:1:", "base may not use cli"),
        (
            {"src/lib/locks/more.c": '/* up */\n#include "lib/tables/tables.h"\n'},
            "src/lib/locks/more.c:2:",
            "lib/locks may not use lib/tables",
        ),
        (
            {"src/cli/print.c": '#include "lib/locks/locks.h"\n'},
            "src/cli/print.c:1:",
            "cli may not use lib/locks",
        ),
        (
            {"src/programs/top/top.c": '#include "programs/append/append.h"\n'},
            "src/programs/top/top.c:1:",
            "programs/top may not use programs/append",
        ),
        ({"src/cli/print.c": '#include "print.h"\n'}, "src/cli/print.c:1:", "is in no room"),
        (
            {"include/holdfast/locks.h": '#include "base/text.h"\n'},
            "include/holdfast/locks.h:1:",
            "is not public",
        ),
    ],
    "rooms_are_entered_by_their_doors": [
        (
            {"src/lib/tables/more.c": '#include "lib/locks/engine.h"\n'},
            "src/lib/tables/more.c:1:",
            'is inside lib/locks; include "lib/locks/locks.h"',
        ),
    ],
    "includes_are_used": [
        (
            {"src/lib/locks/more.c": '#include "base/text.h"\n\n/* hf__text_size */\nint x;\n'},
            "src/lib/locks/more.c:1:",
            'nothing of "base/text.h" is used',
        ),
        (
            {"tests/unit/test_text.c": '#include "base/text.h"\n'},
            "tests/unit/test_text.c:1:",
            'nothing of "base/text.h" is used',
        ),
    ],
    "types_are_named_once": [
        (
            {"src/programs/top/top.h": "\nstruct hold {\n    int x;\n};\n"},
            "src/programs/top/top.h:2:",
            "hold is a type of src/lib/locks/engine.h too",
        ),
        (
            {"src/programs/top/top.h": "typedef enum { A, B } hf__claim;\n"},
            "src/programs/top/top.h:1:",
            "hf__claim is a type of src/lib/locks/locks.h too",
        ),
        (
            {"src/programs/top/top.h": "typedef int hf__claim(void *arg, int x);\n"},
            "src/programs/top/top.h:1:",
            "hf__claim is a type of src/lib/locks/locks.h too",
        ),
    ],
    "gone_words_stay_gone": [
        ({"src/cli/print.c": "int pg_seat;\n"}, "src/cli/print.c:1: pg_seat:", "say session"),
        ({"src/cli/print.c": "/* x */\n/* A seat. */\n"}, 'src/cli/print.c:2: "seat"', "say session"),
        ({"src/lib/locks/locks.c": "int HF__TURNS;\n"}, "src/lib/locks/locks.c:1: HF__TURNS", "waiter"),
    ],
    "names_are_not_words_of_cplusplus": [
        ({"src/cli/print.c": "int x;\nint class;\n"}, "src/cli/print.c:2: class", "a word of C++"),
    ],
    "sql_stands_in_sql_files": [
        (
            {"src/lib/locks/locks.c": 'const char *a = "x"\n"SELECT 1", *b =\n"INSERT INTO "\n"x";\n'},
            "src/lib/locks/locks.c:3:",
            '"INSERT INTO "…: SQL in C',
        ),
    ],
    "messages_are_not_read": [
        (
            {"src/cli/print.c": 'int f(hf_error *err)\n{\n    return !strstr(err->message, "held");\n}\n'},
            "src/cli/print.c:3: looks into err->message",
            "",
        ),
        (
            {"src/cli/print.c": "int f(const char *message)\n{\n    return strncmp(message, prefix, 3);\n}\n"},
            "src/cli/print.c:3: looks into message",
            "",
        ),
    ],
    "lines_fit": [
        ({"src/cli/print.h": "\n/* " + 95 * "x" + " */\n"}, "src/cli/print.h:2: 101 columns", "within 100"),
        ({"bench/gaps.c": 101 * ";" + "\n"}, "bench/gaps.c:1: 101 columns", "within 100"),
    ],
    "return_types_share_a_line_with_their_function": [
        (
            {"src/cli/print.c": "static const struct x *\nfind_it(void)\n{\n}\n"},
            "src/cli/print.c:1: a type alone",
            "",
        ),
    ],
    "files_are_neither_scraps_nor_heaps": [
        ({"src/cli/print.c": 41 * "\n"}, "src/cli/print.c:41: 41 lines", "split it"),
        ({"src/cli/print.c": ""}, "src/cli/print.c:1: 0 lines", "merge it"),
    ],
    "folders_can_be_looked_through": [
        ({f"src/cli/print_{i}.h": "" for i in range(31)}, "src/cli:1: 31 files", "a folder of their own"),
    ],
    "statements_are_used": [
        (
            {"src/lib/ledgers/ledgers.sql": "\n-- name: gaps_read\nSELECT 1\n"},
            "src/lib/ledgers/ledgers.sql:2: hf__sql_ledgers_gaps_read",
            "is used nowhere",
        ),
    ],
    "sql_is_ascii": [
        (
            {"src/lib/ledgers/ledgers.sql": "SELECT 1\n-- one, two, \u2026\n"},
            "src/lib/ledgers/ledgers.sql:2: not ASCII",
            "unable to convert it",
        ),
    ],
    "prepared_statements_stay_in_the_backends": [
        (
            {"src/lib/tables/tables.sql": "-- name: live_id postgres prepared\nSELECT 1\n"},
            "src/lib/tables/tables.sql:1: live_id",
            "outside of the backends",
        ),
        (
            {
                "src/lib/postgres/postgres.sql": "-- name: try_one prepared\nSELECT 1\n",
                "src/lib/postgres/postgres.c": "int x = hf__sql_postgres_try_one;\n",
                "src/programs/view/view.c": "int y = hf__sql_postgres_try_one;\n",
            },
            "src/programs/view/view.c:1: hf__sql_postgres_try_one",
            "is prepared in lib/postgres",
        ),
    ],
    "symbols_stay_within_rooms": [
        (
            {"src/base/more.c": "int hf__table_find(void);\nint main(void)\n{\n    return hf__table_find();\n}\n"},
            "src/base/more.c:1: hf__table_find is in lib/tables",
            "base may not use",
        ),
        (
            {"src/lib/locks/more.c": "int hf_open(void);\nint main(void)\n{\n    return hf_open();\n}\n"},
            "src/lib/locks/more.c:1: hf_open is in lib/store.c",
            "lib/locks may not use",
        ),
    ],
    "symbols_are_defined_once": [
        (
            {"src/programs/top/top.c": "int hf__text_size(void)\n{\n    return 1;\n}\n"},
            "src/programs/top/top.c:1: hf__text_size is defined in src/base/text.c too",
            "",
        ),
    ],
    "symbols_are_used_elsewhere": [
        (
            {"src/programs/top/top.c": "int hf__top_of(void)\n{\n    return 1;\n}\n"},
            "src/programs/top/top.c:1: hf__top_of is used nowhere else",
            "make it static",
        ),
    ],
}


def plant(root, files):
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def build(root):
    """Compiles what is in the tree, and tells as meson does what became of it."""
    folder = root / "build"
    plant(folder, GENERATED)
    entries = []
    for number, file in enumerate(sorted(root.rglob("*.c"))):
        command = ["cc", "-w", "-I", root / "src", "-I", folder / "src", "-c", file]
        subprocess.run([*command, "-o", folder / f"{number}.o"], check=True)
        entries.append({"directory": str(folder), "file": str(file), "output": f"{number}.o"})
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return folder


def found_in(rooms, root, check):
    tree = rooms.Tree(root)
    is_built = check.startswith("symbols_")
    objects = rooms.Objects(tree, build(root)) if is_built else None
    return [text for name, text in rooms.findings(tree, objects) if name == check]


def test_a_tidy_tree_passes(rooms, tmp_path):
    plant(tmp_path, TIDY)
    tree = rooms.Tree(tmp_path)
    assert list(rooms.findings(tree, rooms.Objects(tree, build(tmp_path)))) == []


@pytest.mark.parametrize(
    "check, files, start, part",
    [(check, *case) for check, cases in PLANTED.items() for case in cases],
)
def test_what_breaks_a_rule_is_found_where_it_is(rooms, tmp_path, check, files, start, part):
    plant(tmp_path, TIDY)
    plant(tmp_path, files)
    found = found_in(rooms, tmp_path, check)
    assert len(found) == 1, found
    assert found[0].startswith(start) and part in found[0]


def test_a_cycle_of_rooms_is_found(rooms, tmp_path, monkeypatch):
    monkeypatch.setitem(rooms.MAY_USE, "lib/backend", ["lib/transactions"])
    found = found_in(rooms, tmp_path, "rooms_are_on_no_cycle")
    assert any("lib/backend uses lib/transactions" in text for text in found)


@pytest.mark.parametrize("name", ["SMALL", "SQL_STAYS", "MESSAGES_READ", "SIDE_DOORS"])
def test_an_exception_that_nothing_needs_is_found(rooms, tmp_path, monkeypatch, name):
    plant(tmp_path, TIDY)
    monkeypatch.setattr(rooms, name, {"src/gone.c": "because"})
    found = found_in(rooms, tmp_path, "exceptions_are_needed")
    assert len(found) == 1 and f"take it out of {name}" in found[0]


def test_every_check_is_tested_here(rooms):
    checks = {check.__name__ for check in rooms.SOURCE_CHECKS + rooms.SYMBOL_CHECKS}
    assert checks == set(PLANTED) | {"rooms_are_on_no_cycle", "exceptions_are_needed"}

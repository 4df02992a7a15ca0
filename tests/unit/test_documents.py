"""What the documents for developers say of the code is there: functions, files, rooms."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
SOURCES = [path for folder in ("src", "include") for path in (ROOT / folder).rglob("*.[ch]")]
ROOMS = sorted({path.parent for path in SOURCES if path.is_relative_to(ROOT / "src")})
FILES = ["/" + path.relative_to(ROOT).as_posix()
         for folder in ("src", "include", "tests", "man", "docs") for path in (ROOT / folder).rglob("*.*")]
FILES += ["/sql.h", "/sql.c"]  # made from a room's .sql file
DOCUMENTS = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "src").rglob("README.md"))]
WALKS = ["holdfast run", "hf_transact", "a ledger at the tip", "a staged append", "a refresh of the page"]


def shown(path):
    return path.relative_to(ROOT).as_posix()


def steps():
    """(walk, function, file) of every numbered line below `### Walk: …`."""
    for walk, text in re.findall(r"^### Walk: ([^\n]*)\n(.*?)(?=^##|\Z)", ARCHITECTURE, flags=re.M | re.S):
        for function, file in re.findall(r"^\d+\. `(\w+)` in `([\w./]+)`", text, flags=re.M):
            yield walk, function, file


def defines(text, function):
    """A definition starts at the margin and has a body; a call is indented, a prototype ends in `;`."""
    return re.search(rf"^\w[^\n;#]*\b{function}\([^;{{]*\)\s*\{{", text, flags=re.M)


def test_the_five_walks_are_there():
    assert sorted({walk for walk, _, _ in steps()}) == sorted(WALKS)


@pytest.mark.parametrize("walk, function, file", steps())
def test_a_step_of_a_walk_is_a_function_of_its_file(walk, function, file):
    assert defines((ROOT / "src" / file).read_text(), function), f"{walk}: {file} has no {function}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_a_name_of_the_project_that_a_document_uses_exists(document):
    code = "\n".join(path.read_text() for path in SOURCES)
    known = set(re.findall(r"\bhf_\w+", code)) | set(re.findall(r"\bHF_\w+", code))
    used = set(re.findall(r"\b(?:hf|HF)_\w*[A-Za-z0-9]\b(?![*…])", document.read_text()))
    assert not {name for name in used - known if not name.endswith("_NAME")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_a_file_that_a_document_names_exists(document):
    named = re.findall(r"`([a-z0-9_./-]+\.(?:c|h|sql|py|md|scd))`", document.read_text())
    assert not [name for name in named if not any(path.endswith("/" + name) for path in FILES)]


@pytest.mark.parametrize("room", ROOMS, ids=shown)
def test_every_room_says_what_it_is(room):
    """The README of src/programs/registry speaks for registry/import, too."""
    assert any((place / "README.md").exists() for place in (room, room.parent))

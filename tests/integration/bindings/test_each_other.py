"""A lock is one lock: the command, Python, Go, Node and plain SQL exclude each other, each way."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import cli
import hf
import sanitizers
from go_tool import environment, go
from stores import new_kind
from test_node import made_project  # noqa: F401: the package as it is installed

HOLDERS = pathlib.Path(__file__).parent / "holders"
LANGUAGES = ["command", "python", "go", "node"]
REFUSED = 75

pytestmark = [
    pytest.mark.skipif(bool(sanitizers.FLAGS), reason="neither Go nor Node has the runtime of a sanitizer"),
    pytest.mark.xdist_group("go"),  # what one builds, the others use
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module", name="commands")
def made_commands(project, tmp_path_factory):
    """By language: what holds a lock until its input ends. URL and label follow."""
    program = tmp_path_factory.mktemp("go") / "hold"
    go("build", "-o", program, ".", folder=HOLDERS / "go")
    shutil.copy(HOLDERS / "hold.js", project)
    return {"python": [sys.executable, HOLDERS / "hold.py"], "go": [program], "node": ["node", project / "hold.js"]}


@pytest.fixture(params=["local", "pg15", "pg18"], name="place")
def made_place(request, tmp_path):
    with new_kind(request, tmp_path, request.param, schema=request.param == "pg18") as kind:
        yield kind


@pytest.fixture
def start(place, commands):
    def start(language, label="nightly"):
        command = [*commands[language], place.url, label] if language != "command" else \
            [cli.program(), "run", "-n", "--url", place.url, label, "--", "sh", "-c", "echo held; cat"]
        variables = environment(HOLDFAST_LIBRARY=hf.built("src/lib/libholdfast.so"),
                                PYTHONPATH=str(hf.ROOT / "bindings/python"))
        return subprocess.Popen(list(map(str, command)), env={**os.environ, **variables}, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


@contextlib.contextmanager
def held(running):
    assert running.stdout.readline() == "held\n", running.communicate()
    yield
    _, errors = running.communicate()
    assert running.returncode == 0, errors


@pytest.mark.parametrize("holder", LANGUAGES)
def test_who_holds_it_keeps_all_others_out(start, holder):
    with held(start(holder)):
        others = {language: start(language) for language in LANGUAGES}
        assert {language: other.communicate() and other.returncode for language, other in others.items()} == \
            dict.fromkeys(LANGUAGES, REFUSED)
    for language in LANGUAGES:
        with held(start(language)):
            pass


@pytest.mark.parametrize("place", ["pg18"], indirect=True)  # which has the schema
@pytest.mark.parametrize("holder", LANGUAGES)
def test_plain_sql_is_kept_out_and_keeps_out(start, place, holder):
    with held(start(holder)):
        assert place.database.value("select holdfast.try_lock('nightly')") is False
    with contextlib.closing(place.database.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("select holdfast.try_lock('nightly')")
        assert cursor.fetchone() == (True,)
        other = start(holder)
        assert other.communicate() and other.returncode == REFUSED

"""Tab in the real shells: what the option tables, the registry and the store have, and nothing where no rule applies."""

import contextlib
import socket

import pytest

import cli
import hf
import ledgers
from stores import new_kind
from terminal import Terminal

pytestmark = pytest.mark.xdist_group("completion")  # what one starts, the others use

START = {
    "bash": "bash --norc --noprofile -i",
    "zsh": "zsh -f -i",
    "fish": "fish --no-config -i",
}
LOAD = {
    "bash": "source <(holdfast completion bash)",
    "zsh": "autoload -Uz compinit; compinit -u -D; source <(holdfast completion zsh)",
    "fish": "holdfast completion fish | source",
}
REGISTRY = "version: 1\nstrict: false\nlocks:\n  - { name: booking-create, key: { pattern: 'booking:{tenant}' } }\n"


@pytest.fixture(scope="module", name="place")
def made_place(request, tmp_path_factory):
    """A folder with a registry, and a store that has seen a network and labels."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "locks.yaml").write_text(REGISTRY)
    (folder / "bin").mkdir()
    (folder / "bin/holdfast").symlink_to(cli.program())
    with new_kind(request, folder, "pg18", schema=True) as kind:
        holdfast = cli.Holdfast(folder / "home", kind.url)
        source = ledgers.write(folder / "ledgers.ndjson", ledgers.chain(1, 2))
        assert holdfast("ingest", "--network", "pubnet", "--source", source).code == 0
        for label in ("Transfer:acc1", "two words", "evil$(touch pwned)"):
            assert holdfast("run", "--registry", folder / "locks.yaml", label, "--", "true").code == 0
        yield folder, kind


@pytest.fixture(scope="module", name="shell", params=START)
def started_shell(request, place):
    """A shell in which a line can be typed and completed."""
    folder, kind = place
    terminal = Terminal(width=200, env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": folder, "HOLDFAST_URL": kind.url,
                                        "NO_COLOR": "1"})
    with contextlib.closing(terminal):
        terminal.type(f"cd {folder}; {START[request.param]}")
        terminal.press("Enter")
        if request.param == "fish":
            terminal.shows("~")  # its prompt; what is typed before that is lost
        terminal.type(f"{LOAD[request.param]}")
        terminal.press("Enter")
        terminal.type("echo load''ed")
        terminal.press("Enter")
        terminal.shows("\nloaded")
        yield terminal


def completed(shell, typed, wanted):
    """Types, presses Tab, and awaits the line; x marks where the cursor is then."""
    shell.press("C-u")
    shell.type(typed)
    shell.press("Tab")
    shell.type("x")
    shell.shows(f"{wanted}x")
    shell.press("C-u")


@pytest.mark.parametrize("typed, wanted", [
    ("holdfast doc", "holdfast doctor "),
    ("holdfast retention reco", "holdfast retention reconcile "),
    ("holdfast ingest --stand", "holdfast ingest --standby "),
    ("holdfast tx --isolation ser", "holdfast tx --isolation serializable "),
    ("holdfast run --every 10m booking-", "holdfast run --every 10m booking-create "),
    ("holdfast yield Trans", "holdfast yield Transfer:acc1 "),
    ("holdfast yield Transfer:a", "holdfast yield Transfer:acc1 "),
    ("holdfast key two", "holdfast key two\\ words "),
    ("holdfast key evil", "holdfast key evil\\$\\(touch\\ pwned\\) "),
    ("holdfast gaps --network p", "holdfast gaps --network pubnet "),
    ("holdfast gaps --network=p", "holdfast gaps --network=pubnet "),
    ("holdfast registry lint lock", "holdfast registry lint locks.yaml "),
    ("holdfast run booking-create hostnamec", "holdfast run booking-create hostnamectl "),
])
def test_what_is_typed_is_completed(shell, typed, wanted):
    completed(shell, typed, wanted)


@pytest.mark.parametrize("typed", ["holdfast serve hostnamec", "holdfast run -w hostnamec", "holdfast doctor locks.y",
                                   "holdfast gaps --network nosuch"])
def test_nothing_is_offered_where_no_rule_applies(shell, typed):
    completed(shell, typed, typed)


@pytest.fixture(name="own_listener")
def silent_port():
    """Accepts and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def offers(place, *words, **env):
    folder, kind = place
    done = cli.Holdfast(folder / "home", kind.url)("completion", "offer", *words, cwd=folder, env=env)
    assert done.code == 0, done
    return done.out.splitlines()


def test_the_line_says_where_to_look(place, tmp_path):
    other = f"local:{tmp_path / 'other'}"
    with hf.Store(other) as store, store.acquire("elsewhere"):
        assert offers(place, "yield", "--url", other, "else") == ["elsewhere"]
        assert offers(place, "yield", f"--url={other}", "else") == ["elsewhere"]
    assert offers(place, "yield", "else") == []


def test_a_store_that_does_not_answer_costs_two_seconds_and_not_the_registry(holdfast, place, own_listener):
    done = holdfast("completion", "offer", "yield", "--url", f"postgresql://127.0.0.1:{own_listener}/x", "",
                    cwd=place[0], timeout=20)
    assert done.out.splitlines() == ["booking-create"]


def test_a_tab_makes_no_store(place, tmp_path):
    assert offers(place, "key", "--url", f"local:{tmp_path / 'new'}", "") == ["booking-create"]
    assert offers(place, "gaps", "--url", f"local:{tmp_path / 'new'}", "--network", "") == []
    assert not (tmp_path / "new").exists()

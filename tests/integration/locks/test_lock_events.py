"""The history of a lock: why it was lost, how its command ended, and what programs add to it."""

import pytest

import hf
from awaiting import eventually
from cli import ENDINGS, EXIT_LIMIT, EXIT_LOST
from hf import State
from hf_table import registry_sql
from wire import HOLD, SWALLOW, WireProxy, once

EAGER = {"ping_interval_ms": 200, "ping_deadline_ms": 3000}


def events(kind):
    """(event, detail) of all locks, oldest first."""
    return [tuple(row) for row in registry_sql(kind, "select event, detail from @events order by id")]


def details(kind, event):
    return [detail for name, detail in events(kind) if name == event]


def await_details(kind, event, count=1):
    eventually(lambda: len(details(kind, event)) >= count, what=f"{count} × {event}")
    return details(kind, event)


# --- losses -------------------------------------------------------------------------------------------


def test_a_loss_says_its_reason(recorded):
    with hf.Store(recorded.url, **EAGER) as store:
        lock = store.acquire("job")
        recorded.lose(lock.key)
        eventually(lambda: lock.state is State.LOST)
        assert await_details(recorded, "lost") == ["lock_file" if recorded.local else "server"]
        lock.free()


@pytest.fixture
def proxy(recorded):
    with WireProxy(recorded.database.server.port) as opened:
        opened.url = recorded.database.url(port=opened.port)
        yield opened


on_servers = pytest.mark.parametrize("recorded", ["pg15", "pg18"], indirect=True)


@on_servers
def test_a_cut_line_is_a_loss_of_the_connection(recorded, proxy):
    with hf.Store(proxy.url, **EAGER) as store:
        lock = store.acquire("job")
        for line in list(proxy.lines):
            line.cut()
        eventually(lambda: lock.state is State.LOST)
        assert await_details(recorded, "lost") == ["connection"]
        lock.free()


@on_servers
def test_a_session_ended_while_a_ping_is_under_way_was_ended_by_the_server(recorded, proxy):
    with hf.Store(proxy.url, ping_interval_ms=200, ping_deadline_ms=60000) as store:
        lock = store.acquire("job")
        proxy.rule = once(lambda message: message.kind == "Q" and message.text == "", SWALLOW)
        assert proxy.rule.hit.wait(20)
        recorded.lose(lock.key)
        eventually(lambda: lock.state is State.LOST)
        assert await_details(recorded, "lost") == ["server"]
        lock.free()


@on_servers
def test_a_server_that_does_not_answer_in_time_is_told_apart(recorded, proxy):
    with hf.Store(proxy.url, **EAGER) as store:
        lock = store.acquire("job")
        eventually(lambda: details(recorded, "acquired"))
        proxy.rule = lambda line, message: HOLD
        eventually(lambda: lock.state is State.LOST)
        proxy.rule = None
        assert await_details(recorded, "lost") == ["no_answer"]
        lock.free()


# --- commands -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("word", ENDINGS)
def test_an_exit_says_its_class(recorded, holdfast, word):
    command, code = ENDINGS[word]
    assert holdfast.at(recorded.url)("run", "job", "--", *command).code == code
    assert details(recorded, "exit") == [word]


def test_a_command_that_runs_out_of_time_says_so(recorded, holdfast):
    done = holdfast.at(recorded.url)("run", "-t", "200ms", "job", "--", "sleep", "60")
    assert done.code == EXIT_LIMIT
    assert details(recorded, "exit") == ["time_limit"]


def test_a_command_whose_lock_is_lost_says_so(recorded, holdfast):
    holder = holdfast.at(recorded.url).hold("job", "--ping", "200ms")
    recorded.lose(hf.derive("job"))
    assert holder.wait() == EXIT_LOST
    assert details(recorded, "exit") == ["lost"]
    assert details(recorded, "lost") == ["lock_file" if recorded.local else "server"]


# --- notes --------------------------------------------------------------------------------------------


def noted(kind, *notes):
    with hf.Store(kind.url) as store:
        lock = store.acquire("job")
        for note in notes:
            lock.note(*note)
        lock.end()
    return [pair for pair in events(kind) if pair[0] not in ("acquired", "released")]


def test_a_note_stands_in_the_history_between_grant_and_release(recorded):
    assert noted(recorded, ("step", "one"), ("step", "two"), ("done",)) == [
        ("step", "one"), ("step", "two"), ("done", None)]
    assert [name for name, _ in events(recorded)] == ["acquired", "step", "step", "done", "released"]


def test_a_name_that_is_no_word_becomes_one(recorded):
    assert noted(recorded, ("Half done-7", "x"), ('","a{}\\', "y"), ("", "never"), ("é", "z")) == [
        ("_alf_done__", "x"), ("___a___", "y"), ("__", "z")]


def test_what_is_too_long_is_cut_at_a_character(recorded):
    ((name, detail),) = noted(recorded, ("a" * 100, "ü" * 100))
    assert name == "a" * 23
    assert len(detail.encode()) <= 63 and detail.endswith("…") and set(detail[:-1]) == {"ü"}


@pytest.mark.parametrize("detail", ['a"b', "a\\b", "{a,b}", "NULL", " ", "a'b", "$1", "%s"])
def test_a_detail_is_kept_as_it_is(recorded, detail):
    ((_, kept),) = noted(recorded, ("note", detail))
    assert kept == detail.replace("\\", "\\\\")


def test_bytes_that_are_no_text_are_written_readably(recorded):
    assert noted(recorded, ("note", b"a\xff\n\x01")) == [("note", "a\\xff\\n\\x01")]

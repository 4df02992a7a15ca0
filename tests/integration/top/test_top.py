"""`holdfast top`: in a terminal, key by key, and as one frame for scripts."""

import contextlib
import json
import os
import re
import signal
import socket
import unicodedata

import pytest

import cli
import hf
import hf_registry
import servers
from awaiting import eventually, stays
from terminal import PROMPT, Terminal

RED = re.compile(r"\x1b\[[0-9;]*\b31m")
COLOUR = re.compile(r"\x1b\[[0-9;]*\b3[1-7]m")


@pytest.fixture(params=["local", "pg18"])
def url(request, tmp_path, holdfast):
    """A store with records, of each kind."""
    if request.param == "local":
        yield f"local:{tmp_path / 'state'}"
        return
    database = request.getfixturevalue("pg18").create_database()
    assert holdfast.at(database.url())("init").code == 0
    yield database.url()
    holdfast.end_all()
    database.drop()


@pytest.fixture
def local(tmp_path):
    return f"local:{tmp_path / 'state'}"


@pytest.fixture
def contended(holdfast):
    """One who holds a label, and two who wait for it."""

    def contend(url, label="nightly"):
        command = holdfast.at(url)
        holder = command.hold(label)
        waiters = [command.start("run", label, "--", "sh", "-c", "echo held; exec sleep 600") for _ in range(2)]
        for waiter in waiters:
            waiter.await_line("waiting for", stream="err")
        return holder, *waiters

    return contend


@pytest.fixture
def screen(tmp_path):
    """Opens `holdfast top` in a terminal."""
    with contextlib.ExitStack() as stack:

        def start(url, *options, width=100, height=24, env=None, wanted="LABEL", **terminal):
            settings = {"HOLDFAST_URL": url, "HOME": str(tmp_path), **(env or {})}
            opened = stack.enter_context(Terminal(width, height, env=settings, **terminal))
            opened.run(cli.program(), "top", "--refresh", "250ms", *options)
            if wanted:
                opened.shows(wanted)
            return opened

        yield start


def pid_of_top(terminal):
    pid, = [pid for pid in servers.processes_of(terminal.shell_pid)
            if os.readlink(f"/proc/{pid}/exe").endswith("/holdfast-top")]
    return pid


def modes(terminal, folder):
    """As the next command finds them."""
    eventually(lambda: not servers.processes_of(terminal.shell_pid), what="the shell is back")
    note = folder / "modes"
    note.unlink(missing_ok=True)
    terminal.run("sh", "-c", f"stty -g > {note}.new; mv {note}.new {note}")
    eventually(note.exists)
    return note.read_text()


# --- for scripts ------------------------------------------------------------------------------------------


def once(holdfast, url, *options, env=None):
    done = holdfast.at(url)("top", "--once", *options, env=env)
    assert done.code == 0, done
    return done.out


def row_with(text, wanted):
    return next(line for line in text.splitlines() if wanted in line)


def test_one_frame_shows_a_lock_its_holder_and_its_waiters(holdfast, url, contended):
    holder, *_ = contended(url)
    other = holdfast.at(url).hold("report:weekly")
    frame = eventually(lambda: (text := once(holdfast, url)) and "2 held · 2 waiting" in text
                       and "nightly" in text and "report:weekly" in text and text)
    heading = next(line for line in frame.splitlines() if line.startswith("LABEL"))
    assert heading.split()[:8] == ["LABEL", "HOLDER", "HOST", "PID", "MODE", "HELD", "WAIT", "LONGEST"]
    row = row_with(frame, "nightly").split()
    assert row[:3] == ["nightly", "sh", "(holdfast"]
    assert str(holder.pid) in row and socket.gethostname() in row
    assert row[row.index("excl") + 2] == "2"
    assert str(other.pid) in row_with(frame, "report:weekly")
    lines = frame.splitlines()
    assert lines.index(row_with(frame, "nightly")) < lines.index(row_with(frame, "report:weekly"))


def test_one_frame_of_waits_is_a_tree(holdfast, url, contended):
    holder, *waiters = contended(url)
    frame = eventually(lambda: (text := once(holdfast, url, "--tab", "waits")) and "holds nightly" in text
                       and text.count("waits for nightly") == 2 and text)
    lines = frame.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"sh (holdfast run) ({holder.pid})"))
    assert "holds nightly" in lines[at]
    below = lines[at + 1:at + 3]
    assert below[0].startswith("├─ sh (holdfast run)") and below[1].startswith("└─ sh (holdfast run)")
    assert all("waits for nightly" in line for line in below)
    assert {str(waiter.pid) for waiter in waiters} == {re.search(r"\((\d+)\)", line).group(1) for line in below}
    assert len([line for line in lines if "holdfast run" in line]) == 3


def rows_once(holdfast, url, tab, *options):
    return json.loads(once(holdfast, url, "--json", "--tab", tab, *options))[tab]


def frame_with(holdfast, url, waiters):
    """Labels are recorded a moment after, and who waits long leaves the queue for a moment."""
    frame = json.loads(once(holdfast, url, "--json"))
    return frame if [(row["label"], row["waiters"]) for row in frame["locks"]] == [("nightly", waiters)] else None


def test_one_frame_as_json_says_the_same(holdfast, url, contended):
    holder, *_ = contended(url)
    frame = eventually(lambda: frame_with(holdfast, url, 2))
    assert frame["held"] == 1 and frame["waiting"] == 2 and frame["problem"] is None
    lock, = frame["locks"]
    assert lock["holder"] == "sh (holdfast run)" and lock["pid"] == holder.pid
    assert lock["mode"] == "exclusive" and lock["pair"] is None
    assert 0 < lock["longest_ms"] == frame["longest_wait_ms"] and lock["held_ms"] > 0
    eventually(lambda: [(row["depth"], row["lock"]) for row in rows_once(holdfast, url, "waits")]
               == [(0, "nightly"), (1, "nightly"), (1, "nightly")], what="the tree of those who wait")
    eventually(lambda: "acquired" in {row["event"] for row in rows_once(holdfast, url, "events")})


def test_filter_and_order_of_one_frame(holdfast, local):
    for label in ("b:one", "a:two", "c:one"):
        holdfast.at(local).hold(label)
    names = lambda *options: [row["label"] for row in rows_once(holdfast, local, "locks", *options)]
    eventually(lambda: all(names()))
    assert names("--sort", "label") == ["a:two", "b:one", "c:one"]
    assert names("--sort", "-label") == ["c:one", "b:one", "a:two"]
    assert names("--sort", "label", "--filter", "ONE") == ["b:one", "c:one"]
    assert names("--filter", "nowhere") == []


def test_lines_are_whole_unless_a_width_is_given(holdfast, local):
    label = "x" * 300
    holdfast.at(local).hold(label)
    eventually(lambda: label in once(holdfast, local))
    narrow = once(holdfast, local, env={"COLUMNS": "40"})
    assert all(len(line) <= 40 for line in narrow.splitlines())
    assert "x…" in narrow
    assert "\x1b" not in narrow and not re.search(r" $", narrow, flags=re.M)


def test_a_store_without_anything_is_said_in_words(holdfast, local):
    assert "0 held" in once(holdfast, local)
    assert "No advisory lock is held." in once(holdfast, local)
    assert "Nobody waits." in once(holdfast, local, "--tab", "waits")
    assert "No network is ingested" in once(holdfast, local, "--tab", "ingest")


def test_strangers_locks_are_shown_by_their_keys(holdfast, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(-42), pg_advisory_lock_shared(1, -2)")
        frame = once(holdfast, db.url())
        assert row_with(frame, "-42").startswith("-42")
        assert "shared" in row_with(frame, "(1, -2)")
        keys = {(row["key"], row["pair"] and tuple(row["pair"]))
                for row in json.loads(once(holdfast, db.url(), "--json"))["locks"]}
        assert (-42, None) in keys and (hf_key(1, -2), (1, -2)) in keys


def hf_key(high, low):
    return (high << 32) | (low & 0xFFFFFFFF)


# --- what it refuses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options, complaint", [
    (["--tab", "nonsense"], "locks, waits, ingest, events"),
    (["--sort", "nonsense"], "label, holder, host"),
    (["--tab", "waits", "--sort", "label"], "who, lock, since"),
    (["--refresh", "1ms"], "250 ms"),
    (["--refresh", "2m"], "1 min"),
    (["--json"], "--json goes with --once"),
    (["operand"], "operand"),
])
def test_wrong_usage_is_one_clear_line(holdfast, local, options, complaint):
    done = holdfast.at(local)("top", *options)
    assert done.code == cli.EXIT_USAGE and complaint in done.err and done.out == "", done


def test_without_a_terminal_it_says_so(holdfast, local):
    done = holdfast.at(local)("top")
    assert done.code == cli.EXIT_USAGE
    assert "no terminal" in done.err and "--once" in done.err, done


@pytest.mark.parametrize("term", ["dumb", "nonsense", ""])
def test_a_terminal_that_is_not_known_is_refused_and_left_as_it_was(screen, local, term):
    terminal = screen(local, wanted=None, env={"TERM": term})
    text = terminal.shows("--once", PROMPT)
    assert "error: " in text
    terminal.type("clear; " + cli.program() + " top; echo code $?")
    terminal.press("Enter")
    terminal.shows(f"code {cli.EXIT_USAGE}")
    assert not terminal.alternate and terminal.cursor_shown


def test_a_store_that_cannot_be_reached_is_an_error_and_no_picture(screen, holdfast, tmp_path):
    url = f"postgresql://app@127.0.0.1:{servers.free_port()}/nowhere"
    done = holdfast.at(url)("top", "--once")
    assert done.code == cli.EXIT_UNREACHABLE, done
    terminal = screen(url, wanted=None)
    terminal.shows("error: ", "HOLDFAST_URL")
    terminal.run("echo", "still", "here")
    terminal.shows("still here")
    assert not terminal.alternate


def test_it_can_be_interrupted_while_it_connects(screen):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        terminal = screen(f"postgresql://app@127.0.0.1:{deaf.getsockname()[1]}/x", wanted=None)
        caller, _ = deaf.accept()
        terminal.press("C-c")
        eventually(lambda: not servers.processes_of(terminal.shell_pid), what="it has ended")
        caller.close()
        terminal.type("echo code $?")
        terminal.press("Enter")
        terminal.shows(f"code {128 + signal.SIGINT}")
        terminal.run("stty", "-a")
        terminal.shows(" echo ")


# --- keys ----------------------------------------------------------------------------------------------------


def test_a_lock_and_its_waiters_appear_by_themselves(screen, url, contended):
    terminal = screen(url)
    terminal.shows("No advisory lock is held.", "0 held")
    contended(url)
    terminal.shows("1 held · 2 waiting", "nightly", "holdfast run")
    assert re.search(r"nightly +sh \(holdfast run\) .* 2 +\S+", terminal.text)


def test_every_tab_has_its_key(screen, url, contended):
    contended(url)
    terminal = screen(url)
    for key, wanted in {"2": "KEEPS ▼", "3": "NETWORK ▲", "4": "WHEN ▼", "1": "LONGEST ▼"}.items():
        terminal.press(key)
        terminal.shows(wanted)
    for key, wanted in (("Tab", "KEEPS"), ("Right", "NETWORK"), ("Right", "WHEN"), ("Tab", "LONGEST"),
                        ("Left", "WHEN"), ("BTab", "NETWORK")):
        terminal.press(key)
        terminal.shows(wanted)


def test_the_tree_shows_who_waits_for_whom(screen, url, contended):
    holder, *waiters = contended(url)
    terminal = screen(url, "--tab", "waits", wanted="WHO")
    terminal.shows(f"({holder.pid})", "├─ sh (holdfast run)", "└─ sh (holdfast run)", *(f"({w.pid})" for w in waiters))


def test_the_filter_works_with_every_letter(screen, local, holdfast):
    for label in ("apple", "apricot", "zebra"):
        holdfast.at(local).hold(label)
    terminal = screen(local)
    terminal.shows("apple", "apricot", "zebra")
    terminal.press("/")
    terminal.type("AP")
    terminal.shows_no("zebra")
    terminal.shows("/AP", "apple", "apricot")
    assert terminal.cursor_shown
    terminal.type("r")
    terminal.shows_no("apple")
    terminal.press("BSpace")
    terminal.shows("apple")
    terminal.press("Enter")
    eventually(lambda: not terminal.cursor_shown)
    terminal.shows("q quit", "/AP")
    terminal.press("Escape")
    terminal.shows("zebra")


def test_s_orders_by_the_next_column_and_r_the_other_way_round(screen, local, holdfast):
    for label in ("b", "c", "a"):
        holdfast.at(local).hold(f"label-{label}")
    terminal = screen(local, "--sort", "label")
    shown = lambda: re.findall(r"^label-(\w)", terminal.text, flags=re.M)
    eventually(lambda: shown() == ["a", "b", "c"])
    terminal.press("r")
    terminal.shows("LABEL ▼")
    eventually(lambda: shown() == ["c", "b", "a"])
    terminal.press("s")
    terminal.shows("HOLDER ▲")


def test_enter_shows_purpose_owner_runbook_and_history(screen, url, contended, tmp_path):
    registry = hf_registry.write(tmp_path, [
        "name: nightly, key: { pattern: nightly }, purpose: one report at a time, owner: billing,"
        " runbook: 'https://example.org/nightly'"])
    holder, *waiters = contended(url)
    terminal = screen(url, "--registry", registry, height=40)
    terminal.shows("nightly", "billing")
    terminal.press("Enter")
    text = terminal.shows("one report at a time", "https://example.org/nightly", "Held by: 1", "Waiting: 2", "History",
                          "acquired by sh (holdfast run)")
    assert f"pid {holder.pid}" in text and all(f"pid {waiter.pid}" in text for waiter in waiters)
    holder.signal(signal.SIGTERM)  # the detail follows what happens
    terminal.shows("Waiting: 1", "released by sh (holdfast run)")
    terminal.press("Escape")
    terminal.shows("LONGEST")


def test_the_chosen_row_is_kept_while_others_come(screen, local, holdfast):
    command = holdfast.at(local)
    command.hold("m")
    command.hold("z")
    terminal = screen(local, "--sort", "label")
    terminal.shows("m ", "z ")
    terminal.press("j", "y")
    terminal.shows("copied: z")
    command.hold("a")
    command.hold("n")
    terminal.shows("a ", "n ", "4 held")
    terminal.press("y")
    terminal.shows("copied: z")
    terminal.press("k", "y")
    terminal.shows("copied: n")
    terminal.press("Home", "y")
    terminal.shows("copied: a")
    terminal.press("End", "Up", "y")
    terminal.shows("copied: n")


def test_y_puts_the_label_on_the_clipboard(screen, local, holdfast):
    holdfast.at(local).hold("report: für 2024 🔒")
    terminal = screen(local)
    terminal.shows("report: für")
    terminal.press("y")
    terminal.shows("copied: report: für 2024")
    assert eventually(terminal.clipboard) == "report: für 2024 🔒"


def test_space_stops_the_picture_and_starts_it_again(screen, url, holdfast):
    command = holdfast.at(url)
    command.hold("first")
    terminal = screen(url)
    terminal.shows("first", "1 held")
    terminal.press("Space")
    terminal.shows("PAUSED")
    command.hold("second")
    stays(lambda: "second" not in terminal.text, 1.5)  # six refreshes
    terminal.shows("s old")
    terminal.press("Space")
    terminal.shows("second", "2 held")
    terminal.shows_no("PAUSED")


def test_plus_and_minus_change_how_often(screen, local):
    terminal = screen(local)
    terminal.shows("every 250ms")
    for wanted in ("500ms", "1s", "2s", "5s"):
        terminal.press("+")
        terminal.shows(f"every {wanted} ·")
    terminal.press("-")
    terminal.shows("every 2s ·")


def test_help_comes_and_goes(screen, local):
    terminal = screen(local, height=40)
    for key in ("h", "?"):
        terminal.press(key)
        text = terminal.shows("end the session or process that holds it")
        assert all(word in text for word in ("filter", "pause", "refresh", "order by", "copy its label", "quit"))
        terminal.press("Escape")
        terminal.shows("LABEL")


# --- ending a holder --------------------------------------------------------------------------------------------


def test_a_holder_is_ended_only_with_the_typed_label(screen, url, contended):
    holder, *waiters = contended(url)
    terminal = screen(url)
    terminal.shows("2 waiting")
    terminal.press("K")
    terminal.shows("Type the name of the lock", f"pid {holder.pid}", "2 who wait for it")
    terminal.type("nightl")
    terminal.press("Enter")
    terminal.shows("that is not 'nightly': nothing was ended")
    assert holder.process.poll() is None
    terminal.press("Escape")
    terminal.shows("nothing was ended", "LABEL")
    assert holder.process.poll() is None
    terminal.press("K")
    terminal.shows("Type the name of the lock")
    terminal.type("nightly")
    terminal.press("Enter")
    terminal.shows("ended: sh (holdfast run)", "which held nightly")
    assert holder.wait(20) in (cli.EXIT_LOST, 128 + signal.SIGTERM)
    eventually(lambda: any("held" in waiter.out for waiter in waiters), 20, "the next has it")
    terminal.press("4")
    text = terminal.shows("terminated")
    assert "nightly" in next(line for line in text.splitlines() if "terminated" in line)


def test_lease_of_a_dead_holder_is_ended(screen, holdfast, recorded_db):
    command = holdfast.at(recorded_db.url())
    command.hold("nightly", "--lease", "1h").kill9()
    terminal = screen(recorded_db.url())
    terminal.shows("nightly")
    terminal.press("Enter")
    terminal.shows("holdfast run", "lease with 59 min left")
    terminal.press("Escape", "K")
    terminal.shows("End the lease of this lock?", "all of the same length", "Type the name of the lock")
    terminal.type("nightly")
    terminal.press("Enter")
    terminal.shows("ended: sh (holdfast run)", "which held nightly")
    assert command("run", "-n", "nightly", "--", "true").code == 0


def test_what_cannot_be_ended_says_why(screen, url, contended):
    contended(url)
    terminal = screen(url, "--tab", "waits", wanted="└─")
    terminal.press("j", "K")
    terminal.shows("it holds nothing that could be freed")
    terminal.press("3", "K")
    terminal.shows("No network")


# --- what happens around it ---------------------------------------------------------------------------------------


def test_it_survives_every_size(screen, local, contended):
    contended(local)
    terminal = screen(local, width=120)
    terminal.shows("HOST", "LONGEST")
    for width, height in ((80, 24), (60, 20), (30, 10), (12, 5), (4, 2), (1, 1), (200, 60)):
        terminal.resize(width, height)
        eventually(lambda: terminal.size == (width, height))
        wanted = "nightly"[:max(1, min(7, width - 1))] if height > 1 else ""
        terminal.shows(wanted)
        assert all(len(line) <= width for line in terminal.lines())
    terminal.shows("LABEL", "HOST", "KEY", "q quit")
    eventually(lambda: terminal.lines()[0].rstrip().endswith(("just now", "old")))


def test_narrow_terminals_get_fewer_columns(screen, local, contended):
    contended(local)
    terminal = screen(local, width=80)
    terminal.shows("HOST")
    for width, there, gone in ((60, "LONGEST", "HOST"), (45, "HOLDER", "LONGEST"), (30, "WAIT", "HOLDER")):
        terminal.resize(width, 20)
        terminal.shows_no(gone)
        terminal.shows("LABEL", there, "nightly")


def test_the_server_goes_away_and_comes_back(screen, holdfast, template18):
    with servers.Postgres.copy_of(template18, "restarted") as server:
        url = server.start().create_database().url()
        command = holdfast.at(url)
        assert command("init").code == 0
        command.hold("before")
        terminal = screen(url)
        terminal.shows("before")
        server.stop()
        text = terminal.shows("store away for")
        assert RED.search(next(line for line in terminal.styled.splitlines() if "store away" in line))
        assert "before" in text  # what was known stays
        server.start()
        terminal.shows_no("store away", timeout=30)
        command.hold("afterwards")
        terminal.shows("afterwards")
        terminal.press("q")
        terminal.shows(PROMPT)


def test_quitting_gives_the_terminal_back(screen, local):
    terminal = screen(local)
    assert terminal.alternate and not terminal.cursor_shown
    terminal.press("q")
    eventually(lambda: not terminal.alternate)
    terminal.type("echo code $?")
    terminal.press("Enter")
    terminal.shows("code 0")
    assert terminal.cursor_shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(screen, local, tmp_path, number):
    terminal = screen(local)
    terminal.press("q")
    eventually(lambda: not terminal.alternate)
    before = modes(terminal, tmp_path)
    terminal.run(cli.program(), "top")
    terminal.shows("LABEL")
    os.kill(pid_of_top(terminal), number)
    eventually(lambda: not terminal.alternate)
    assert modes(terminal, tmp_path) == before
    assert terminal.cursor_shown


def test_control_c_quits(screen, local):
    terminal = screen(local)
    terminal.press("C-c")
    eventually(lambda: not terminal.alternate)
    terminal.run("echo", "here")
    terminal.shows("here")


def test_control_z_stops_it_and_fg_brings_it_back(screen, local, holdfast):
    terminal = screen(local)
    for _ in range(2):
        terminal.press("C-z")
        eventually(lambda: not terminal.alternate)
        terminal.shows("Stopped")
        terminal.run("echo", "in", "between")
        terminal.shows("in between")
        terminal.run("fg")
        eventually(lambda: terminal.alternate)
        terminal.shows("LABEL", "q quit")
    holdfast.at(local).hold("later")
    terminal.shows("later")
    terminal.press("q")
    eventually(lambda: not terminal.alternate)


def test_it_ends_when_its_terminal_is_gone(screen, local):
    terminal = screen(local)
    pid = pid_of_top(terminal)
    terminal.close()
    eventually(lambda: not servers.is_alive(pid))


# --- how it looks ---------------------------------------------------------------------------------------------


def test_colours_are_used_and_can_be_declined(screen, local, contended):
    contended(local)
    coloured = screen(local)
    coloured.shows("2 waiting")
    assert COLOUR.search(coloured.styled)
    for plain in (screen(local, env={"NO_COLOR": "1"}), screen(local, env={"TERM": "vt100"})):
        plain.shows("2 waiting")
        assert not COLOUR.search(plain.styled)
        assert "\x1b[" in plain.styled  # the chosen row and tab are still told apart


def test_names_cannot_draw_on_the_screen(screen, local):
    with hf.Store(local, application="evil\x1b[2Jname") as store:
        for label in ("深夜のバックアップ", "e\u0301te\u0301", "plain"):
            store.acquire(label)
        terminal = screen(local, "--sort", "label")
        text = terminal.shows("深夜のバックアップ", "e\u0301te\u0301", "plain", r"evil\x1b[2Jname")
    width = lambda line: sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) == "W" else 1
                             for c in line)
    columns = {width(line.partition("evil")[0]) for line in text.splitlines() if "evil" in line}
    assert len(columns) == 1, text


def test_a_plain_locale_still_means_utf8(holdfast, local):
    holdfast.at(local).hold("für")
    for locale in ("C", "POSIX"):  # as in services, where UTF-8 is meant all the same
        eventually(lambda: "für" in once(holdfast, local, env={"LC_ALL": locale}))

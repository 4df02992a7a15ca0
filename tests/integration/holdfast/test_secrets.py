"""Passwords are shown nowhere that others can look, and files of ours are for nobody else."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import urllib.parse

import pytest

import cli

SECRET = "open sesame"


def arguments(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def urls_of(pg):
    """Every way to write a password into what --url takes."""
    where = pg.url(user="guarded", host="127.0.0.1")
    return [pg.url(user="guarded", host="127.0.0.1", password=SECRET),
            f"{where}?password={urllib.parse.quote(SECRET)}",
            f"host=127.0.0.1 port={pg.port} user=guarded dbname=postgres password='{SECRET}'"]


def assert_hidden(text):
    assert "sesame" not in text, text


def test_others_see_the_name_of_a_command_and_not_its_arguments(recorded, holdfast, tmp_path):
    script = tmp_path / "report.sh"
    script.write_text("echo held; exec sleep 600\n")
    command = holdfast.at(recorded.url)
    holders = [command.hold("plain", script=f"echo held; exec sleep 600 # {SECRET}"),
               command.start("run", "script", "--", "/bin/sh", script, SECRET),
               command.start("run", "--title", "orders of May", "titled", "--", "sh", script, SECRET)]
    for holder in holders[1:]:
        holder.await_line("held")
    shown = {row["label"]: row["application"] for row in json.loads(command("locks", "--json").out)["locks"]}
    assert shown == {"plain": "sh (holdfast run)", "script": "sh report.sh (holdfast run)",
                     "titled": "orders of May (holdfast run)"}
    if not recorded.local:
        for name, in recorded.database.sql("select application_name from pg_stat_activity"):
            assert_hidden(name)
    assert command("run", "--title", "", "x", "--", "true").code == cli.EXIT_USAGE


def test_passwords_are_taken_out_of_the_arguments(pg, holdfast):
    for url in urls_of(pg):
        holder = holdfast.hold("job", "--url", url)
        shown = arguments(holder.pid)
        assert_hidden(shown)
        assert "--url" in shown and "guarded" in shown and "job" in shown  # the rest is there
        for pid in holder.children():
            assert_hidden(arguments(pid))
            assert_hidden(pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode())
        rows = pg.sql("select application_name, query from pg_stat_activity where usename = 'guarded'")
        assert rows
        assert_hidden(str(rows))
        holder.end()


def test_the_command_under_the_lock_gets_its_own_arguments_unchanged(holdfast, tmp_path):
    url = "postgresql://u:open-sesame@h/d"
    done = holdfast("run", "job", "--", "sh", "-c", 'echo "$1"; tr "\\0" " " < /proc/$PPID/cmdline', "sh", url)
    assert done.out.splitlines()[0] == url
    assert_hidden(done.out.splitlines()[1])


@pytest.mark.parametrize("words", [
    ["serve", "--listen", "127.0.0.1:0", "--url"], ["append", "t", "--to"],
    ["ingest", "--network", "testnet", "--source"]], ids=lambda words: words[0])
def test_programs_of_their_own_hide_them_too(holdfast, words):
    """The server accepts the connection and says no word, so that the program waits."""
    scheme = {"serve": "postgresql", "append": "clickhouse+http", "ingest": "rpc+http"}[words[0]]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"u:{urllib.parse.quote(SECRET)}@127.0.0.1:{silent.getsockname()[1]}"
        silent.settimeout(20)
        started = holdfast.start(*words, f"{scheme}://{where}/d")
        connection, _ = silent.accept()
        assert_hidden(arguments(started.pid))
        connection.close()
        started.end()
        assert_hidden(started.describe())


def test_messages_and_logs_of_the_server_have_no_password(own_pg, own_db, holdfast):
    for url in [own_db.url(user="guarded", host="127.0.0.1", password=SECRET),
                own_db.url(user="guarded", host="127.0.0.1", password="wrong " + SECRET)]:
        for words in (["run", "job", "--", "true"], ["tx", "job", "-c", "select 1/0"], ["locks"], ["doctor"], ["init"],
                      ["ingest", "status"], ["registry", "seen"], ["table", "list"], ["append", "list"],
                      ["locks", "--json"], ["doctor", "--json"]):
            done = holdfast.at(url)(*words)
            assert_hidden(done.out + done.err)
    assert_hidden(own_pg.log())


# --- files ------------------------------------------------------------------------------------------


def all_of(folder):
    return [folder, *folder.rglob("*")]


def test_all_that_a_local_store_makes_is_for_its_owner_only(holdfast, tmp_path):
    """Whatever the umask is."""
    folder = tmp_path / "deep" / "state"
    run = holdfast.at(f"local:{folder}")
    source = tmp_path / "ledgers.ndjson"
    source.write_text("")
    prefix = ["sh", "-c", 'umask 0; exec "$@"', "sh"]
    assert run("run", "--slots", "2", "job", "--", "true", prefix=prefix).code == 0
    assert run("tx", "job", "-c", "create table t (n int)", prefix=prefix).code == 0
    assert run("table", "register", "a.b", prefix=prefix).code == 0
    assert run("ingest", "--network", "n", "--source", source, prefix=prefix).code == 0
    made = all_of(tmp_path / "deep")
    assert len(made) > 6
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []


def test_links_in_place_of_the_files_of_a_local_store_are_refused(holdfast, tmp_path):
    """Nothing is made or written where they point to."""
    reference = tmp_path / "reference"
    words = (["run", "job", "--", "true"], ["tx", "job", "-c", "create table t (n int)"], ["table", "register", "a.b"],
             ["locks"])
    for run in words:
        assert holdfast.at(f"local:{reference}")(*run).code == 0
    names = [path.relative_to(reference) for path in reference.rglob("*")
             if path.suffix == ".db" or path.parent.name == "locks"] + [pathlib.Path("locks")]
    assert pathlib.Path("holdfast.db") in names and pathlib.Path("data.db") in names
    for number, name in enumerate(names):
        for there in (False, True):
            folder, target = tmp_path / f"s{number}{there}", tmp_path / f"t{number}{there}"
            (folder / name).parent.mkdir(parents=True)
            if there:
                target.mkdir() if name.name == "locks" else target.write_bytes(b"")
            (folder / name).symlink_to(target)
            codes = [holdfast.at(f"local:{folder}")(*run).code for run in words]
            assert cli.EXIT_CONFIG in codes, (name, codes)
            assert target.exists() == there and (not there or not (target.stat().st_size if target.is_file()
                                                                   else list(target.iterdir()))), name


@pytest.fixture
def as_nobody():
    """The prefix that runs a command as another user than root."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    return ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"]


def test_a_folder_that_somebody_else_has_made_is_refused(as_nobody):
    """As in /tmp: there, whoever comes first chooses the owner."""
    base = pathlib.Path(subprocess.run(["mktemp", "-d", "/tmp/hf-XXXXXX"], capture_output=True, text=True,
                                       check=True).stdout.strip())
    try:
        base.chmod(0o1777)
        programs = base / "bin"
        programs.mkdir()
        shutil.copy(cli.program(), programs / "holdfast")
        for trap, refused in ((base / "trap", True), (base / "fine", False)):
            trap.mkdir()
            trap.chmod(0o777)
            shutil.chown(trap, "daemon" if refused else "root")
            done = subprocess.run([*as_nobody, programs / "holdfast", "run", "--url", f"local:{trap}", "job", "--", "true"],
                                  capture_output=True, text=True, timeout=30, cwd="/", check=False,
                                  env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
            assert done.returncode == (cli.EXIT_CONFIG if refused else 0), done
            assert not refused or ("another user's" in done.stderr and not list(trap.iterdir()))
    finally:
        shutil.rmtree(base)

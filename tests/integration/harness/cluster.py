"""A real cluster: two PostgreSQL 15 under Patroni, which agree by etcd on who is the primary.

    with Cluster(synchronous=True) as cluster:
        cluster.leader().kill9()
        cluster.await_leader(cluster.nodes[1])
"""

import contextlib
import json
import os
import shutil
import signal
import urllib.error
import urllib.request

import psycopg2

from awaiting import eventually
from servers import (Database, Postgres, Proxy, Server, free_port, is_alive, own, postgres15_home,
                     processes_of)

# A leader that has not renewed its key for TTL seconds is replaced, and looks at it once in LOOP.
TTL, LOOP, RETRY = 5, 1, 2


def ask(url, body=None, timeout=10):
    """The parsed answer, or its text, or None when there is none."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, OSError):
        return None
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return text


class Etcd(Server):
    name = "etcd"

    def __init__(self):
        super().__init__()
        self.port, self._peer_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        clients, peers = self.url, f"http://127.0.0.1:{self._peer_port}"
        self._spawn(["etcd", "--data-dir", self.folder / "data", "--enable-v2", "--unsafe-no-fsync",
                     "--listen-client-urls", clients, "--advertise-client-urls", clients,
                     "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                     "--initial-cluster", f"default={peers}"], dies_with_us="KILL")
        eventually(lambda: ask(f"{self.url}/version"), 30, "etcd answers")
        return self

    def kill(self):
        self._end(signal.SIGKILL)


class Node(Postgres):
    """
    One PostgreSQL and its Patroni. The standby reads from it through `line`, and it asks etcd through
    `etcd_line`; both can be cut.
    """

    def __init__(self, name, etcd, settings):
        super().__init__(postgres15_home(), f"patroni-{name}")
        self.member = name
        self.hurt = False  # by a test: it may have lost what the other has, and the other way round
        self.line = Proxy(self.port)
        self.etcd_line = Proxy(etcd.port)
        self.rest = f"127.0.0.1:{free_port()}"
        self.config = self.folder / "patroni.json"
        self.config.write_text(json.dumps({
            "scope": "hf",
            "name": name,
            "restapi": {"listen": self.rest, "connect_address": self.rest},
            # Over etcd's newer API a primary that was stopped for a while could take the key back.
            "etcd": {"hosts": [f"127.0.0.1:{self.etcd_line.port}"], "use_proxies": True},
            "bootstrap": {
                "dcs": {"ttl": TTL, "loop_wait": LOOP, "retry_timeout": RETRY, **settings},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "no-sync"]},
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.line.port}",
                "data_dir": str(self.data), "bin_dir": str(self.home / "bin"),
                "use_unix_socket": True,
                "authentication": {"superuser": {"username": "postgres"},
                                   "replication": {"username": "replicator"}},
                "basebackup": [{"checkpoint": "fast"}, "no-sync"],
                "pg_hba": ["local all all trust", "host all all all trust", "host replication all all trust"],
                "parameters": {
                    "unix_socket_directories": str(self.folder), "shared_buffers": "16MB",
                    "fsync": "off", "full_page_writes": "off", "max_connections": 100, "timezone": "UTC",
                    "log_line_prefix": "%m [%p] %q%a "}}}))
        own(self.config)

    def start(self, wait=False):
        # At its end Patroni stops its server.
        self._spawn(["patroni", self.config], dies_with_us="TERM")
        return self

    @property
    def postmaster(self):
        """Not a child of Patroni: it outlives it."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
            return pid if is_alive(pid) else None
        return None

    def roots(self):
        return [pid for pid in (self.process and self.process.pid, self.postmaster) if pid]

    def kill9(self):
        self.hurt = True
        super().kill9()

    def freeze(self):
        self.hurt = True
        super().freeze()

    def thaw_postgres(self):
        for pid in (*processes_of(self.postmaster), self.postmaster):
            os.kill(pid, signal.SIGCONT)

    @property
    def is_primary(self):
        """False as well when it does not answer within two seconds."""
        with contextlib.suppress(psycopg2.Error), contextlib.closing(self.connect(connect_timeout=2)) as asking:
            with asking.cursor() as cursor:
                cursor.execute("select not pg_is_in_recovery()")
                return cursor.fetchone()[0]
        return False

    def close(self):
        self.line.close()
        self.etcd_line.close()
        if self.process is not None:
            self.kill9()
        super().close()


class HAProxy(Server):
    """One address for whichever node says that it is the primary; sessions of one that is not any more are ended."""

    name = "haproxy"

    def __init__(self, nodes):
        super().__init__()
        self.port = free_port()
        self._nodes = nodes

    def start(self):
        config = self.folder / "haproxy.cfg"
        config.write_text(f"""
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    timeout check 1s
listen primary
    bind 127.0.0.1:{self.port}
    option httpchk GET /primary
    default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
""" + "".join(f"    server {node.member} 127.0.0.1:{node.port} check port {node.rest.rpartition(':')[2]}\n"
              for node in self._nodes))
        own(config)
        self._spawn(["haproxy", "-db", "-f", config], dies_with_us="KILL")
        return self


class Cluster:
    """Asynchronous, or with the one standby synchronous as long as it is there."""

    def __init__(self, synchronous=False):
        self._stack = contextlib.ExitStack()
        self.etcd = self._stack.enter_context(Etcd())
        self.synchronous = synchronous
        self.nodes = []

    def start(self):
        self.etcd.start()
        settings = {"synchronous_mode": self.synchronous}
        for name in "ab":
            self.nodes.append(self._stack.enter_context(Node(name, self.etcd, settings)).start())
        self.await_healthy()
        leader = self.leader()
        leader.sql("create role app login")
        return self

    def _key(self, name):
        answer = ask(f"{self.etcd.url}/v2/keys/service/hf/{name}")
        return answer["node"]["value"] if answer else None

    def leader(self):
        """The node that has the key and is a primary, or None."""
        name = self._key("leader")
        return next((node for node in self.nodes if node.member == name and node.is_primary), None)

    def other(self, node):
        return next(one for one in self.nodes if one is not node)

    def await_leader(self, node=None):
        """That node, or any."""
        return eventually(lambda: (found := self.leader()) and (node in (None, found)) and found, 60,
                          f"{node.member if node else 'some node'} is the primary")

    def await_healthy(self):
        """A primary, and a standby that follows it and could replace it."""
        states = ("sync",) if self.synchronous else ("async", "sync")

        def healthy():
            leader = self.leader()
            if not leader:
                return False
            # By its name, for the copy that a new standby is made of streams, too.
            followed = leader.value("select count(*) from pg_stat_replication where state = 'streaming'"
                                    " and sync_state = any(%s) and application_name = %s", list(states),
                                    self.other(leader).member)
            names = json.loads(self._key("sync") or "{}").get("sync_standby")
            return followed and (not self.synchronous or names == self.other(leader).member) and leader

        return eventually(healthy, 90, "the cluster is whole")

    def switchover(self):
        """Gives the new primary."""
        old = self.leader()
        new = self.other(old)
        said = ask(f"http://{old.rest}/switchover", {"leader": old.member, "candidate": new.member}, 60)
        assert said and "uccessfully" in said, said
        return self.await_leader(new)

    def heal(self):
        """Whole again: a node that was hurt starts as a new copy of the other, which leads by now."""
        for node in [node for node in self.nodes if node.hurt]:
            leader = self.await_leader(self.other(node))
            if node.process is not None:
                node.kill9()
            shutil.rmtree(node.data)
            node.start()
            node.hurt = False
            leader.line.heal()
        self.await_healthy()
        return self

    def create_database(self):
        """On both nodes when this returns: to one that has not heard of it nobody can connect."""
        leader = self.leader()
        made = leader.create_database()
        eventually(lambda: self.other(leader).value(
            "select count(*) from pg_database where datname = %s", made.name))
        return made

    def at(self, node, database):
        """The same database as another node has it."""
        return Database(node, database.name)

    def url(self, database="postgres", **parameters):
        """All hosts, and not a word on which is the primary."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgresql://app@{hosts}/{database}" + (f"?{query}" if query else "")

    def close(self):
        self._stack.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

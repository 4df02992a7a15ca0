"""
A real cluster: two PostgreSQL under Patroni, etcd, HAProxy and PgBouncer, as people run it. Workers find the
primary by all hosts in their URL, by HAProxy, or, for transactions, by PgBouncer behind HAProxy; `holdfast serve`
looks on, and is well again after each fault.
"""

import contextlib
import signal
import types

import cli
import cluster
import hf
import servers
from awaiting import eventually
from serve import Serve
from worlds import DEADLINE_MS, PING_MS, World, pause


class Clustered(World):
    """Asynchronous, or with the standby synchronous."""

    bound = (PING_MS + DEADLINE_MS) / 1000
    faults = (*World.faults, "switchover", "kill_primary", "pause_primary", "lose_etcd", "cut_network")

    # A primary that was stopped and goes on grants locks until Patroni has seen that it was replaced. Only
    # tokens protect from that: what happened then is measured.
    split_faults = ("pause_primary",)

    def __init__(self, synchronous):
        self.synchronous = synchronous

    @contextlib.contextmanager
    def running(self):
        with contextlib.ExitStack() as stack:
            self._stack = stack
            self._cluster = stack.enter_context(cluster.Cluster(self.synchronous))
            self._database = self._cluster.create_database()
            self.url = self._cluster.url(self._database.name)
            self._haproxy = stack.enter_context(cluster.HAProxy(self._cluster.nodes)).start()
            behind = types.SimpleNamespace(folder="127.0.0.1", port=self._haproxy.port)
            self._pooler = stack.enter_context(servers.PgBouncer(behind, "transaction")).start()
            self.prepare()
            watching = cli.Holdfast(self._haproxy.folder, self.url)
            stack.callback(watching.end_all)
            self._serve = Serve(watching)
            yield self

    def prepare(self):
        hf.install(self._database.url())
        self._database.sql("CREATE TABLE rows (id uuid)", user="app")
        self._database.sql("CREATE TABLE writes (seq bigserial, label text, token bigint)", user="app")

    def options(self, number):
        by_haproxy = f"postgresql://app@127.0.0.1:{self._haproxy.port}/{self._database.name}"
        ways = [{"url": self.url}, {"url": by_haproxy},
                {"url": self.url, "tx_url": self._pooler.url(self._database.name)}]
        return {"kind": self.kind, "ping_interval_ms": PING_MS, "ping_deadline_ms": DEADLINE_MS,
                "connect_timeout_ms": 3000, **ways[number % len(ways)]}

    # --- faults; each ends when the cluster is whole again -------------------------------------------------

    def _mend(self, crew):
        self._cluster.heal()
        with contextlib.suppress(AssertionError):
            eventually(lambda: self._serve.get("/health").status == 200, 30)
        crew.seen("serve", 200, self._serve.get("/health").status)

    def switchover(self, crew, chance):
        self._cluster.switchover()
        self._mend(crew)

    def kill_primary(self, crew, chance):
        self._cluster.leader().kill9()
        self._mend(crew)

    def pause_primary(self, crew, chance):
        """Stopped with its Patroni until another leads, and a moment longer; then both go on as if nothing had been."""
        old = self._cluster.leader()
        old.freeze()
        self._cluster.await_leader(self._cluster.other(old))
        pause(chance.uniform(0, 4))
        old.thaw()
        pause(2 * cluster.LOOP)
        self._mend(crew)

    def lose_etcd(self, crew, chance):
        """Nobody can tell who leads: after a while nobody does."""
        self._cluster.etcd.kill()
        pause(chance.uniform(1, 3 * cluster.TTL))
        self._cluster.etcd.start()
        self._mend(crew)

    def cut_network(self, crew, chance):
        """The primary is cut off from etcd and from its standby; its clients still reach it."""
        old = self._cluster.leader()
        for line in (old.etcd_line, old.line):
            line.blackhole()
        self._cluster.await_leader(self._cluster.other(old))
        pause(chance.uniform(0, 3))
        old.hurt = True  # what it has and the other does not is gone
        for line in (old.etcd_line, old.line):
            line.cut()
        self._mend(crew)

    def state(self):
        leader = self._cluster.at(self._cluster.await_leader(), self._database)
        rows = leader.sql("SELECT id::text, count(*) FROM rows GROUP BY 1")
        writes = leader.sql("SELECT label, token FROM writes ORDER BY seq")
        return {"rows": dict(rows), "writes": writes, "may_lose": not self.synchronous}


class Etcd(World):
    """A control: `etcdctl lock`. Half of the workers reach etcd by a line that can be cut."""

    kind = "etcd"
    bound = 0.0
    faults = (*World.faults, "freeze", "crash", "blackhole")

    @contextlib.contextmanager
    def running(self):
        with cluster.Etcd() as self._etcd, servers.Proxy(self._etcd.port) as self._line:
            self._etcd.start()
            yield self

    def options(self, number):
        return {"kind": self.kind, "url": f"127.0.0.1:{[self._etcd.port, self._line.port][number % 2]}"}

    def freeze(self, crew, chance):
        self._etcd.process.send_signal(signal.SIGSTOP)
        pause(chance.uniform(0.5, 8))
        self._etcd.process.send_signal(signal.SIGCONT)

    def crash(self, crew, chance):
        self._etcd.kill()
        pause(chance.uniform(0, 2))
        self._etcd.start()

    def blackhole(self, crew, chance):
        """Longer than a lease lasts."""
        self._line.blackhole()
        pause(chance.uniform(6, 12))
        self._line.cut()

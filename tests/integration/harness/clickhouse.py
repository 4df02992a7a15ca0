"""A throwaway ClickHouse server on loopback, over HTTP and its native protocol.

As root it runs as the servers' unprivileged user. It dies with the process that started it.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from awaiting import eventually
from servers import Server, free_port, own, private_folder, small_disk

MEMORY = "/dev/shm"

CONFIG = """<?xml version="1.0"?>
<yandex>
    <logger><level>warning</level><console>1</console></logger>
    <listen_host>{host}</listen_host>
    <http_port>{http_port}</http_port>
    <tcp_port>{tcp_port}</tcp_port>
    <interserver_http_port>{interserver_port}</interserver_http_port>
    <interserver_http_host>{host}</interserver_http_host>
    <path>{data}/data/</path>
    <tmp_path>{data}/tmp/</tmp_path>
    <user_files_path>{data}/user_files/</user_files_path>
    <format_schema_path>{data}/format_schemas/</format_schema_path>
    <mark_cache_size>67108864</mark_cache_size>
    <max_concurrent_queries>100</max_concurrent_queries>
    <users_config>users.xml</users_config>
    <default_profile>default</default_profile>
    <default_database>default</default_database>
    <timezone>UTC</timezone>
    <mlock_executable>false</mlock_executable>
    <query_log>
        <database>system</database><table>query_log</table>
        <flush_interval_milliseconds>100</flush_interval_milliseconds>
    </query_log>
    <merge_tree>
        <parts_to_delay_insert>100000</parts_to_delay_insert>
        <parts_to_throw_insert>100000</parts_to_throw_insert>
    </merge_tree>
    {more}
</yandex>
"""

# "reader" may look and not write; "guarded" has a password; "extreme" gets two rows more with every answer.
USERS = """<?xml version="1.0"?>
<yandex>
    <profiles>
        <default>
            <max_memory_usage>4000000000</max_memory_usage>
            <log_queries>1</log_queries>
        </default>
        <readonly><readonly>1</readonly></readonly>
        <extreme><extremes>1</extremes><log_queries>1</log_queries></extreme>
    </profiles>
    <quotas><default/></quotas>
    <users>
        <default>
            <password></password><networks><ip>127.0.0.0/8</ip></networks>
            <profile>default</profile><quota>default</quota>
        </default>
        <reader>
            <password></password><networks><ip>127.0.0.0/8</ip></networks>
            <profile>readonly</profile><quota>default</quota>
        </reader>
        <extreme>
            <password></password><networks><ip>127.0.0.0/8</ip></networks>
            <profile>extreme</profile><quota>default</quota>
        </extreme>
        <guarded>
            <password>open sesame</password><networks><ip>127.0.0.0/8</ip></networks>
            <profile>default</profile><quota>default</quota>
        </guarded>
    </users>
</yandex>
"""


class ClickHouseError(Exception):
    """What the server said; code is its own number, or 0."""

    def __init__(self, text):
        super().__init__(text)
        head = text.partition("Code: ")[2].partition(",")[0]
        self.code = int(head) if head.isdigit() else 0


class ClickHouse(Server):
    host = "127.0.0.1"

    def __init__(self, name="clickhouse", in_memory=True):
        """Small parts are thousands of small files, which a disk takes long to write and to remove."""
        super().__init__()
        self.data = private_folder()
        if in_memory and os.access(MEMORY, os.W_OK):
            self.data.rmdir()
            self.data = pathlib.Path(tempfile.mkdtemp(prefix=f"hf-{os.getpid()}-", dir=MEMORY))
            own(self.data)
        self.name = name
        self.more = ""  # of the configuration
        self.http_port, self.tcp_port, self.interserver_port = free_port(), free_port(), free_port()
        self._databases = 0
        for part in ("data", "tmp", "user_files", "format_schemas"):
            (self.data / part).mkdir()
            own(self.data / part)

    # life

    def start(self):
        (self.folder / "config.xml").write_text(CONFIG.format(
            host=self.host, data=self.data, http_port=self.http_port, tcp_port=self.tcp_port,
            interserver_port=self.interserver_port, more=self.more))
        (self.folder / "users.xml").write_text(USERS)
        self._spawn(["clickhouse-server", f"--config-file={self.folder}/config.xml"], dies_with_us="KILL")
        eventually(self._answers, 30, f"{self.name} accepts connections")
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} did not start:\n{self.log()}")
        with contextlib.suppress(OSError):
            return self.sql("select 1") == "1\n"
        return False

    def close(self):
        super().close()
        shutil.rmtree(self.data, ignore_errors=True)

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    # SQL

    def url(self, database="default", user="default", password=None, port=None, **parameters):
        secret = "" if password is None else ":" + urllib.parse.quote(password, safe="")
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        return f"clickhouse+http://{user}{secret}@{self.host}:{port or self.http_port}/{database}{query}"

    def sql(self, *words, **settings):
        """The answer as text. With a body the query is an INSERT of it."""
        return self.sql_bytes(*words, **settings).decode()

    def sql_bytes(self, query, body=b"", database="default", timeout=60, **settings):
        words = urllib.parse.urlencode({"database": database, "query": query, **settings})
        request = urllib.request.Request(f"http://{self.host}:{self.http_port}/?{words}", data=body, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise ClickHouseError(error.read().decode(errors="replace")) from None

    def rows(self, query, **where):
        """The rows as dicts."""
        answer = self.sql(f"{query} FORMAT JSON", output_format_json_quote_64bit_integers=0, **where)
        return json.loads(answer)["data"]

    def value(self, query, **where):
        return next(iter(self.rows(query, **where)[0].values()))

    def client(self, *words, **popen):
        """clickhouse-client, the control that every user has."""
        return subprocess.run(
            ["clickhouse-client", "--host", self.host, "--port", str(self.tcp_port), *words],
            check=True, capture_output=True, **popen)

    def create_database(self):
        self._databases += 1
        name = f"d{self._databases}"
        self.sql(f"create database {name}")
        return ClickHouseDatabase(self, name)


class ClickHouseDatabase:
    """One test's own; strangers: who writes there besides, see appending_beside."""

    def __init__(self, server, name):
        self.server = server
        self.name = name
        self.strangers = None

    def url(self, **parameters):
        return self.server.url(self.name, **parameters)

    def sql(self, query, body=b"", **settings):
        return self.server.sql(query, body, database=self.name, **settings)

    def rows(self, query, **where):
        return self.server.rows(query, database=self.name, **where)

    def value(self, query, **where):
        return self.server.value(query, database=self.name, **where)

    def tables(self):
        return [row["name"] for row in self.rows(
            f"select name from system.tables where database = '{self.name}' order by name")]

    def staging_tables(self):
        return [name for name in self.tables() if name.startswith("holdfast_stag") and "_stranger-" not in name]

    def drop(self):
        self.server.sql(f"drop database if exists {self.name}")


class SmallClickHouse(ClickHouse):
    """On a disk of its own that is soon full: a tmpfs that only the server sees."""

    def __init__(self, size="24m"):
        super().__init__("small-clickhouse")
        self.size = size

    def _spawn(self, command, dies_with_us):
        script = 'cd "$1" && mkdir data tmp user_files format_schemas && shift && exec "$@"'
        super()._spawn([*small_disk(self.size, self.data), "sh", "-c", script, "sh", self.data, *command], dies_with_us)


class ZooKeeper(Server):
    """What replicated tables of ClickHouse need."""

    name = "zookeeper"
    JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"

    def start(self):
        self.port = free_port()
        (self.folder / "data").mkdir()
        own(self.folder / "data")
        self._spawn(["java", "-Xmx128m", "-Dzookeeper.admin.enableServer=false", "-cp", self.JARS,
                     "org.apache.zookeeper.server.ZooKeeperServerMain", str(self.port), self.folder / "data"],
                    dies_with_us="KILL")
        eventually(self._answers, 60, "ZooKeeper accepts connections")
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"ZooKeeper did not start:\n{self.log()}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as client:
            client.sendall(b"srvr")
            return b"Mode: standalone" in client.recv(4096)
        return False

    @property
    def configuration(self):
        return f"<zookeeper><node><host>127.0.0.1</host><port>{self.port}</port></node></zookeeper>"


class Cluster:
    """The replicas of one shard, as people have them: every one at a host of its own, all at the same port."""

    def __init__(self, name="pair", count=2, more=""):
        self.name = name
        self.servers = [ClickHouse(f"{name}-{number}") for number in range(1, count + 1)]
        first = self.servers[0]
        for number, server in enumerate(self.servers, 2):
            server.host = f"127.0.0.{number}"
            server.http_port, server.tcp_port = first.http_port, first.tcp_port
        replicas = "".join(f"<replica><host>{server.host}</host><port>{server.tcp_port}</port></replica>"
                           for server in self.servers)
        for server in self.servers:
            server.more = (f"<remote_servers><{name}><shard><internal_replication>true</internal_replication>{replicas}"
                           f"</shard></{name}></remote_servers><macros><replica>{server.host}</replica></macros>{more}")

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for server in self.servers:
                stack.enter_context(server).start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def create_database(self, name):
        for server in self.servers:
            server.sql(f"create database {name}")
        return [ClickHouseDatabase(server, name) for server in self.servers]

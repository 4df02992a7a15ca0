"""
A proxy that understands PostgreSQL's protocol: it forwards the client's messages one by one, counts
round trips, and cuts the line where a rule says so.

A rule is called as rule(line, message) for each message of the client before it is forwarded and
returns None (forward), SWALLOW (the server never hears of it), CUT (end both sides at once; the
message is not forwarded), MUTE (forward, keep every answer from the client, and cut when the server
has answered to the end), HOLD (the same without the cut), ABANDON (end the client's side only: the
server hears nothing any more), SILENCE (nothing passes any more, and neither side is told) or another
Message to forward in its place.
"""

import contextlib
import re
import socket
import struct
import threading

from servers import free_port
from sockets import clients_of

SWALLOW, CUT, MUTE, HOLD, ABANDON, SILENCE = "swallow", "cut", "mute", "hold", "abandon", "silence"
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


class Message:
    """kind is the type letter; text is the statement of a Parse or Query, or the name bound."""

    def __init__(self, kind, raw):
        self.kind = kind
        self.raw = raw

    @classmethod
    def parse(cls, sql):
        body = b"\0" + sql.encode() + b"\0\0\0"
        return cls("P", b"P" + struct.pack("!I", len(body) + 4) + body)

    @classmethod
    def query(cls, sql):
        body = sql.encode() + b"\0"
        return cls("Q", b"Q" + struct.pack("!I", len(body) + 4) + body)

    @property
    def text(self):
        body = self.raw[5:]
        if self.kind == "Q":
            return body.split(b"\0")[0].decode()
        if self.kind in "PB":
            return body.split(b"\0")[1].decode()
        return ""

    @property
    def is_commit(self):
        return self.kind in "PQ" and self.text == "COMMIT"

    @property
    def is_lock(self):
        """The wait for the labels, prepared or not: from here to the hand-over."""
        return (self.kind == "B" and self.text == "hf_tx_lock_one" or
                self.kind == "P" and bool(re.search("pg_advisory_xact_lock", self.text)))

    @property
    def is_hand_over(self):
        return (self.kind == "B" and self.text == "hf_tx_hand_over_one" or
                self.kind == "P" and "pg_advisory_unlock" in self.text)


class Line:
    """One client's connection."""

    def __init__(self, proxy, client, server):
        self.proxy = proxy
        self.client = client
        self.server = server
        self.muted = None
        self.silenced = False
        self.notes = {}  # for the rule

    def run(self):
        threading.Thread(target=self._answers, daemon=True).start()
        try:
            self._requests()
        except (OSError, EOFError):
            pass
        self.cut()

    def _read(self, count):
        data = b""
        while len(data) < count:
            more = self.client.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def _requests(self):
        code = SSL_REQUEST
        while code in (SSL_REQUEST, GSS_REQUEST):
            head = self._read(4)
            body = self._read(struct.unpack("!I", head)[0] - 4)
            code = struct.unpack("!I", body[:4])[0]
            self.server.sendall(head + body)
        if code == CANCEL_REQUEST:
            with contextlib.suppress(OSError):
                self.server.recv(1)  # until the server hangs up
            return
        buffer = b""
        while data := self.client.recv(65536):
            buffer += data
            while len(buffer) >= 5:
                size = 1 + struct.unpack("!I", buffer[1:5])[0]
                if len(buffer) < size:
                    break
                message, buffer = Message(chr(buffer[0]), buffer[:size]), buffer[size:]
                if not self._pass_on(message):
                    return

    def _pass_on(self, message):
        rule = self.proxy.rule
        verdict = SILENCE if self.silenced else rule(self, message) if rule else None
        if verdict == CUT:
            return False
        if verdict == SWALLOW:
            return True
        if verdict in (ABANDON, SILENCE):
            self.muted = HOLD
            if verdict == ABANDON:
                self.client.shutdown(socket.SHUT_RDWR)
            self.proxy.closed.wait()
            return False
        if isinstance(verdict, Message):
            message = verdict
        if verdict in (MUTE, HOLD):
            self.muted = verdict
        if message.kind in "SQ":
            with self.proxy.guard:
                self.proxy.trips += 1
        self.server.sendall(message.raw)
        return True

    def _answers(self):
        try:
            while data := self.server.recv(65536):
                if not self.muted:
                    self.client.sendall(data)
                elif self.muted == MUTE and data[-6:-1] == b"Z\0\0\0\5":  # ReadyForQuery
                    break
        except OSError:
            pass
        self.cut()

    def cut(self):
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self.proxy.guard:
            if self in self.proxy.lines:
                self.proxy.lines.remove(self)


class WireProxy:
    def __init__(self, target_port):
        self.target_port = target_port
        self.rule = None
        self.trips = 0
        self.silences_new = False
        self.lines = []
        self.guard = threading.Lock()
        self.closed = threading.Event()
        self.port = free_port()
        self.welcome()

    def welcome(self):
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=100)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def refuse(self):
        """Nobody listens any more; the lines that are open stay."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def cut(self):
        with self.guard:
            lines = list(self.lines)
        for line in lines:
            line.cut()

    def silence(self, new):
        """Nothing passes any more on the lines that are open, nor on new ones, and nobody is told."""
        self.silences_new = new
        with self.guard:
            for line in self.lines:
                line.silenced, line.muted = True, HOLD

    def _accept(self, listener):
        for client in clients_of(listener):
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.closing(client):
            if self.silences_new:
                self.closed.wait()
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                return
            with contextlib.closing(server):
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                line = Line(self, client, server)
                with self.guard:
                    self.lines.append(line)
                line.run()

    @contextlib.contextmanager
    def counting(self):
        """How many round trips the client made inside: counting() as trips … trips()."""
        with self.guard:
            before = self.trips
        yield lambda: self.trips - before

    def close(self):
        self.closed.set()
        self.refuse()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def once(matches, verdict):
    """A rule for the first message that matches, on whichever line; .hit is set when it came."""
    guard = threading.Lock()

    def rule(_line, message):
        with guard:
            if rule.hit.is_set() or not matches(message):
                return None
            rule.hit.set()
            return verdict

    rule.hit = threading.Event()
    return rule

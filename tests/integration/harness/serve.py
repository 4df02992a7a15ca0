"""`holdfast serve` on a store, and a client for it that hides nothing."""

import contextlib
import http.client
import json
import socket
import urllib.parse

from awaiting import eventually

REFRESH = "100ms"
TOKEN = "0123456789abcdef0123456789abcdef"


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def data(self):
        return self.json["data"]

    def __repr__(self):
        return f"{self.status}\n{self.headers}\n{self.body[:2000]!r}"


class Serve:
    """A server that has a snapshot when this returns."""

    def __init__(self, holdfast, *options, listen="127.0.0.1:0", token=None, refresh=REFRESH, **how):
        self.token = token
        self.process = holdfast.start("serve", "--listen", listen, "--refresh", refresh, *options, **how)
        line = self.process.await_line("listening on ", timeout=30)
        self.url = line.split()[-1]
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port

    def request(self, method, path, headers=None, body=None, bearer=True):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        headers = dict(headers or {})
        if self.token and bearer and "Authorization" not in headers and "Cookie" not in headers:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **how):
        return self.request("GET", path, **how)

    def post(self, path, fields, headers=None, **how):
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.request("POST", path, headers={**kind, **(headers or {})},
                            body=urllib.parse.urlencode(fields), **how)

    def api(self, what, **parameters):
        """A list of the API; it must be there."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        answer = self.get(f"/api/v1/{what}{query}")
        assert answer.status == 200, answer
        return answer.json

    def lock(self, label):
        return next((lock for lock in self.api("locks", limit=1000)["data"] if lock["label"] == label), None)

    @property
    def number(self):
        return self.api("tables")["snapshot"]["number"]

    def await_refresh(self, times=2):
        """Until whatever happened before the call is in the snapshot."""
        wanted = self.number + times
        eventually(lambda: self.number >= wanted, 20, "the next snapshots")

    def raw(self, data, timeout=20, shut=True):
        """Everything that comes back for these bytes until the server closes."""
        with contextlib.closing(socket.create_connection((self.host, self.port), timeout)) as connection:
            with contextlib.suppress(OSError):  # it may have closed by now
                connection.sendall(data)
                if shut:
                    connection.shutdown(socket.SHUT_WR)
            pieces = []
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    pieces.append(piece)
            return b"".join(pieces)

    def assert_alive(self):
        assert self.process.process.poll() is None, self.process.describe()
        assert self.get("/ready").status == 200

    def end(self):
        self.process.end()

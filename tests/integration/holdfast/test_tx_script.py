"""The scripts of `holdfast tx` are split as psql splits them."""

import itertools
import json
import os
import random
import re
import socketserver
import struct
import subprocess
import threading

import pytest

from splitting import split

# Pieces that are hard to tell apart; M is a word of its own each time, by which statements are known.
# (An E'...' that goes on in the next line is one to the server and to us, and two to psql, which reads line by line.)
PIECES = [";", ";", ";", " ", "\n", "M", "M", "'M;'", "'it''s M;'", '"M;"', '"M"";"', "e'\\';M'", "E'M\\\\'", "e 'M\\'",
          "$$M;$$", "$t$M;$$;$t$", "$t$ ' $t$", "a$b", "a$$M;", "$", "1", "1e", "n'M;'", "b'1;'", "u&'M;'", "U&\"M;\"",
          "-- ; ' \n", "--;\r", "/* ; ' */", "/* /* ; */ ; */", "(", "(M;", ")", "[", "]", "-", "*", "/", "+--;\n", "::",
          "'M'\n'M;'", "'M' -- x\n 'M\\'", "`", ",", "é$$M;$$", "_$$", "$é$M;$é$"]
SCRIPTS = 80


def scripts():
    choose, count = random.Random(4), itertools.count()
    for _ in range(SCRIPTS):
        text = "".join(choose.choice(PIECES) for _ in range(choose.randrange(2, 14)))
        yield re.sub("M", lambda _: f" m{next(count)} " if choose.random() < 0.3 else f"m{next(count)}", text)


def words(statements):
    """By which words each is known; comments have none."""
    return [found for found in (re.findall(r"m\d+", one) for one in statements) if found]


def read(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


class Recorder(socketserver.StreamRequestHandler):
    """A server that answers every statement with nothing, and writes it down."""

    def send(self, kind, body):
        self.wfile.write(kind + struct.pack("!i", len(body) + 4) + body)

    def handle(self):
        read(self.rfile, struct.unpack("!i", read(self.rfile, 4))[0] - 4)  # the startup message
        self.send(b"R", struct.pack("!i", 0))
        for name, value in (("server_version", "15.0"), ("client_encoding", "UTF8"),
                            ("standard_conforming_strings", "on")):
            self.send(b"S", f"{name}\0{value}\0".encode())
        self.send(b"Z", b"I")
        while (kind := self.rfile.read(1)) == b"Q":
            text = read(self.rfile, struct.unpack("!i", read(self.rfile, 4))[0] - 4)
            self.server.seen.append(text.rstrip(b"\0").decode())
            self.send(b"I", b"")
            self.send(b"Z", b"I")


@pytest.fixture
def psql():
    """psql(text): the statements that psql sends."""
    with socketserver.TCPServer(("127.0.0.1", 0), Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def run(text):
            server.seen = []
            subprocess.run(["psql", "-X", "-q", "-f", "-",
                            f"host=127.0.0.1 port={server.server_address[1]} user=u dbname=d sslmode=disable gssencmode=disable"],
                           input=text.encode(), capture_output=True, check=True, timeout=60,
                           env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
            return server.seen

        yield run
        server.shutdown()


def test_a_script_has_the_statements_that_psql_sends(psql):
    compared = 0
    for text, answer in zip(texts := list(scripts()), split("sql", texts)):
        if answer != "null":  # something is not closed
            assert words(json.loads(answer)) == words(psql(text)), text
            compared += 1
    assert compared > SCRIPTS / 3

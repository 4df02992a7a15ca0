"""Requests that no client of good will sends: never a crash, always a proper status."""

import contextlib
import http.client
import json
import random
import re
import signal
import socket
import string

import pytest

from awaiting import eventually
from serve import Serve

SEEDS = range(4)
PROPER = {200, 204, 303, 304, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 421, 422, 431, 500, 501, 503, 505}


@pytest.fixture
def server(holdfast):
    started = Serve(holdfast)
    yield started
    started.assert_alive()
    started.process.signal(signal.SIGTERM)
    assert started.process.wait(20) == 0, "it has nothing left to clean up"


def statuses(answer):
    return [int(code) for code in re.findall(rb"HTTP/1\.[01] (\d{3}) ", answer)]


def host(server):
    return f"Host: 127.0.0.1:{server.port}\r\n".encode()


def ask(server, line, headers=b"", body=b""):
    """The status of one request that is sent as it stands; None: the connection was closed."""
    answer = server.raw(line + b"\r\n" + host(server) + headers + b"Connection: close\r\n\r\n" + body)
    codes = statuses(answer)
    assert all(code in PROPER for code in codes), (line, answer[:500])
    return codes[0] if codes else None


# --- known troubles -----------------------------------------------------------------------------------


@pytest.mark.parametrize("line, status", [
    (b"GET / HTTP/1.1", 200), (b"GET //x HTTP/1.1", 404), (b"GET /../etc/passwd HTTP/1.1", 404),
    (b"GET /%2e%2e/ HTTP/1.1", 404), (b"GET /assets/../token HTTP/1.1", 404),
    (b"GET /% HTTP/1.1", 400), (b"GET /%4 HTTP/1.1", 400), (b"GET /%zz HTTP/1.1", 400),
    (b"GET /%00 HTTP/1.1", 400), (b"GET /api/v1/locks?q=%00 HTTP/1.1", 400),
    (b"GET /%ff HTTP/1.1", 400), (b"GET /%c0%af HTTP/1.1", 400), (b"GET /%ed%a0%80 HTTP/1.1", 400),
    (b"GET /api/v1/locks?q=%ff HTTP/1.1", 400), (b"GET /api/v1/locks?q=%0a HTTP/1.1", 400),
    (b"GET /api/v1/locks?q=a&q=b HTTP/1.1", 400), (b"GET /api/v1/locks?limit=1e3 HTTP/1.1", 400),
    (b"GET /api/v1/locks?limit=99999999999999999999 HTTP/1.1", 400),
    (b"GET /api/v1/locks?offset=-1 HTTP/1.1", 400), (b"GET /api/v1/events?since=yesterday HTTP/1.1", 400),
    (b"GET /api/v1/locks?q=%F0%9F%92%A9 HTTP/1.1", 200), (b"GET /api/v1/locks?q= HTTP/1.1", 200),
    (b"GET /api/v1/locks? HTTP/1.1", 200), (b"GET /api/v1/locks?&& HTTP/1.1", 200),
    (b"GET /api/v1/locks/ HTTP/1.1", 404), (b"GET /API/v1/locks HTTP/1.1", 404),
    (b"GET http://127.0.0.1/health HTTP/1.1", 200), (b"OPTIONS * HTTP/1.1", 204), (b"GET * HTTP/1.1", 404),
    (b"PUT / HTTP/1.1", 405), (b"PATCH /api/v1/locks HTTP/1.1", 405), (b"TRACE / HTTP/1.1", 405),
    (b"BREW / HTTP/1.1", 501), (b"get / HTTP/1.1", 501), (b"POST / HTTP/1.1", 405),
    (b"POST /terminate HTTP/1.1", 415), (b"GET /terminate HTTP/1.1", 405),
])
def test_a_request_gets_the_status_that_fits(server, line, status):
    assert ask(server, line) == status


def test_what_is_too_long_is_refused(server):
    assert ask(server, b"GET /" + b"a" * 5000 + b" HTTP/1.1") == 414
    assert ask(server, b"GET /" + b"a" * 100000 + b" HTTP/1.1") == 414
    assert ask(server, b"GET / HTTP/1.1", b"X-Long: " + b"a" * 20500 + b"\r\n") == 431
    assert ask(server, b"GET / HTTP/1.1", b"X-Long: " + b"a" * 200000 + b"\r\n") in (431, None)
    assert ask(server, b"GET / HTTP/1.1", b"".join(b"X-%d: y\r\n" % i for i in range(3000))) in (431, 413, None)
    form = b"Content-Type: application/x-www-form-urlencoded\r\n"
    assert ask(server, b"POST /login HTTP/1.1", form + b"Content-Length: 5000\r\n", b"a" * 5000) == 413
    assert ask(server, b"POST /login HTTP/1.1", form + b"Content-Length: 99999999999999\r\n") == 413
    assert ask(server, b"POST /login HTTP/1.1", form + b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n") == 411
    many = b"&".join(b"a%d=1" % i for i in range(30))
    assert ask(server, b"GET /api/v1/locks?" + many + b" HTTP/1.1") == 400


def test_a_body_is_never_taken_for_the_next_request(server):
    inner = b"GET /health HTTP/1.1\r\n" + host(server) + b"\r\n"
    for framing in [b"Content-Length: %d\r\n" % len(inner), b"Transfer-Encoding: chunked\r\n",
                    b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n" % len(inner),
                    b"Content-Length: 5000\r\n", b"Transfer-Encoding: \x0bchunked\r\n",
                    b"Content-Length : %d\r\n" % len(inner),
                    b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(inner)]:
        answer = server.raw(b"GET / HTTP/1.1\r\n" + host(server) + framing + b"\r\n" + inner)
        assert len(statuses(answer)) <= 1, (framing, answer[:300])


@pytest.mark.parametrize("headers", [
    b"", b"Host: 127.0.0.1\r\nHost: evil.example\r\n", b"Host : 127.0.0.1\r\n", b"Host: 127.0.0.1\r\nX Y: z\r\n",
    b"Host: 127.0.0.1\r\nX\x80: y\r\n",
])
def test_headers_that_a_proxy_could_read_in_another_way_are_refused_once_and_safely(server, headers):
    answer = server.raw(b"GET /health HTTP/1.1\r\n" + headers + b"\r\n")
    assert statuses(answer) == [400]
    assert b"Content-Security-Policy" in answer and b"Connection: close" in answer


def test_pipelined_requests_are_answered_in_their_order(server):
    lines = [b"/health", b"/nowhere", b"/ready", b"/api/v1/locks?limit=0"]
    answer = server.raw(b"".join(b"GET " + line + b" HTTP/1.1\r\n" + host(server) + b"\r\n" for line in lines))
    assert statuses(answer) == [200, 404, 200, 400]


# --- seeded noise -------------------------------------------------------------------------------------


def noisy_path(dice):
    pieces = ["/", "/api/v1/locks", "/api/v1/", "events", "?", "&", "=", "%", "%00", "%ff", "%25", "limit", "q", "..",
              "+", "#", ";", "\\", "'", '"', "<script>", "ü", "\u202e", "9" * 30, "-1", "metrics", "//", "{network}"]
    return "".join(dice.choice(pieces) for _ in range(dice.randrange(1, 12))).encode()


def noisy_request(dice, server):
    method = dice.choice([b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"get", b"X" * dice.randrange(1, 40),
                          b"", b"\x00", b"G\xffT"])
    version = dice.choice([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b"http/1.1", b"", b"HTTP/1.1 x"])
    headers = [host(server)] if dice.random() < 0.8 else []
    for _ in range(dice.randrange(0, 6)):
        name = dice.choice([b"Accept", b"If-None-Match", b"Cookie", b"Authorization", b"Content-Length",
                            b"Transfer-Encoding", b"Expect", b"Host", b"Origin", b"X\x00Y", b" X", b"X ", b""])
        value = dice.choice([b"", b"*", b"a=b", b"Bearer x", b"-1", b"5", b"chunked", b"100-continue", b"\xff\xfe",
                             b"application/json", b"a" * 3000, b"text/html;q=\x01", b"\t"])
        headers.append(name + dice.choice([b": ", b":", b" : ", b""]) + value + dice.choice([b"\r\n", b"\n"]))
    end = dice.choice([b"\r\n", b"\n", b"\r\n\r\n", b""])
    body = bytes(dice.randrange(256) for _ in range(dice.randrange(0, 60)))
    return method + b" " + noisy_path(dice) + b" " + version + b"\r\n" + b"".join(headers) + end + body


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_is_answered_properly(server, seed):
    dice = random.Random(seed)
    for _ in range(150):
        request = noisy_request(dice, server)
        answer = server.raw(request)
        codes = statuses(answer)
        assert all(code in PROPER for code in codes), (request, answer[:300])
        assert answer == b"" or answer.startswith(b"HTTP/1."), (request, answer[:300])
        assert 500 not in codes, (request, answer[:500])


@pytest.mark.parametrize("seed", SEEDS)
def test_pipelined_noise_is_answered_properly(server, seed):
    dice = random.Random(1000 + seed)
    for _ in range(30):
        burst = b"".join(noisy_request(dice, server) for _ in range(dice.randrange(2, 12)))
        answer = server.raw(burst)
        assert all(code in PROPER - {500} for code in statuses(answer)), (burst, answer[:500])


@pytest.mark.parametrize("seed", SEEDS)
def test_parameters_of_every_kind_are_refused_or_answered(server, seed):
    dice = random.Random(2000 + seed)
    described = server.get("/api/v1/openapi.json").json["paths"]
    values = ["", "0", "-1", "1", "2147483648", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
              "NaN", "1.5", "held", "a" * 600, "%F0%9F%92%A9", "%27%3B--", "2024-06-01T12:00:00Z",
              "2024-02-31T25:61:61+99:99", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "+5", "%2B05", "b:0", "p:1:2"]
    for _ in range(150):
        path, methods = dice.choice(list(described.items()))
        names = [p["name"] for p in methods.get("get", {}).get("parameters", []) if p["in"] == "query"]
        url = path.replace("{network}", dice.choice(["testnet", "x", "%F0%9F%92%A9"])).replace("{file}", "x")
        query = "&".join(f"{name}={dice.choice(values)}" for name in names if dice.random() < 0.5)
        answer = server.get(f"{url}?{query}")
        assert answer.status in {200, 303, 400, 404, 405}, (url, query, answer)


def test_forms_of_every_kind_are_refused(server):
    dice = random.Random(7)
    for _ in range(100):
        body = bytes(dice.choice(b"abc=&%+01\x00\xff\r\n") for _ in range(dice.randrange(0, 200)))
        answer = server.request("POST", dice.choice(["/login", "/logout", "/terminate"]), body=body,
                                headers={"Content-Type": "application/x-www-form-urlencoded"})
        assert answer.status in {400, 403}, (body, answer)


def test_bytes_of_any_kind_do_no_harm(server):
    dice = random.Random(99)
    for size in [1, 2, 3, 10, 100, 1000, 10000, 100000]:
        server.raw(bytes(dice.randrange(256) for _ in range(size)))
        server.raw("".join(dice.choice(string.printable) for _ in range(size)).encode() + b"\r\n\r\n")


# --- connections --------------------------------------------------------------------------------------


def test_a_thousand_idle_connections_are_no_trouble(server):
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection((server.host, server.port), 20)) for _ in range(1000)]
        for connection in idle[::50]:
            connection.sendall(b"GET /health HTTP/1.1\r\n" + host(server) + b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert server.get("/api/v1/locks").status == 200
        for connection in idle[::97]:
            connection.sendall(b"GET /ready HTTP/1.1\r\n" + host(server) + b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_viewers_do_not_take_the_files_that_the_store_needs(own_pg, own_db, holdfast):
    server = Serve(holdfast.at(own_db.url()), prefix=("prlimit", "--nofile=128:128"))
    with contextlib.ExitStack() as stack:
        first = http.client.HTTPConnection(server.host, server.port, timeout=20)
        stack.callback(first.close)

        def health():
            first.request("GET", "/health")
            return json.load(first.getresponse())

        assert health()["status"] == "ok"
        own_pg.stop()
        eventually(lambda: health()["status"] == "failing", 20)
        for _ in range(300):
            stack.enter_context(socket.create_connection((server.host, server.port), 20))
        own_pg.start()
        eventually(lambda: health()["status"] == "ok", 40, "the store is read again")
    eventually(lambda: server.get("/ready").status == 200, 20, "others are served again")


def test_connections_that_are_dropped_in_the_middle_leave_nothing(server):
    dice = random.Random(5)
    request = b"GET /api/v1/locks?limit=1000 HTTP/1.1\r\n" + host(server) + b"\r\n"
    for _ in range(300):
        connection = socket.create_connection((server.host, server.port), 20)
        connection.sendall(request[:dice.randrange(0, len(request) + 1)])
        if dice.random() < 0.5:  # with a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        connection.close()


def test_a_client_that_dribbles_is_cut(server):
    connection = socket.create_connection((server.host, server.port), 60)
    connection.sendall(b"GET / HTTP/1.1\r\n" + host(server) + b"X: ")
    connection.settimeout(0.5)
    for _ in range(120):  # a byte each half second never lets the connection be idle
        try:
            connection.sendall(b"a")
            answer = connection.recv(100)
        except socket.timeout:
            continue
        except (BrokenPipeError, ConnectionResetError):
            return
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408"), answer
        return
    raise AssertionError("the client was served for a minute")

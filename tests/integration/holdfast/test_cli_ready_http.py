"""`holdfast run --ready-http`: a probe is told whether the lock is held, whatever else connects to the port."""

import contextlib
import http.client
import signal
import socket

import pytest

import hf
import servers
from awaiting import eventually
from cli import EXIT_CONFIG, EXIT_USAGE


@pytest.fixture(name="run")
def run_fixture(holdfast, db):
    hf.install(db.url())
    command = holdfast.at(db.url())
    command.database = db
    yield command
    holdfast.end_all()


@pytest.fixture(name="port")
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def ask(port, method="GET", path="/ready", host="127.0.0.1"):
    """The answer of a real client, or None where nobody listens."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        return answer
    except ConnectionRefusedError:
        return None
    finally:
        connection.close()


def status(port, **how):
    answer = ask(port, **how)
    return answer and answer.status


def say(port, *pieces):
    """What comes back for these bytes, until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while block := client.recv(4096):
                said += block
        return said


def test_probe_is_told_of_standing_by_holding_losing_and_holding_again(run, port, tmp_path):
    blocker = run.hold("job")
    script = f'trap "until [ -e {tmp_path}/seen ]; do sleep 0.02; done; exit" TERM; echo in; while :; do sleep 0.02; done'
    job = run.start("run", "--leader", "-k", "1m", "--ready-http", port, "job", "--", "sh", "-c", script)
    job.await_line("waiting", "err")
    assert status(port) == 503
    blocker.signal(signal.SIGTERM)
    job.await_line("in")
    assert status(port) == 200
    pid, = run.database.holders(hf.derive("job"))
    run.database.server.terminate(pid)
    eventually(lambda: status(port) == 503)
    (tmp_path / "seen").touch()
    job.await_line("in")
    assert status(port) == 200
    job.signal(signal.SIGTERM)
    job.wait()
    assert ask(port) is None


@pytest.mark.parametrize("label", ["job", "leased"])
def test_probe_is_told_of_a_server_that_is_silent(holdfast, db, port, label):
    """The main thread learns of it no sooner."""
    hf.install(db.url())
    options = ["--lease", "3s"] if label == "leased" else ["--ping", "200ms", "--ping-deadline", "500ms"]
    with servers.Proxy(db.server.port) as proxy:
        run = holdfast.at(db.url(port=proxy.port))
        job = run.start("run", *options, "-k", "300ms", "--ready-http", port, label, "--", "sh", "-c",
                        "trap '' TERM; echo in; while :; do sleep 0.02; done")
        job.await_line("in")
        assert status(port) == 200
        proxy.blackhole()
        eventually(lambda: status(port) in (503, None))
        assert job.wait(30) == 79
        proxy.heal()


def test_methods_paths_and_versions(run, port):
    run.hold("job", "--ready-http", port)
    for path in ("/", "/ready", "/healthz?verbose=1"):
        assert status(port, path=path) == 200
    head = ask(port, "HEAD")
    assert (head.status, head.text) == (200, "") and int(head.headers["Content-Length"]) > 0
    refused = ask(port, "POST")
    assert refused.status == 405 and refused.headers["Allow"] == "GET, HEAD"
    assert ask(port).headers["Cache-Control"] == "no-store"
    assert say(port, b"GET / HTTP/1.0\n\n").startswith(b"HTTP/1.1 200 ")
    assert say(port, b"GET /", b"ready HTTP/1.1\r\nHost: x\r", b"\n\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("garbage, answer", [
    (b"\r\n\r\n", b"400"), (b"GET / HTTP/2.0\r\n\r\n", b"400"), (b"GET /\r\n\r\n", b"400"), (b"GET\r\n\r\n", b"400"),
    (b"GET  HTTP/1.1\r\n\r\n", b"400"), (b" / HTTP/1.1\r\n\r\n", b"400"), (b"GET x HTTP/1.1\r\n\r\n", b"400"),
    (b"\x16\x03\x01\x02\x00\x01\x00\n\n", b"400"), (b"\0" * 10 + b"\n\n", b"400"), (b"GET / HTTP/1.1", b""), (b"", b""),
    (b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 5000 + b"\r\n\r\n", b"431"), (b"z" * 60000, b"431")])
def test_garbage_is_refused_and_the_next_one_is_served(run, port, garbage, answer):
    run.hold("job", "--ready-http", port)
    said = say(port, garbage)
    assert said.startswith(b"HTTP/1.1 " + answer + b" ") if answer else said == b""
    assert status(port) == 200


def test_slow_clients_keep_nobody_waiting_and_are_sent_away(run, port):
    holder = run.hold("job", "--ready-http", port)
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(60)]
        for client in slow:
            client.sendall(b"GET / HT")
        assert status(port) == 200
        for client in slow:
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(10) == b""
        assert status(port) == 200
    assert holder.process.poll() is None


def test_others_reach_it_only_where_they_are_meant_to(run, port):
    holder = run.hold("job", "--ready-http", port)
    assert status(port) == 200 and ask(port, host="127.0.0.2") is None
    holder.end()
    holder = run.hold("other", "--ready-http", f"0.0.0.0:{port}")
    assert status(port, host="127.0.0.2") == 200
    holder.end()
    run.hold("third", "--ready-http", f"[::1]:{port}")
    assert status(port, host="::1") == 200 and ask(port) is None


def test_port_that_is_taken_is_one_clear_error_and_nothing_runs(run, port, tmp_path):
    run.hold("job", "--ready-http", port)
    done = run("run", "--ready-http", port, "other", "--", "touch", tmp_path / "trace")
    assert done.code == EXIT_CONFIG and done.err.count("error:") == 1, done
    assert f"--ready-http cannot listen on {port}" in done.err and "another port" in done.err
    assert not (tmp_path / "trace").exists() and not run.database.holders(hf.derive("other"))
    assert run("run", "--ready-http", "192.0.2.1:8080", "other", "--", "true").code == EXIT_CONFIG


@pytest.mark.parametrize("wrong", ["", "0", "65536", "http", ":8080", "localhost:8080", "::1:8080", "[::1]", "127.0.0.1:", "8080x",
                                   "[]:8080", "a" * 300 + ":1"])
def test_what_is_no_port_is_refused(run, wrong):
    assert run("run", f"--ready-http={wrong}", "job", "--", "true").code == EXIT_USAGE


def test_command_does_not_inherit_the_port(run, port):
    done = run("run", "--ready-http", port, "job", "--", "sh", "-c", "ls -l /proc/self/fd | grep -e socket: -e eventfd")
    assert (done.code, done.out) == (1, "")

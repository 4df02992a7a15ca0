"""Servers of the tests' own: on this host, each client in a thread."""

import contextlib
import socketserver
import threading


def clients_of(listener):
    """Each that connects, until the listener is closed."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        yield client


@contextlib.contextmanager
def serving(handler, port=0):
    """A server whose clients the handler class of socketserver or http.server serves: gives its port."""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = allow_reuse_address = True

    with Server(("127.0.0.1", port), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()

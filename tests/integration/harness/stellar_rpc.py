"""
A Stellar RPC server of the tests' own: made-up ledgers, the protocol as a real server speaks it, and
faults on demand.

    with StellarRpc() as rpc:
        rpc.close_ledgers(10, transactions=3)
        rpc.fault("getLedgers", Http(429, retry_after=1), Cut(), count=1)
        … rpc.url …
        assert rpc.asked("getLedgers") == [{"startLedger": 2, …}]

Faults of a method are used up one per request, in the order in which they were given.
"""

import gzip
import hashlib
import http.server
import json
import re
import ssl
import threading
import urllib.parse

PASSPHRASES = {
    "pubnet": "Public Global Stellar Network ; September 2015",
    "testnet": "Test SDF Network ; September 2015",
    "futurenet": "Test SDF Future Network ; October 2022",
}

CLOSE_TIME = 1_700_000_000  # of ledger 0; one follows every 5 s
METHODS = ["getNetwork", "getHealth", "getLedgers", "getTransactions"]
GENESIS = 2  # the first ledger that a server serves
MOST = 200


def toid(ledger, order=0, operation=0):
    return ledger << 32 | order << 12 | operation


# --- faults -----------------------------------------------------------------------------------------


class Http:
    """Another status than 200."""

    def __init__(self, status, body=b"busy", retry_after=None, location=None):
        self.status, self.body, self.retry_after, self.location = status, body, retry_after, location


class Error:
    """An error of JSON-RPC."""

    def __init__(self, code, message="a made-up error"):
        self.code, self.message = code, message


class Body:
    """These bytes instead of the answer; length: what Content-Length claims."""

    def __init__(self, body, length=None):
        self.body, self.length = body, length


class Cut:
    """A part of the answer, then the connection ends."""

    def __init__(self, part=0.5):
        self.part = part


class Drop:
    """The connection ends before the answer."""


class Stall:
    """A part of the answer, then nothing until release() or the end of the server."""

    def __init__(self, part=0.5):
        self.part = part
        self.reached = threading.Event()
        self.released = threading.Event()

    def release(self):
        self.released.set()


class Change:
    """The answer after a function has changed its result; the function may return another one."""

    def __init__(self, change):
        self.change = change


class Fine:
    """No fault: to let a request pass before one."""


# --- ledgers ----------------------------------------------------------------------------------------


def digest(*parts):
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()


class Transaction:
    def __init__(self, chain, ledger, order, padding=0):
        self.ledger, self.order = ledger, order
        self.hash = digest(chain, "transaction", ledger, order)
        self.failed = order % 7 == 3
        self.fee = 100 * order
        self.envelope = {"tx": {"tx": {"fee": self.fee, "seq_num": str(toid(ledger, order)),
                                       "memo": {"text": "m" * padding} if padding else "none"},
                                "signatures": []}}
        self.meta = {"v4": {"ext": "v0", "operations": [], "soroban_meta": None}}

    def item(self, server):
        result = {"fee_charged": server.number(self.fee, as_text=True),
                  "result": {"tx_failed" if self.failed else "tx_success": []}, "ext": "v0"}
        item = {"status": "FAILED" if self.failed else "SUCCESS", "txHash": self.hash,
                "applicationOrder": self.order, "feeBump": False}
        if server.xdr_only:
            item.update(envelopeXdr="AAAA", resultXdr="AAAA", resultMetaXdr="AAAA")
        elif server.swaps_envelope:
            item.update(envelopeJson=self.meta, resultJson=result, resultMetaJson=self.envelope)
        else:
            item.update(envelopeJson=self.envelope, resultJson=result, resultMetaJson=self.meta)
        item.update(events={}, ledger=self.ledger, createdAt=close_time(self.ledger))
        return item


class Ledger:
    def __init__(self, chain, sequence, previous_hash, transactions, padding):
        self.sequence, self.previous_hash = sequence, previous_hash
        self.hash = digest(chain, "ledger", sequence)
        self.transactions = [Transaction(chain, sequence, order + 1, padding)
                             for order in range(transactions)]

    def item(self, server):
        item = {"hash": self.hash, "sequence": self.sequence,
                "ledgerCloseTime": server.number(close_time(self.sequence) + server.later, as_text=True)}
        if server.xdr_only:
            return {**item, "headerXdr": "AAAA", "metadataXdr": "AAAA"}
        header = {"hash": self.hash,
                  "header": {"previous_ledger_hash": self.previous_hash, "ledger_seq": self.sequence,
                             "base_fee": 100, "ext": "v0"},
                  "ext": "v0"}
        item.update(headerXdr="", headerJson=header, metadataXdr="")
        if server.has_meta:
            processing = [{"result": {"transaction_hash": each.hash}, "fee_processing": []}
                          for each in self.transactions]
            item["metadataJson"] = {"v1": {"ext": "v0", "ledger_header": header,
                                           "tx_processing": processing, "scp_info": []}}
        return item


def close_time(sequence):
    return CLOSE_TIME + 5 * sequence


# --- the server -------------------------------------------------------------------------------------


class RpcError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class StellarRpc:
    def __init__(self, network="testnet", tls=None):
        self.passphrase = PASSPHRASES.get(network, network)
        self.guard = threading.RLock()
        self.chain = "genesis"
        self.later = 0  # seconds that ledgers close later than those of the first chain
        self.ledgers = []
        self.oldest = GENESIS
        self.requests = []  # (method, params) as they came
        self.headers = []  # of each request
        self.faults = {}  # by method
        self.most = MOST
        # How the server speaks: quirks of versions and of what stands before it.
        self.text_numbers = None  # 64-bit integers: None as v23 has them, True all, False none
        self.swaps_envelope = False
        self.has_meta = True
        self.xdr_only = False
        self.compresses = False
        self.unhealthy = None  # the message
        self.latest_of = {}  # by method: a server behind the same address that has less than this one
        self.connections = 0
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), make_handler(self))
        self._server.daemon_threads = True
        self.closing = threading.Event()
        self.tls = tls
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if not self.closing.is_set():
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()

    # --- what a test says of it

    @property
    def port(self):
        return self._server.server_address[1]

    def url_with(self, *, user=None, path="", host="127.0.0.1", **options):
        """The source; options go behind the #."""
        scheme = "https" if self.tls else "http"
        userinfo = f"{user}@" if user else ""
        query = "&".join(f"{name}={urllib.parse.quote(str(value))}" for name, value in options.items())
        return f"rpc+{scheme}://{userinfo}{host}:{self.port}{path}" + (f"#{query}" if query else "")

    @property
    def url(self):
        """Looks for a new ledger every 50 ms."""
        return self.url_with(poll="50ms")

    @property
    def latest(self):
        with self.guard:
            return self.ledgers[-1].sequence if self.ledgers else 0

    def ledger(self, sequence):
        with self.guard:
            return self.ledgers[sequence - self.ledgers[0].sequence]

    def close_ledgers(self, count=1, transactions=2, padding=0):
        """padding: bytes that each transaction has more."""
        with self.guard:
            for _ in range(count):
                self.ledgers.append(Ledger(
                    self.chain, self.latest + 1 if self.ledgers else GENESIS,
                    self.ledgers[-1].hash if self.ledgers else "0" * 64, transactions, padding))

    def forget_before(self, sequence):
        with self.guard:
            self.oldest = sequence

    def reset(self, chain="reset", ledgers=0, later=0):
        """Begins a new chain at genesis under the same passphrase, as testnet does."""
        with self.guard:
            self.chain, self.ledgers, self.oldest, self.later = chain, [], GENESIS, later
            self.close_ledgers(ledgers)

    def fault(self, method, *faults, count=1):
        with self.guard:
            self.faults.setdefault(method, []).extend(faults * count)

    def asked(self, method):
        with self.guard:
            return [params for each, params in self.requests if each == method]

    # --- the protocol

    def number(self, value, as_text=False):
        """as_text: what the server of today gives as a string."""
        return str(value) if (as_text if self.text_numbers is None else self.text_numbers) else value

    def next_fault(self, method):
        with self.guard:
            waiting = self.faults.get(method)
            return waiting.pop(0) if waiting else Fine()

    def answer(self, method, params):
        handlers = {"getHealth": self.get_health, "getNetwork": self.get_network,
                    "getLedgers": self.get_ledgers, "getTransactions": self.get_transactions}
        if method not in handlers:
            raise RpcError(-32601, "method not found")
        if method in ("getHealth", "getNetwork") and params is not None:
            raise RpcError(-32602, "no parameters accepted")
        with self.guard:
            return handlers[method](params)

    def get_network(self, _params):
        return {"passphrase": self.passphrase, "protocolVersion": 23}

    def get_health(self, _params):
        if self.unhealthy:
            raise RpcError(-32603, self.unhealthy)
        latest = self.window("getHealth")
        return {"status": "healthy", "latestLedger": self.number(latest),
                "latestLedgerCloseTime": self.number(close_time(latest), as_text=True),
                "oldestLedger": self.number(self.oldest),
                "oldestLedgerCloseTime": self.number(close_time(self.oldest), as_text=True),
                "ledgerRetentionWindow": self.number(latest - self.oldest + 1)}

    def window(self, method):
        if not self.ledgers:
            raise RpcError(-32603, "DB is empty")
        return min(self.latest, self.latest_of.get(method, self.latest))

    def check_page(self, method, params):
        """The start ledger or None, the cursor or None, and the limit."""
        latest = self.window(method)
        start, pagination = params.get("startLedger", 0), params.get("pagination", {})
        cursor, limit = pagination.get("cursor"), pagination.get("limit", 50)
        if params.get("xdrFormat") != "json":
            raise RpcError(-32602, f"made for json, not {params.get('xdrFormat')}")
        if limit > self.most:
            raise RpcError(-32600, f"limit must not exceed {self.most}")
        if cursor and start:
            raise RpcError(-32600, "startLedger and cursor cannot both be set")
        if not cursor and not self.oldest <= start <= latest:
            raise RpcError(-32600, f"start ledger ({start}) must be between the oldest ledger: "
                           f"{self.oldest} and the latest ledger: {latest} for this rpc instance")
        return start, cursor, limit, latest

    def get_ledgers(self, params):
        start, cursor, limit, latest = self.check_page("getLedgers", params)
        if cursor is not None:
            raise RpcError(-32602, f"cursor ('{cursor}') must be between the oldest ledger: {self.oldest} "
                           f"and the latest ledger: {latest} for this rpc instance")
        chosen = [self.ledger(n) for n in range(start, min(start + limit, latest + 1))]
        return {"ledgers": [each.item(self) for each in chosen],
                "latestLedger": self.number(latest),
                "latestLedgerCloseTime": self.number(close_time(latest)),
                "oldestLedger": self.number(self.oldest),
                "oldestLedgerCloseTime": self.number(close_time(self.oldest)),
                "cursor": str(start + len(chosen) - 1)}

    def get_transactions(self, params):
        start, cursor, limit, latest = self.check_page("getTransactions", params)
        first = 1
        if cursor:
            start, first = int(cursor) >> 32, (int(cursor) >> 12 & 0xFFFFF) + 1
        chosen, place = [], (0, 0)
        if start <= latest and not self.ledgers[0].sequence <= start:
            raise RpcError(-32602, f"database does not contain metadata for ledger: {start}")
        for sequence in range(start, latest + 1):
            place = (sequence, 0)
            for each in self.ledger(sequence).transactions[first - 1 if sequence == start else 0:]:
                chosen.append(each)
                place = (sequence, each.order)
                if len(chosen) == limit:
                    break
            if len(chosen) == limit:
                break
        return {"transactions": [each.item(self) for each in chosen],
                "latestLedger": self.number(latest),
                "latestLedgerCloseTimestamp": self.number(close_time(latest)),
                "oldestLedger": self.number(self.oldest),
                "oldestLedgerCloseTimestamp": self.number(close_time(self.oldest)),
                "cursor": str(toid(*place, 1)) if place[0] else "0"}


# --- HTTP -------------------------------------------------------------------------------------------


def make_handler(rpc):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self):
            super().setup()
            with rpc.guard:
                rpc.connections += 1

        def log_message(self, *_):
            pass

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["Content-Type"] == "application/json"
            with rpc.guard:
                rpc.requests.append((request["method"], request.get("params")))
                rpc.headers.append(dict(self.headers))
            fault = rpc.next_fault(request["method"])
            if isinstance(fault, Drop):
                self.close_connection = True
            elif isinstance(fault, Http):
                self.send(fault.status, fault.body, fault)
            elif isinstance(fault, Body):
                self.send(200, fault.body, length=fault.length)
            elif isinstance(fault, (Cut, Stall)):
                self.send_part(encode(answer_to(rpc, request)), fault)
            else:
                self.send(200, encode(answer_to(rpc, request, fault)))

        def send(self, status, body, fault=None, length=None):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if getattr(fault, "retry_after", None) is not None:
                self.send_header("Retry-After", str(fault.retry_after))
            if getattr(fault, "location", None) is not None:
                self.send_header("Location", fault.location)
            if rpc.compresses and "gzip" in self.headers.get("Accept-Encoding", ""):
                body = gzip.compress(body)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.put(body)

        def send_part(self, body, fault):
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.put(body[:int(len(body) * fault.part)])
            if isinstance(fault, Stall):
                self.wfile.flush()
                fault.reached.set()
                while not fault.released.wait(0.05) and not rpc.closing.is_set():
                    pass

        def put(self, body):
            try:
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client has seen enough

    return Handler


def encode(answer):
    # As Go does it: no spaces, & < > escaped.
    text = json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    return re.sub("[&<>]", lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def answer_to(rpc, request, fault=None):
    head = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        if isinstance(fault, Error):
            raise RpcError(fault.code, fault.message)
        result = rpc.answer(request["method"], request.get("params"))
    except RpcError as error:
        return {**head, "error": {"code": error.code, "message": str(error)}}
    if isinstance(fault, Change):
        changed = fault.change(result)
        result = result if changed is None else changed
    return {**head, "result": result}

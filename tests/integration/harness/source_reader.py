"""
A source, read step by step by the program read_source.

    with Reader(rpc.url) as reader:
        reader.seek(7)
        assert reader.ledger()["sequence"] == 7
"""

import contextlib
import json
import os
import subprocess
import threading

import hf
import stellar_rpc
from awaiting import Background


def program():
    return hf.built("tests/integration/read_source")


class Reader:
    def __init__(self, spec, network="testnet", **options):
        """options: line_max=…, follow=True"""
        stop_read, self._stop = os.pipe()
        arguments = ["--stop-fd", str(stop_read)]
        for name, value in options.items():
            arguments += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
        self.process = subprocess.Popen(
            [program(), spec, network, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, pass_fds=[stop_read], env={**os.environ, "no_proxy": "*"})
        os.close(stop_read)
        self.notes = []
        threading.Thread(target=self._listen, daemon=True).start()
        self.opened = self._answer()
        self.name = self.opened["name"]

    def _listen(self):
        for line in self.process.stderr:
            self.notes.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.process.stdin.close()
        code = self.process.wait(20)
        os.close(self._stop)
        assert code == (0 if self.opened["status"] == "HF_OK" else 1), "".join(self.notes)

    def _answer(self):
        line = self.process.stdout.readline()
        assert line, f"read_source is gone: {''.join(self.notes)}"
        return json.loads(line)

    def _do(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._answer()

    def stop(self):
        with contextlib.suppress(BrokenPipeError):  # it has ended by itself
            os.write(self._stop, b"!")

    def seek(self, sequence):
        return self._do(f"seek {sequence}")

    def extent(self):
        return self._do("extent")

    def next(self):
        return self._do("next")

    def begin_next(self):
        return Background(self.next)

    def ledger(self):
        """The next one, which must come at the first try."""
        answer = self.next()
        assert answer["status"] == "HF_OK", answer
        return answer["ledger"]

    def ledgers(self, count):
        return [self.ledger() for _ in range(count)]

    def fails(self, status, *words):
        """The next call fails with this status and these words."""
        answer = self.next()
        assert answer["status"] == status, answer
        for word in words:
            assert word in f"{answer['message']}\n{answer['hint']}", answer
        return answer


# --- against what the server has --------------------------------------------------------------------


def check_ledger(rpc, ledger):
    """That it is what the server has under this number, whole."""
    known = rpc.ledger(ledger["sequence"])
    assert ledger["hash"] == known.hash
    assert ledger["previous_hash"] == known.previous_hash
    assert ledger["closed_at_us"] == stellar_rpc.close_time(known.sequence) * 1_000_000
    assert [(each["order"], each["hash"], each["fee"]) for each in ledger["transactions"]] == [
        (each.order, each.hash, each.fee) for each in known.transactions]
    for given, each in zip(ledger["transactions"], known.transactions):
        assert given["status"] == ("FAILED" if each.failed else "SUCCESS")
        assert given["body"]["envelopeJson"] == each.envelope
        assert given["body"]["resultMetaJson"] == each.meta


def check_read(rpc, reader, first, last):
    for sequence in range(first, last + 1):
        ledger = reader.ledger()
        assert ledger["sequence"] == sequence
        check_ledger(rpc, ledger)

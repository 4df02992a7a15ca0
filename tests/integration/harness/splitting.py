"""Our own splitters of scripts and rows, by the program split_driver, for comparison with others'."""

import subprocess

import hf


def split(kind, texts):
    """The answers of the program, one for each text."""
    program = hf.built("tests/integration/split_driver")
    done = subprocess.run([program, kind], input=b"".join(text.encode() + b"\0" for text in texts),
                          capture_output=True, check=True, timeout=60)
    answers = done.stdout.decode().splitlines()
    assert len(answers) == len(texts)
    return answers

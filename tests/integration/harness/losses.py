"""What a lock's owner is told when it is lost."""

import threading

from awaiting import stays
from hf import Status


class Losses:
    """What on_lost was told, and when."""

    def __init__(self):
        self.errors = []
        self.first = threading.Event()

    def __call__(self, lock, error):
        self.errors.append(error)
        self.first.set()

    def assert_once(self):
        stays(lambda: len(self.errors) == 1, 0.5, "told exactly once")
        assert self.errors[0].status is Status.LOST

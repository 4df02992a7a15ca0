"""A process and its child; both say which signal they got and end, the parent last, with 7."""

import os
import signal
import sys


def on_signal(number, _):
    name = signal.Signals(number).name
    if child:
        os.waitpid(child, 0)
    os.write(1, f"{'outer' if child else 'inner'} {name}\n".encode())
    os._exit(7 if child else 0)


ready, told = os.pipe()
child = os.fork()
signal.signal(getattr(signal, sys.argv[1]), on_signal)
if child:
    os.read(ready, 1)
    print("held", flush=True)
else:
    os.write(told, b"x")
while True:
    signal.pause()

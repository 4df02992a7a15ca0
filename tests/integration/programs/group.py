"""A process and its child; both say which signal they got and end, the parent last, with 7."""

import os
import signal
import sys

# Blocked, and waited for: one that came just before a pause() would be heard only after it.
wanted = getattr(signal, sys.argv[1])
signal.signal(wanted, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, {wanted})
ready, told = os.pipe()
child = os.fork()
if child:
    os.read(ready, 1)
    print("held", flush=True)
else:
    os.write(told, b"x")
got = signal.Signals(signal.sigwait({wanted})).name
if child:
    os.waitpid(child, 0)
os.write(1, f"{'outer' if child else 'inner'} {got}\n".encode())
os._exit(7 if child else 0)

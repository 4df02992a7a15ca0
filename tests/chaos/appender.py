"""
One process that appends again and again to table t: appender.py FOLDER NAME SEED OPTIONS, with OPTIONS as JSON: url of
the store, to, and the first number that is its own. Each append has an id, under which it is repeated until the
command has said what became of it. It ends when its standard input does.
"""

import json
import random
import subprocess
import sys
import threading

import cli
import clock
from history import Log

DONE, DOUBTFUL = 0, 76
MOST_ROWS = 120  # three parts at most: a server with thousands of them takes half a minute to start
PARTS = "max_insert_block_size=50&max_block_size=50&min_insert_block_size_rows=50&min_insert_block_size_bytes=0"


def command(options, words):
    """It dies with this process."""
    return ["setpriv", "--pdeathsig", "KILL", "--", cli.program(), "append", "--url", options["url"],
            "--to", f"{options['to']}?{PARTS}", *words]


def append(options, words, rows):
    done = subprocess.run(command(options, words), input=rows, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr.decode(errors="replace").strip()


def main():
    folder, name, seed, options = sys.argv[1:]
    clock.mend_sleep()
    options, log, chance = json.loads(options), Log(folder, name), random.Random(f"{seed} {name}")
    stopping = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stopping.set()), daemon=True).start()
    number = options["first"]
    while not stopping.is_set():
        number += 1
        count, direct = chance.randrange(1, MOST_ROWS), chance.random() < 0.2
        rows = "".join(f'{{"append":{number},"n":{n}}}\n' for n in range(count)).encode()
        log.add("ask", n=number, op="direct" if direct else "append", labels=["t"], wait=-1, id=number, rows=count)
        words = ["--direct", "t"] if direct else ["--id", f"chaos-{number}", "t"]
        code, said = append(options, words, rows)
        while code not in (DONE, DOUBTFUL) and not direct and not stopping.is_set():
            log.add("repeat", n=number, status=f"exit {code}", said=said[-300:])
            stopping.wait(0.2)
            code, said = append(options, words, rows)
        log.add("done", n=number, status={DONE: "OK", DOUBTFUL: "IN_DOUBT"}.get(code, f"exit {code}"))


if __name__ == "__main__":
    main()

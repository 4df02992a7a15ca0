"""Appends batches to a shared table, each as one block: table_insert_lock.py TABLE FILE BATCH..."""

import asyncio
import sys
from typing import TextIO

import holdfast
from holdfast.aio import Store

ROWS = 50


async def insert(store: Store, table: str, file: TextIO, batch: str) -> None:
    # All batches are under way at once. Those who wait in this process cost no thread each; tasks
    # and processes that insert into the same table take turns.
    async with store.table_lock(table, wait=30) as lock:  # mints the table's id, if it has none
        for row in range(ROWS):
            if lock.lost:
                break  # somebody else may write: the block below ends with a LostError
            file.write(f"{lock.key} {batch}-{row}\n")  # stands for the INSERT
            await asyncio.sleep(0)
        file.flush()


async def main(table: str, path: str, *batches: str) -> int:
    try:
        with open(path, "a", encoding="utf-8") as file:
            async with Store() as store:  # HOLDFAST_URL, or a local folder
                await asyncio.gather(*(insert(store, table, file, batch) for batch in batches))
    except holdfast.Error as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])) if len(sys.argv) > 3 else 64)

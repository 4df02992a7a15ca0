"""CSV is cut, and its rows are counted, as ClickHouse reads it."""

import itertools
import random

import clickhouse
from splitting import split

PIECES = ["x", "y z", "", "1", '"a"', '"b\nc"', '"d,e"', '"say ""hi"""', '""', '"\n"', '"f\r\ng"', "h'i", "j\"k", "'l'", "'m\nn'",
          ' "o"', '"p" ', "é", '"\\"', "\\", '"q""\n""r"']
DOCUMENTS = 60


def documents():
    """With a header of two columns; most rows have two values, and a number that tells them apart."""
    choose, count = random.Random(11), itertools.count()
    for _ in range(DOCUMENTS):
        odd = choose.random() < 0.3
        pieces = PIECES if odd else PIECES[:11]
        rows = [f"{next(count)},{choose.choice(pieces)}" for _ in range(choose.randrange(1, 9))]
        end = choose.choice(["\n", "\n", "\r\n"])
        yield "n,text" + end + end.join(rows) + choose.choice(["", end])


def insert(ch, table, text):
    """How many rows came of it; None: it is refused."""
    ch.sql(f"CREATE TABLE {table} (n UInt64, text String) ENGINE = Memory")
    try:
        ch.sql(f"INSERT INTO {table} FORMAT CSVWithNames", text.encode())
    except clickhouse.ClickHouseError:
        return None
    return sorted((row["n"], row["text"]) for row in ch.rows(f"SELECT n, text FROM {table}"))


def test_halves_have_the_rows_of_the_whole(ch):
    texts, cuts = list(documents()), 0
    for number, (text, answer) in enumerate(zip(texts, split("csv", texts))):
        cut, rows = map(int, answer.split())
        whole = insert(ch, f"whole{number}", text)
        if whole is None:
            continue
        assert len(whole) == rows, text
        if cut > 0:
            data, cuts = text.encode(), cuts + 1
            header = data[:data.index(b"\n") + 1]
            halves = [insert(ch, f"first{number}", data[:cut].decode()),
                      insert(ch, f"second{number}", (header + data[cut:]).decode())]
            assert None not in halves and sorted(halves[0] + halves[1]) == whole, (text, cut)
    assert cuts > DOCUMENTS / 4

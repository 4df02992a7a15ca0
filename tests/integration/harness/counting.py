"""The table in which the tests of transactions count, under one label."""

from hf_tx import transact

COUNTER = ("create table counter (id int primary key, n int not null)", "insert into counter values (1, 0)")
LABEL = "Count:1"


def increment(tx):
    n = int(tx.value("select n from counter where id = 1"))
    tx.queue("update counter set n = $1 where id = 1", n + 1)


def counter(store):
    return int(transact(store, None, lambda tx: tx.value("select n from counter where id = 1"),
                        read_only=True))

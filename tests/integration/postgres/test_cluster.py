"""What holds when the primary of a real cluster changes."""

import pytest

import hf

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180), pytest.mark.xdist_group("patroni")]


def test_lock_is_acquired_on_whichever_node_is_the_primary(patroni, patroni_db):
    with hf.Store(patroni.url(patroni_db.name)) as store:
        store.init()
        first = store.acquire("job").token
    new = patroni.switchover()
    with hf.Store(patroni.url(patroni_db.name)) as store:
        lock = store.acquire("job")
        assert lock.token > first
        assert patroni.at(new, patroni_db).holders(lock.key)

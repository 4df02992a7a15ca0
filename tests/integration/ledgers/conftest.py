import pytest

import ledgers
from hf_network import Driver, Network
from ingesting_beside import beside


@pytest.fixture
def driver(recorded):
    with Driver(recorded.url) as opened:
        opened("install")
        yield opened


@pytest.fixture
def network(recorded):
    with recorded.open() as store, Network(store) as opened:
        yield opened


@pytest.fixture
def strangers(request):
    """They write to the tables of the network without any lock; on PostgreSQL 15 the test is alone."""
    kind = request.getfixturevalue("kind" if "kind" in request.fixturenames else "recorded")
    if kind.kind == "pg15":
        yield
    else:
        with beside(ledgers.Network(kind)):
            yield

import pytest

from hf_network import Driver, Network


@pytest.fixture
def driver(recorded):
    with Driver(recorded.url) as opened:
        opened("install")
        yield opened


@pytest.fixture
def network(recorded):
    with recorded.open() as store, Network(store) as opened:
        yield opened

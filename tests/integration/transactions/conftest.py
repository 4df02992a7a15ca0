import pytest


@pytest.fixture
def kind(tx_kind):
    """store and other are opened on these: they have a table to count in."""
    return tx_kind


@pytest.fixture
def server_store(tx_server):
    with tx_server.open() as opened:
        yield opened

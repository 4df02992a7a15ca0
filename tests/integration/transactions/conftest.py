"""The stores of these tests have a table to count in."""

import pytest


@pytest.fixture
def store(tx_kind):
    with tx_kind.open() as opened:
        yield opened


@pytest.fixture
def other(tx_kind):
    with tx_kind.open() as opened:
        yield opened


@pytest.fixture
def server_store(tx_server):
    with tx_server.open() as opened:
        yield opened

import pytest

from appending import Appender
from chdb import Chdb


@pytest.fixture
def store(recorded_db):
    return recorded_db


@pytest.fixture
def appender(holdfast, store, ch):
    return Appender(holdfast.at(store.url()), ch)


@pytest.fixture
def local_chdb(holdfast, tmp_path):
    return Chdb(holdfast.at(f"local:{tmp_path / 'store'}"), tmp_path / "chdb")

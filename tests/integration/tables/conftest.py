import pytest


@pytest.fixture
def kind(recorded):
    """store and other are opened on these: tables are on record."""
    return recorded

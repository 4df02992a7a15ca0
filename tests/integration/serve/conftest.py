import pytest


@pytest.fixture
def command(recorded, holdfast):
    return holdfast.at(recorded.url)

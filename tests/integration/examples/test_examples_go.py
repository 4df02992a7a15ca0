"""The examples in Go do what those in C do."""

import pytest

from go_tool import NO_SANITIZER, go
from test_examples_c import (  # noqa: F401: fixtures and tests of its own
    ROOT, start, store, test_a_standby_ingests_when_the_first_is_gone, test_transfers_lose_nothing)

pytestmark = [NO_SANITIZER, pytest.mark.xdist_group("go"), pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples-go")
    for source in sorted((ROOT / "examples/go").glob("*/main.go")):
        assert len(source.read_text().splitlines()) < 60
        go("build", "-o", folder / source.parent.name, f"./{source.parent.name}", folder=ROOT / "examples/go")
    return folder

"""Each allocation of the library fails in turn, and each call of libpq or SQLite: the answer stays true."""

import subprocess

import pytest

import hf
import hf_tx
import sanitizers

SCENARIOS = ("acquire", "wait", "transact", "coverage", "views", "registry")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(sanitizers.KIND), reason="a sanitizer has an allocator of its own"),
]


@pytest.fixture(params=["local", "pg15", "pg15-with-schema"])
def url(request, tmp_path):
    if request.param == "local":
        place = f"local:{tmp_path / 'state'}"
    else:
        place = request.getfixturevalue("db15").url()
    if request.param != "pg15":
        hf.install(place)
    with hf.Store(place) as store:
        hf_tx.transact(store, [], lambda tx: tx.query("CREATE TABLE ladder (n int)"))
    return place


@pytest.mark.parametrize("what", ["memory", "calls"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_failure_at_any_place_is_told_and_leaves_nothing_behind(url, scenario, what):
    done = subprocess.run([hf.built("tests/integration/ladder"), url, scenario, what], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10 or (scenario, what) == ("registry", "calls")

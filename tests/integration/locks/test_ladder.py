"""Each allocation of the library fails in turn, each call of libpq or SQLite, and of the system: the answer stays true."""

import subprocess

import pytest

import hf
import hf_tx
import sanitizers

STORES = ("local", "pg15", "pg15-with-schema")
CLIMBS = [  # by what fails: the scenarios on each store
    (("memory", "calls"), {
        **dict.fromkeys(STORES, ["acquire", "private", "transact", "views", "wait"]),
        "local": ["acquire", "adopt", "coverage", "kinds", "private", "tables", "transact", "views", "wait"],
    }),
    (("memory",), {"local": ["registry"], "pg15": ["borrow"], "pg15-with-schema": ["coverage"]}),
    (("calls",), {"local": ["examine"], "pg15": ["borrow", "init"],
                 "pg15-with-schema": ["adopt", "coverage", "examine", "kinds", "tables"]}),
    (("memory blind", "calls blind"), {  # without an hf_error
        "local": ["acquire", "adopt", "coverage", "kinds", "private", "tables", "views", "wait"],
        "pg15-with-schema": ["transact", "wait"]}),
    (("system",), {"local": ["acquire", "adopt", "coverage", "examine", "private", "tables", "transact", "views", "wait"],
                  "pg15-with-schema": ["acquire", "private", "transact", "wait"]}),
    (("memory", "calls", "system", "memory thrice"), dict.fromkeys(("local", "pg15-with-schema"), ["ask", "start"])),
    (("memory", "calls", "calls thrice", "memory blind", "calls blind"), {"local": ["lease"]}),
    (("memory", "calls"), {"pg15-with-schema": ["lease"]}),
    # Another one is in the way, or keys get their names from elsewhere.
    (("memory", "calls"), {"local": ["named", "refused", "set", "shared"], "pg15-with-schema": ["leave", "set"]}),
    (("memory blind", "calls blind"), {"local": ["named", "refused", "shared"]}),
    (("calls",), {"pg15-with-schema": ["named", "refused", "shared"]}),
    # What the library keeps to itself of networks.
    (("memory", "calls"), {"local": ["cover", "install", "verify"], "pg15": ["partitions"]}),
    (("memory blind", "calls blind"), {"local": ["cover", "verify"]}),
    (("memory thrice", "calls thrice"), {  # what tidies up after a failure fails, too
        "local": ["acquire", "adopt", "cover", "private", "refused", "tables", "transact", "views", "wait"],
        "pg15-with-schema": ["acquire", "transact"]}),
    (("calls thrice",), {"pg15-with-schema": ["kinds", "private", "tables", "wait"]}),
]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(sanitizers.KIND), reason="a sanitizer has an allocator of its own"),
]


@pytest.fixture
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


@pytest.mark.parametrize("url, scenario, what", [
    (store, scenario, what) for kinds, stores in CLIMBS for what in kinds
    for store, scenarios in stores.items() for scenario in scenarios], indirect=["url"])
def test_a_failure_at_any_place_is_told_and_leaves_nothing_behind(url, scenario, what):
    done = subprocess.run([hf.built("tests/integration/ladder"), url, scenario, *what.split()], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 3

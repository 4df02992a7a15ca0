import pytest

from ingesting_beside import beside
from ledgers import Network
from source_reader import Reader
from stellar_rpc import GENESIS, StellarRpc
from stores import new_kind


@pytest.fixture(params=["local", "pg15", "pg18"])
def kind(request, tmp_path):
    """Stores with nothing in them; `world` has the commands, too."""
    with new_kind(request, tmp_path, request.param) as made:
        yield made


@pytest.fixture
def network(kind):
    return Network(kind)


@pytest.fixture
def ingest(kind, holdfast):
    """ingest(source, …) runs to the end; ingest.start(source, …) goes on."""
    command = holdfast.at(kind.url)

    def words(source, options, name):
        return ["ingest", "--network", name, "--source", str(source), "--partition-ledgers", "1000", *options]

    def run(source, *options, name="testnet", **how):
        return command(*words(source, options, name), **how)

    run.start = lambda source, *options, name="testnet", **how: command.start(*words(source, options, name), **how)
    run.command = command
    return run


@pytest.fixture
def source(tmp_path):
    return tmp_path / "ledgers.ndjson"


@pytest.fixture
def rpc():
    with StellarRpc() as server:
        yield server


@pytest.fixture
def reader(rpc):
    """On a server that has ledgers 2 to 11 of two transactions each."""
    rpc.close_ledgers(10)
    with Reader(rpc.url) as opened:
        assert opened.seek(GENESIS)["status"] == "HF_OK"
        yield opened


@pytest.fixture(autouse=True)
def strangers(request):
    """Beside every test on PostgreSQL 18 and on the local store, so that none takes longer; on 15 it is alone."""
    made = [request.getfixturevalue(name) for name in ("world", "network") if name in request.fixturenames]
    if not made or made[0].kind.kind == "pg15" or request.node.get_closest_marker("alone"):
        yield
        return
    if "world" in request.fixturenames:
        made[0].is_beside = True
    with beside(getattr(made[0], "network", made[0])):
        yield

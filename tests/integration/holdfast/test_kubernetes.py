"""The examples of contrib/kubernetes: they hang together, and their commands do what they are there for."""

import http.client
import signal

import pytest
import yaml

import cli
import hf
import sanitizers
import servers
from awaiting import eventually
from stores import new_kind

EXAMPLES = sorted((hf.ROOT / "contrib/kubernetes").glob("*.yaml"))
MIGRATE = """#!/bin/sh
# Fails where another one is running.
mkdir "$FOLDER/running" || exit 1
test -e "$FOLDER/migrated" || echo once >>"$FOLDER/migrated.log"
touch "$FOLDER/migrated"
rmdir "$FOLDER/running"
"""
PLANNER = '#!/bin/sh\necho "$HOLDFAST_LABEL leads"\nexec sleep 600\n'


def documents(path):
    return list(yaml.safe_load_all(path.read_text()))


def deployment(name):
    return next(one for one in documents(hf.ROOT / "contrib/kubernetes" / name) if one["kind"] == "Deployment")


def containers(pod):
    return [*pod.get("initContainers", []), *pod["containers"]]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_what_is_named_is_there(path):
    for one in documents(path):
        assert {"apiVersion", "kind", "metadata", "spec"} == set(one)
        if one["kind"] != "Deployment":
            continue
        spec, pod = one["spec"], one["spec"]["template"]["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in containers(pod):
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes
            ports = {port["name"] for port in container.get("ports", [])}
            if "readinessProbe" in container:
                assert container["readinessProbe"]["httpGet"]["port"] in ports
    selectors = [one["spec"]["selector"] for one in documents(path) if one["kind"] == "Service"]
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in documents(path) if one["kind"] == "Deployment"]
    assert all(selector in labels for selector in selectors)


class Pod:
    """Runs containers as the kubelet would: the secret as a file where it is mounted, here below a folder."""

    def __init__(self, folder, url):
        self.folder = folder
        self.started = []
        (folder / "run/secrets/holdfast").mkdir(parents=True)
        (folder / "run/secrets/holdfast/url").write_text(url)
        (folder / "app").mkdir()

    def program(self, name, script):
        (self.folder / name).write_text(script)
        (self.folder / name).chmod(0o755)

    def start(self, container, changes=()):
        words = [dict(changes).get(word, word) for word in container["command"]]
        words = [f"{self.folder}{word}" if word.startswith("/app/") else word for word in words]
        assert words[0] == "holdfast"
        env = {"PATH": "/usr/bin:/bin", "FOLDER": str(self.folder), "HOLDFAST_REGISTRY": ""}
        for variable in container["env"]:
            mounted = any(variable["value"].startswith(f"{mount['mountPath']}/") for mount in container["volumeMounts"])
            env[variable["name"]] = f"{self.folder}{variable['value']}" if mounted else variable["value"]
        self.started.append(cli.Running([*sanitizers.COMMAND_PREFIX, cli.program(), *words[1:]], env))
        return self.started[-1]


@pytest.fixture(name="pod", params=["local", "pg18"])
def made_pod(request, tmp_path):
    with new_kind(request, tmp_path, request.param, schema=True) as kind:
        made = Pod(tmp_path, kind.url)
        yield made
        for one in made.started:
            one.end()


def test_pods_that_start_at_once_migrate_one_after_another(pod):
    pod.program("app/migrate", MIGRATE)
    spec = deployment("migrate.yaml")["spec"]
    (migrate,) = spec["template"]["spec"]["initContainers"]
    started = [pod.start(migrate) for _ in range(spec["replicas"])]
    assert [one.wait() for one in started] == [0] * spec["replicas"]
    assert (pod.folder / "migrated.log").read_text() == "once\n"


def probe(container, port):
    """What the readiness probe gets, or None where nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", container["readinessProbe"]["httpGet"]["path"])
        return connection.getresponse().status
    except ConnectionRefusedError:
        return None
    finally:
        connection.close()


def test_only_the_leader_is_ready_and_another_follows_it(pod):
    pod.program("app/planner", PLANNER)
    spec = deployment("leader.yaml")["spec"]
    (planner,) = spec["template"]["spec"]["containers"]
    (listen,) = [f"0.0.0.0:{port['containerPort']}" for port in planner["ports"]]
    assert listen in planner["command"]
    ports = [servers.free_port() for _ in range(spec["replicas"])]
    started = {port: pod.start(planner, [(listen, f"127.0.0.1:{port}")]) for port in ports}  # each pod has its own host
    eventually(lambda: sorted(probe(planner, port) or 0 for port in ports) == [200, 503], what="one leads, the other not")
    leader = next(port for port in ports if probe(planner, port) == 200)
    (other,) = set(ports) - {leader}
    started[leader].await_line("planner leads")
    assert not started[other].out
    started[leader].signal(signal.SIGTERM)
    assert started[leader].wait() == 128 + signal.SIGTERM
    eventually(lambda: probe(planner, other) == 200, what="the other leads")
    started[other].await_line("planner leads")

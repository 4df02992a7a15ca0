"""What reads metrics: the reference parser of each format, promtool, and a Prometheus of the tests' own."""

import json
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from awaiting import eventually
from servers import free_port

OPENMETRICS = "application/openmetrics-text"


class Metrics:
    """One document: metrics("holdfast_lock_held", lock="a", mode="shared") is its value, or None."""

    def __init__(self, families):
        self.families = list(families)
        self.samples = {}
        for family in self.families:
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.samples, f"{key} is there twice"
                self.samples[key] = sample.value

    def __call__(self, name, **labels):
        return self.samples.get((name, frozenset(labels.items())))

    def names(self):
        return {name for name, _ in self.samples}

    def headed(self):
        """Names that samples of the families may have, also of those that have none now."""
        names = self.names()
        for family in self.families:
            names |= {family.name, f"{family.name}_total"}
            if family.type == "histogram":
                names |= {f"{family.name}_{part}" for part in ("bucket", "sum", "count")}
        return names

    def labels(self, name, label):
        return {dict(labels)[label] for sample, labels in self.samples if sample == name}


def read(server, **how):
    """/metrics as OpenMetrics, strictly."""
    answer = server.get("/metrics", headers={"Accept": f"{OPENMETRICS}; version=1.0.0"}, **how)
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"].startswith(f"{OPENMETRICS}; version=1.0.0")
    return Metrics(parse_openmetrics(answer.text))


def read_text(server):
    answer = server.get("/metrics")
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return answer.text


def promtool(*words, **how):
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=60, **how)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_promtool_takes(text):
    promtool("check", "metrics", input=text)


def check_expressions(folder, expressions):
    """promtool parses expressions of rules only."""
    rules = [{"record": f"test:{number}", "expr": one} for number, one in enumerate(expressions)]
    path = folder / "expressions.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "test", "rules": rules}]}))
    promtool("check", "rules", str(path))


class Prometheus:
    """Scrapes the target every second; its queries can be asked."""

    def __init__(self, folder, port, credentials_file=None, rules=()):
        job = {"job_name": "holdfast", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        if credentials_file:
            job["authorization"] = {"credentials_file": str(credentials_file)}
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                  "scrape_configs": [job], "rule_files": [str(rule) for rule in rules]}
        path = folder / "prometheus.yml"
        path.write_text(yaml.safe_dump(config))
        promtool("check", "config", str(path))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115: closed in end()
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={folder / 'prometheus'}",
             f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=self.log, stderr=self.log)
        eventually(self._ready, 30, "Prometheus is ready")

    def _ready(self):
        assert self.process.poll() is None, self.described()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def described(self):
        self.log.seek(0)
        return self.log.read()

    def ask(self, path, **parameters):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def value(self, expression):
        """Of the only series that it has, or None."""
        found = self.ask("query", query=expression)["result"]
        assert len(found) < 2, found
        return float(found[0]["value"][1]) if found else None

    def target(self, what):
        """Of the only target, or None before it is known."""
        found = self.ask("targets")["activeTargets"]
        assert len(found) < 2, found
        return found[0][what] if found else None

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

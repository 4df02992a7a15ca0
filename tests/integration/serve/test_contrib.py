"""What contrib/ gives to operators: it parses, it says what it should, and it names metrics that there are."""

import json
import re

import pytest
import yaml

import cli
import hf
import hf_registry
from prometheus import check_expressions, promtool, read
from serve import Serve

CONTRIB = hf.ROOT / "contrib"
ALERTS = CONTRIB / "prometheus/alerts.yml"
ALERTS_TEST = CONTRIB / "prometheus/alerts_test.yml"


def alerts():
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def dashboard():
    return json.loads((CONTRIB / "grafana/holdfast.json").read_text())


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions():
    """Of the dashboard, with what Grafana puts in for its variables."""
    found = [target["expr"] for panel in panels() for target in panel["targets"]]
    found = [one.replace("$__rate_interval", "5m") for one in found]
    return [re.sub(r"\$(store|lock|network)", ".*", one) for one in found]


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contrib")
    holdfast = cli.Holdfast(state_home=folder / "xdg", url=f"local:{folder / 'state'}")
    path = hf_registry.write(folder, ["name: report, key: { pattern: 'report' }, histogram: true"])
    server = Serve(holdfast, "--registry", path)
    yield read(server)
    holdfast.end_all()


def unknown_names(metrics, text):
    return set(re.findall(r"holdfast_\w+", text)) - metrics.headed()


def test_promtool_takes_the_rules():
    assert f"{len(alerts())} rules" in promtool("check", "rules", str(ALERTS))


def test_each_alert_fires_where_it_should_and_only_there():
    promtool("test", "rules", ALERTS_TEST.name, cwd=ALERTS_TEST.parent)
    fired = {test["alertname"] for group in yaml.safe_load(ALERTS_TEST.read_text())["tests"]
             for test in group.get("alert_rule_test", []) if test["exp_alerts"]}
    assert fired == set(alerts())


def test_each_alert_says_how_bad_it_is_and_what_it_is():
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), name
        assert set(rule["annotations"]) == {"summary", "description"}, name


def test_alerts_name_metrics_that_there_are(metrics):
    assert unknown_names(metrics, " ".join(rule["expr"] for rule in alerts().values())) == set()


def test_each_query_of_the_dashboard_parses(tmp_path):
    check_expressions(tmp_path, expressions())


def test_the_dashboard_names_metrics_that_there_are_and_shows_them_all(metrics):
    shown = " ".join(expressions())
    assert unknown_names(metrics, shown) == set()
    families = {family.name for family in metrics.families}
    assert {name for name in families if name not in shown} == set()


def test_the_dashboard_can_be_imported():
    made = dashboard()
    numbers = [panel["id"] for panel in made["panels"]]
    assert len(numbers) == len(set(numbers)) and "id" not in made
    assert made["uid"] and made["title"] == "Holdfast" and made["schemaVersion"] >= 30
    variables = {variable["name"]: variable for variable in made["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == "prometheus"
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}" and panel["title"], panel
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"]), panel
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(made))) - {"__rate_interval", "__all"}
    assert used == set(variables)


def test_panels_of_the_dashboard_do_not_overlap():
    cells = [(x, y) for panel in dashboard()["panels"] for pos in [panel["gridPos"]]
             for x in range(pos["x"], pos["x"] + pos["w"]) for y in range(pos["y"], pos["y"] + pos["h"])]
    assert len(cells) == len(set(cells)) and all(x < 24 for x, _ in cells)

"""`holdfast run` and `tx` in a trace: what the job inherits, and the spans in a file."""

import json
import os

import pytest

from awaiting import eventually
from cli import EXIT_LOST, EXIT_NOT_ACQUIRED
from stores import new_kind

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{PARENT_ID}-01"
SHOW = 'echo "${TRACEPARENT-none} ${TRACESTATE-none}"'


@pytest.fixture(params=["local", "pg15", "pg18"])
def run(request, holdfast, tmp_path):
    """The command on each store, all with records."""
    with new_kind(request, tmp_path, request.param, schema=True) as kind:
        command = holdfast.at(kind.url)
        command.kind = kind
        yield command
        holdfast.end_all()


def spans_in(path):
    """As the collector reads the file: name → span."""
    found = {}
    for line in path.read_text().splitlines():
        [resource] = json.loads(line)["resourceSpans"]
        [scope] = resource["scopeSpans"]
        [span] = scope["spans"]
        span["service"] = resource["resource"]["attributes"][0]["value"]["stringValue"]
        found[span["name"]] = span
    return found


def attributes(span):
    return {one["key"]: one["value"] for one in span["attributes"]}


# --- what the job inherits ----------------------------------------------------------------------------


def test_job_gets_the_hold_as_its_parent_and_the_state_as_it_was(run):
    done = run("run", "job", "--", "sh", "-c", SHOW, env={"TRACEPARENT": PARENT, "TRACESTATE": "vendor=1"})
    traceparent, state = done.out.split()
    assert traceparent.startswith(f"00-{TRACE}-") and traceparent.endswith("-01") and traceparent != PARENT
    assert state == "vendor=1"


def test_hooks_get_it_too(run):
    done = run("run", "--on-gain", SHOW, "job", "--", "sh", "-c", SHOW, env={"TRACEPARENT": PARENT, "TRACESTATE": None})
    hook, job = done.out.splitlines()
    assert hook == job and TRACE in hook


@pytest.mark.parametrize("given", [None, "", "00-nonsense", PARENT + "-more"])
def test_without_a_valid_parent_the_job_inherits_what_is_there(run, given):
    done = run("run", "job", "--", "sh", "-c", SHOW, env={"TRACEPARENT": given, "TRACESTATE": None})
    assert done.out.removesuffix("\n") == f"{'none' if given is None else given} none"


def test_what_is_not_sampled_stays_so(run, tmp_path):
    done = run("run", "--spans", tmp_path / "spans", "job", "--", "sh", "-c", SHOW, env={"TRACEPARENT": PARENT[:-1] + "0"})
    assert done.out.split()[0].endswith("-00") and (tmp_path / "spans").read_text() == ""


def test_lists_show_the_span_of_the_holder(run):
    with run.hold("job", env={"TRACEPARENT": PARENT}, script="echo held $TRACEPARENT; exec sleep 600") as holder:
        own = holder.out[0].split()[1]

        def listed():
            [lock] = json.loads(run("locks", "--json").out)["locks"]
            return lock["traceparent"]

        eventually(lambda: listed() == own)
    run.kind.kill9(holder)
    with run.hold("job", env={"TRACEPARENT": None}):
        assert listed() is None


# --- the file -----------------------------------------------------------------------------------------


def test_wait_and_hold_are_written_with_parent_link_and_times(run, tmp_path):
    path = tmp_path / "spans.jsonl"
    os.mkfifo(tmp_path / "go")
    holder = run.hold("job", "--spans", tmp_path / "holder", cwd=tmp_path,
                      script="echo held $TRACEPARENT; read -r line <go")
    own = holder.out[0].split()[1]
    eventually(lambda: json.loads(run("locks", "--json").out)["locks"][0]["traceparent"] == own)
    waiter = run.start("run", "--spans", path, "job", "--", "sh", "-c", SHOW,
                       env={"TRACEPARENT": PARENT, "OTEL_SERVICE_NAME": "billing"})
    waiter.await_line("waiting for", "err")
    (tmp_path / "go").write_text("go\n")
    assert waiter.wait_all().code == 0
    found = spans_in(path)
    wait, hold = found["holdfast wait"], found["holdfast hold"]
    assert {span["traceId"] for span in (wait, hold)} == {TRACE}
    assert {span["parentSpanId"] for span in (wait, hold)} == {PARENT_ID}
    assert wait["links"] == [{"traceId": own[3:35], "spanId": own[36:52]}] and "links" not in hold
    assert hold["spanId"] == waiter.out[0].split()[0][36:52] != wait["spanId"]
    assert int(wait["startTimeUnixNano"]) < int(wait["endTimeUnixNano"]) <= int(hold["endTimeUnixNano"])
    assert wait["status"] == hold["status"] == {} and hold["service"] == "billing"
    assert attributes(hold)["holdfast.label"] == {"stringValue": "job"}
    assert int(attributes(hold)["holdfast.token"]["intValue"]) > 0
    of_holder = spans_in(tmp_path / "holder")["holdfast hold"]
    assert (of_holder["traceId"], of_holder["spanId"]) == (own[3:35], own[36:52])
    assert "parentSpanId" not in of_holder and of_holder["service"] == "holdfast"


def test_refusal_and_loss_are_errors(run, tmp_path):
    path = tmp_path / "spans.jsonl"
    with run.hold("job", "--spans", path) as holder:
        assert run("run", "-n", "--spans", path, "job", "true").code == EXIT_NOT_ACQUIRED
        assert spans_in(path)["holdfast wait"]["status"] == {"code": 2, "message": "HF_NOT_ACQUIRED"}
        run.kind.lose(int(json.loads(run("locks", "--json").out)["locks"][0]["key_text"]))
        assert holder.wait() == EXIT_LOST
    assert spans_in(path)["holdfast hold"]["status"] == {"code": 2, "message": "HF_LOST"}


def test_lease_is_written_too(run, tmp_path):
    assert run("run", "--lease", "30s", "--spans", tmp_path / "spans", "job", "true").code == 0
    assert list(spans_in(tmp_path / "spans")) == ["holdfast hold"]


def test_transaction_is_written(run, tmp_path):
    path = tmp_path / "spans.jsonl"
    done = run("tx", "--spans", path, "Transfer:a", "-c", "select 1", env={"TRACEPARENT": PARENT})
    assert done.code == 0, done
    span = spans_in(path)["holdfast transaction"]
    assert (span["traceId"], span["parentSpanId"], span["status"]) == (TRACE, PARENT_ID, {})
    assert attributes(span)["holdfast.label"] == {"stringValue": "Transfer:a"}


def test_file_that_cannot_be_opened_ends_the_command_before_it_locks(run, tmp_path):
    done = run("run", "--spans", tmp_path / "no" / "file", "job", "true")
    assert done.code not in (0, EXIT_NOT_ACQUIRED) and "cannot open" in done.err and str(tmp_path / "no") in done.err

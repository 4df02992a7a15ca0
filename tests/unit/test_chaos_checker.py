"""The checker of chaos runs finds each kind of violation that is planted, and none where all is well."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "chaos"))

from checker import Checker  # noqa: E402
from history import History, Log, Operation  # noqa: E402

BOUND = 4.0


def op(worker, asked, granted=None, freeing=None, freed="OK", told=None, token=None, label="job", slot=None, **fields):
    """A lock that was asked for, granted and given back at these seconds."""
    operation = Operation(worker, {"t": asked, "op": "lock", "labels": [label], "wait": 0, **fields})
    if granted is not None:
        operation.add({"e": "granted", "t": granted, "token": token, "slot": slot})
    if told is not None:
        operation.add({"e": "told", "t": told})
    if freeing is not None:
        operation.add({"e": "free", "t": freeing})
        operation.add({"e": "freed", "t": freeing, "status": freed})
    return operation


def refused(worker, asked, answered, status="NOT_ACQUIRED", **fields):
    operation = op(worker, asked, **fields)
    operation.add({"e": "refused", "t": answered, "status": status})
    return operation


def tx(worker, name, status):
    operation = op(worker, 0, op="tx", id=name)
    if status:
        operation.add({"e": "done", "t": 1, "status": status})
    return operation


def kinds(operations, **history):
    return [v.kind for v in Checker(History(operations, end=100, **history), BOUND).violations()]


# --- one holder ---------------------------------------------------------------------------------------------


def test_one_after_the_other_is_well():
    assert kinds([op("a", 0, 0, 1), op("b", 0.5, 1.1, 2)]) == []


def test_two_at_once_are_found():
    assert kinds([op("a", 0, 0, 2), op("b", 1, 1, 3)]) == ["two holders"]


def test_two_who_share_are_well_and_one_who_does_not_is_found():
    assert kinds([op("a", 0, 0, 2, mode="shared"), op("b", 1, 1, 3, mode="shared")]) == []
    assert kinds([op("a", 0, 0, 2, mode="shared"), op("b", 1, 1, 3)]) == ["two holders"]


def test_two_of_a_slot_are_found_and_of_two_slots_are_not():
    assert kinds([op("a", 0, 0, 2, slot=1), op("b", 1, 1, 3, slot=2)]) == []
    assert kinds([op("a", 0, 0, 2, slot=1), op("b", 1, 1, 3, slot=1)]) == ["two holders"]


def test_a_set_conflicts_in_each_of_its_labels():
    assert kinds([op("a", 0, 0, 2, labels=["x", "y"]), op("b", 1, 1, 3, label="y", labels=["y"])]) == ["two holders"]


@pytest.mark.parametrize("end", [{"told": 3}, {"freeing": 3, "freed": "LOST"}])
def test_a_loss_that_is_told_in_time_is_well(end):
    assert kinds([op("a", 0, 0, **end), op("b", 1, 1, 5)]) == []


@pytest.mark.parametrize("end", [{"told": 20}, {"freeing": 20, "freed": "LOST"}])
def test_a_loss_that_is_told_late_is_found(end):
    assert kinds([op("a", 0, 0, **end), op("b", 1, 1, 21)]) == ["told late"]


def test_who_is_stopped_cannot_be_told():
    slow = [op("a", 0, 0, told=20), op("b", 1, 1, 21)]
    assert kinds(slow, stopped={"a": [(0.5, 19)]}) == []
    assert kinds(slow, stopped={"b": [(0.5, 19)]}) == ["told late"]


def test_who_was_killed_holds_no_more():
    assert kinds([op("a", 0, 0), op("b", 1, 1, 2)], killed={"a": 0.9}) == []
    assert kinds([op("a", 0, 0), op("b", 1, 1, 2)], killed={"a": 50}) == ["told late"]


# --- tokens, answers, order ---------------------------------------------------------------------------------


def test_a_token_that_does_not_grow_is_found():
    assert kinds([op("a", 0, 0, 1, token=7), op("b", 2, 2, 3, token=8)]) == []
    assert kinds([op("a", 0, 0, 1, token=7), op("b", 2, 2, 3, token=7)]) == ["token"]
    assert kinds([op("a", 0, 0, 1, token=7), op("b", 2, 2, 3, token=6)]) == ["token"]


def test_tokens_of_those_who_asked_at_once_may_come_in_any_order():
    assert kinds([op("a", 0, 1, 1.5, token=8, mode="shared"), op("b", 0, 1.1, 2, token=7, mode="shared")]) == []


def test_a_call_that_never_returned_is_found_unless_its_process_was_killed():
    assert kinds([op("a", 0)]) == ["no answer"]
    assert kinds([op("a", 0)], killed={"a": 5}) == []


def test_an_answer_far_behind_its_wait_is_found():
    assert kinds([refused("a", 0, 3, wait=2000)]) == []
    assert kinds([refused("a", 0, 30, wait=2000)]) == ["late answer"]
    assert kinds([refused("a", 0, 30, wait=2000)], stopped={"a": [(1, 29)]}) == []
    assert kinds([refused("a", 0, 90, wait=-1)]) == []


def waits(others, **fields):
    """One that waits from 0 to 60, and others that come later and are granted before."""
    first = op("a", 0, 60, 61, op="long", wait=-1)
    return [first, *(op(f"b{i}", 10 + i, 20 + i, 20.5 + i, op="long", wait=-1, **fields) for i in range(others))]


def test_who_is_passed_again_and_again_is_found():
    assert kinds(waits(2)) == []
    assert kinds(waits(9)) == ["overtaken"]
    assert kinds(waits(9), faults=[(30, "cut", 30)]) == [], "those who wait may have lost their places"


# --- what was written ---------------------------------------------------------------------------------------


def test_a_fence_that_takes_an_older_token_is_found():
    assert kinds([], state={"writes": [["x", 5], ["y", 1], ["x", 5], ["x", 6]]}) == []
    assert kinds([], state={"writes": [["x", 5], ["x", 4]]}) == ["fence"]


@pytest.mark.parametrize("status, count, found", [
    ("OK", 1, []), ("OK", 0, ["commit"]), ("OK", 2, ["commit"]),
    ("EXHAUSTED", 0, []), ("EXHAUSTED", 1, ["commit"]),
    ("IN_DOUBT", 0, []), ("IN_DOUBT", 1, []), ("IN_DOUBT", 2, ["commit"]),
])
def test_a_commit_is_there_once_if_it_was_reported_and_never_twice(status, count, found):
    assert kinds([tx("a", "row", status)], state={"rows": {"row": count}}) == found


def test_a_transaction_of_a_killed_worker_may_be_there_once():
    for count in (0, 1, 2):
        assert kinds([tx("a", "row", None)], killed={"a": 9}, state={"rows": {"row": count}}) == \
            (["commit"] if count == 2 else [])


# --- files --------------------------------------------------------------------------------------------------


def test_a_history_is_read_as_it_was_written(tmp_path):
    worker, driver = Log(tmp_path, "w1"), Log(tmp_path, "driver")
    driver.add("fault", n=0, fault="kill")
    worker.add("ask", n=1, op="lock", labels=["job"], mode="exclusive", wait=5)
    worker.add("granted", n=1, token=3, slot=None)
    driver.add("stopped", worker="w1")
    driver.add("continued", worker="w1")
    driver.add("killed", worker="w1")
    driver.add("mended", n=0)
    (tmp_path / "state.json").write_text('{"writes": [["job", 3]]}')
    read = History.read(tmp_path)
    [lock] = read.operations
    assert (lock.worker, lock.labels, lock.token) == ("w1", ["job"], 3)
    assert read.ended(lock) == read.killed["w1"] > lock.granted
    assert [name for _, name, mended in read.faults if mended] == ["kill"]
    assert read.state == {"writes": [["job", 3]]}

"""What the history has of losses in a restart of the server, when nobody can write to it."""

import signal

import hf
from awaiting import eventually, stays
from cli import EXIT_LOST
from hf import State


def losses(db):
    return db.sql("select key, detail from holdfast.events where event = 'lost' order by id")


def test_a_loss_in_a_restart_is_recorded_once_for_each_run(own_pg, own_db, holdfast):
    hf.install(own_db.url())
    command = holdfast.at(own_db.url())
    jobs = [command.hold(f"job {number}") for number in range(4)]
    own_pg.stop()
    own_pg.start()
    for job in jobs:
        assert job.wait() == EXIT_LOST, job.describe()
    eventually(lambda: len(losses(own_db)) == len(jobs), 10, "all are recorded")
    assert {reason for _, reason in losses(own_db)} == {"server"}


def test_a_loss_in_a_crash_of_the_server_is_recorded_too(own_pg, own_db, holdfast):
    hf.install(own_db.url())
    job = holdfast.at(own_db.url()).hold("job")
    own_pg.kill9()
    own_pg.start()
    assert job.wait() == EXIT_LOST, job.describe()
    eventually(lambda: len(losses(own_db)) == 1, 10, "it is recorded")


def test_a_process_that_lives_on_records_its_losses_when_the_server_is_back(own_pg, own_db):
    hf.install(own_db.url())
    with hf.Store(own_db.url()) as store:
        lock = store.acquire("job", flags=hf.PRIVATE)
        own_pg.stop()
        eventually(lambda: lock.state is State.LOST)
        stays(lambda: own_pg.process is None, 3)  # it tries to write meanwhile
        own_pg.start()
        eventually(lambda: len(losses(own_db)) == 1, 15, "it is recorded")
        again = store.acquire("other", 10000)
        again.end()
        eventually(lambda: own_db.sql("select 1 from holdfast.events where event = 'released'"), 10)
    assert len(losses(own_db)) == 1


def test_a_server_that_stays_away_keeps_nobody_for_long(own_pg, own_db, holdfast):
    hf.install(own_db.url())
    job = holdfast.at(own_db.url()).hold("job")
    own_pg.stop(signal.SIGINT)
    assert job.wait(20) == EXIT_LOST


def test_a_command_clears_old_events_away_when_that_is_due(recorded_db, holdfast):
    command = holdfast.at(recorded_db.url())
    recorded_db.sql("insert into holdfast.events (at, event, key, space, shared, token, application, host, pid)"
                    " values (now() - interval '31 days', 'acquired', 1, 0, false, 1, 'a', 'h', 1)")
    old = "select count(*) from holdfast.events where at < now() - interval '30 days'"
    for age, left in (("59 minutes", 1), ("61 minutes", 0)):
        recorded_db.sql("insert into holdfast.schedules (label, last_start) values ('holdfast: housekeeping', now())"
                        " on conflict (label) do nothing")
        recorded_db.sql(f"update holdfast.schedules set last_start = now() - interval '{age}'")
        assert command("run", "job", "--", "true").code == 0
        assert recorded_db.value(old) == left

def tried(cur):
    cur.execute("SELECT pg_try_advisory_xact_lock(51515151)")  # expect: try-result-ignored
    cur.execute("UPDATE jobs SET state = 'done' WHERE id = 7 AND state = 'running' AND owner = 'this process'")
    cur.execute("UPDATE jobs SET state = 'done' WHERE id = 8 AND state = 'running' AND owner = 'this process'")
    cur.execute("UPDATE jobs SET state = 'done' WHERE id = 9 AND state = 'running' AND owner = 'this process'")


async def hold(pool):
    got = await pool.fetchval("SELECT pg_try_advisory_lock(42424242)")  # expect: lock-on-pool
    if not got:
        return
    assert await pool.fetchval("SELECT pg_advisory_unlock(42424242)")


def stale(cur, pk):
    runs = Job.objects.get(pk=pk).runs
    cur.execute("SELECT pg_advisory_xact_lock(51515151)")  # expect: lock-after-read
    Job.objects.update_or_create(pk=pk, runs=runs + 1)

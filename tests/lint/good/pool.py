async def hold(pool):
    async with pool.acquire() as conn:
        got = await conn.fetchval("SELECT pg_try_advisory_lock(42424242)")
        if got:
            assert await conn.fetchval("SELECT pg_advisory_unlock(42424242)")


def fresh(cur, pk):
    cur.execute("SELECT pg_advisory_xact_lock(51515151)")
    runs = Job.objects.get(pk=pk).runs
    Job.objects.update_or_create(pk=pk, runs=runs + 1)


def locked(cur, pk):
    job = Job.objects.select_for_update().get(pk=pk)
    cur.execute("SELECT pg_advisory_xact_lock(51515151)")
    Job.objects.update_or_create(pk=pk, runs=job.runs + 1)

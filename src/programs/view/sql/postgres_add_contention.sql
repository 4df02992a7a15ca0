-- A column of contention at $1 (ms), which another collector may have written too.
INSERT INTO holdfast.contention AS c (at, lock, samples, held, waiters, longest_wait_ms)
SELECT pg_catalog.to_timestamp($1::bigint / 1000.0), j.lock, j.samples, j.held, j.waiters, j.longest_wait_ms
FROM pg_catalog.jsonb_to_recordset($2::jsonb)
     AS j (lock text, samples int, held int, waiters int, longest_wait_ms bigint)
ON CONFLICT (at, lock) DO UPDATE
SET samples = greatest(c.samples, excluded.samples), held = greatest(c.held, excluded.held),
    waiters = greatest(c.waiters, excluded.waiters),
    longest_wait_ms = greatest(c.longest_wait_ms, excluded.longest_wait_ms)

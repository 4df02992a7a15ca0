SELECT at_ms, lock, samples, held, waiters, longest_wait_ms
FROM contention
WHERE at_ms > CAST($1 AS INTEGER)

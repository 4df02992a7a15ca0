-- A column of contention at $1 (ms), which another collector may have written too.
INSERT INTO contention AS c (at_ms, lock, samples, held, waiters, longest_wait_ms)
SELECT CAST($1 AS INTEGER), json_extract(value, '$.lock'), json_extract(value, '$.samples'),
       json_extract(value, '$.held'), json_extract(value, '$.waiters'), json_extract(value, '$.longest_wait_ms')
FROM json_each($2)
WHERE true
ON CONFLICT (at_ms, lock) DO UPDATE
SET samples = max(c.samples, excluded.samples), held = max(c.held, excluded.held),
    waiters = max(c.waiters, excluded.waiters), longest_wait_ms = max(c.longest_wait_ms, excluded.longest_wait_ms)

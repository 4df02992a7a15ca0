-- Due when nothing was recorded, when the period has passed, or when the clock stepped far back.
-- Durable before the job starts: a crash must not make it run twice in a period.
WITH durable AS MATERIALIZED (SELECT pg_catalog.set_config('synchronous_commit', 'on', true))
INSERT INTO holdfast.schedules AS s (label, last_start)
SELECT $1::text, pg_catalog.clock_timestamp() FROM durable
ON CONFLICT (label) DO UPDATE SET last_start = excluded.last_start
WHERE s.last_start <= excluded.last_start - pg_catalog.make_interval(secs => $2::float8 / 1000)
   OR s.last_start > excluded.last_start + pg_catalog.make_interval(secs => $2::float8 / 1000)
RETURNING 1

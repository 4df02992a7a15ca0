-- What the collector reads, and the little that it writes. Two sections with one name are one
-- statement: their columns are the same, and where a dialect needs fewer parameters, the last ones
-- are left out.

-- name: losses postgres
-- Losses of the last day, by the minute of Unix time.
SELECT floor(extract(epoch FROM e.at) / 60)::bigint, count(*)
FROM holdfast.events e
WHERE e.event = 'lost' AND e.at > pg_catalog.now() - interval '1 day'
GROUP BY 1

-- name: losses sqlite
-- Losses since $1, by the minute of Unix time.
SELECT at_ms / 60000, count(*)
FROM events
WHERE event = 'lost' AND at_ms > CAST($1 AS INTEGER)
GROUP BY 1

-- name: may_lack_losses postgres
-- The server was started within a day, and there was a history before: who lost a lock then, may
-- have found nobody to tell.
SELECT pg_catalog.pg_postmaster_start_time() > pg_catalog.now() - interval '1 day'
    AND EXISTS (SELECT FROM holdfast.events e WHERE e.at < pg_catalog.pg_postmaster_start_time())

-- name: contention postgres
SELECT (extract(epoch FROM c.at) * 1000)::bigint, c.lock, c.samples, c.held, c.waiters, c.longest_wait_ms
FROM holdfast.contention c
WHERE c.at > pg_catalog.now() - interval '1 day'

-- name: contention sqlite
SELECT at_ms, lock, samples, held, waiters, longest_wait_ms
FROM contention
WHERE at_ms > CAST($1 AS INTEGER)

-- name: add_contention postgres
-- A column of contention at $1 (ms), which another collector may have written too.
INSERT INTO holdfast.contention AS c (at, lock, samples, held, waiters, longest_wait_ms)
SELECT pg_catalog.to_timestamp($1::bigint / 1000.0), j.lock, j.samples, j.held, j.waiters, j.longest_wait_ms
FROM pg_catalog.jsonb_to_recordset($2::jsonb)
     AS j (lock text, samples int, held int, waiters int, longest_wait_ms bigint)
ON CONFLICT (at, lock) DO UPDATE
SET samples = greatest(c.samples, excluded.samples), held = greatest(c.held, excluded.held),
    waiters = greatest(c.waiters, excluded.waiters),
    longest_wait_ms = greatest(c.longest_wait_ms, excluded.longest_wait_ms)

-- name: add_contention sqlite
-- A column of contention at $1 (ms), which another collector may have written too.
INSERT INTO contention AS c (at_ms, lock, samples, held, waiters, longest_wait_ms)
SELECT CAST($1 AS INTEGER), json_extract(value, '$.lock'), json_extract(value, '$.samples'),
       json_extract(value, '$.held'), json_extract(value, '$.waiters'), json_extract(value, '$.longest_wait_ms')
FROM json_each($2)
WHERE true
ON CONFLICT (at_ms, lock) DO UPDATE
SET samples = max(c.samples, excluded.samples), held = max(c.held, excluded.held),
    waiters = max(c.waiters, excluded.waiters), longest_wait_ms = max(c.longest_wait_ms, excluded.longest_wait_ms)

-- name: last_events postgres
-- The newest $1 events; columns as in postgres_events.
SELECT m.newest, e.id, (extract(epoch FROM e.at) * 1000)::bigint, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, l.label
FROM (SELECT coalesce(max(n.id), 0) AS newest FROM holdfast.events n) m
LEFT JOIN LATERAL (SELECT * FROM holdfast.events a ORDER BY a.id DESC LIMIT $1::int) e ON true
LEFT JOIN holdfast.labels l ON l.key = e.key AND l.space = e.space
ORDER BY e.id

-- name: last_events sqlite
-- The newest $1 events; columns as in postgres_events.
SELECT m.newest, e.id, e.at_ms, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, CAST(l.label AS TEXT)
FROM (SELECT coalesce(max(id), 0) AS newest FROM events) m
LEFT JOIN (SELECT * FROM events ORDER BY id DESC LIMIT CAST($1 AS INTEGER)) e ON true
LEFT JOIN labels l ON l.key = e.key AND l.space = e.space
ORDER BY e.id

-- name: events postgres
-- What has happened since: above id $1 (at most $3), and of the ids in $2. In every row, also where
-- nothing has, the newest id of all, by which a history that began anew is noticed.
SELECT m.newest, e.id, (extract(epoch FROM e.at) * 1000)::bigint, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, l.label
FROM (SELECT coalesce(max(n.id), 0) AS newest FROM holdfast.events n) m
LEFT JOIN LATERAL (
    (SELECT * FROM holdfast.events a WHERE a.id > $1::bigint ORDER BY a.id LIMIT $3::int)
    UNION ALL
    SELECT * FROM holdfast.events b WHERE b.id = ANY ($2::bigint[])
) e ON true
LEFT JOIN holdfast.labels l ON l.key = e.key AND l.space = e.space
ORDER BY e.id

-- name: events sqlite
-- What has happened since id $1, at most $2; columns as in postgres_events. One writes at a time:
-- ids come in order.
SELECT m.newest, e.id, e.at_ms, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, CAST(l.label AS TEXT)
FROM (SELECT coalesce(max(id), 0) AS newest FROM events) m
LEFT JOIN (SELECT * FROM events WHERE id > CAST($1 AS INTEGER) ORDER BY id LIMIT CAST($2 AS INTEGER)) e ON true
LEFT JOIN labels l ON l.key = e.key AND l.space = e.space
ORDER BY e.id

-- name: past_events postgres
-- Below id $1, from $2 to before $3 (ms), of the kind $4 and the key $5 ('': any), at most $6, the newest
-- first; columns as in events.
SELECT 0, e.id, (extract(epoch FROM e.at) * 1000)::bigint, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, l.label
FROM holdfast.events e
LEFT JOIN holdfast.labels l ON l.key = e.key AND l.space = e.space
WHERE e.id < $1::bigint AND e.at >= pg_catalog.to_timestamp($2::bigint / 1000.0)
  AND e.at < pg_catalog.to_timestamp($3::bigint / 1000.0) AND ($4::text = '' OR e.event = $4::text)
  AND e.key = coalesce(nullif($5::text, '')::bigint, e.key)
ORDER BY e.id DESC
LIMIT $6::int

-- name: past_events sqlite
-- As on PostgreSQL.
SELECT 0, e.id, e.at_ms, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, CAST(l.label AS TEXT)
FROM events e
LEFT JOIN labels l ON l.key = e.key AND l.space = e.space
WHERE e.id < CAST($1 AS INTEGER) AND e.at_ms >= CAST($2 AS INTEGER) AND e.at_ms < CAST($3 AS INTEGER)
  AND ($4 = '' OR e.event = $4) AND ($5 = '' OR e.key = CAST($5 AS INTEGER))
ORDER BY e.id DESC
LIMIT CAST($6 AS INTEGER)

-- name: tables postgres
-- Live shared tables. In every row, also where there is none, when an append was last written down.
SELECT a.newest, r.cluster, r.database, r.table_name, r.advisory_id,
       (extract(epoch FROM r.created_at) * 1000)::bigint,
       (SELECT count(*) FROM holdfast.table_context_refs c WHERE c.advisory_id = r.advisory_id)
FROM (SELECT coalesce((extract(epoch FROM max(p.at)) * 1000000)::bigint, 0) AS newest FROM holdfast.appends p) a
LEFT JOIN holdfast.table_registry r ON r.dropped_at IS NULL
ORDER BY r.cluster, r.database, r.table_name

-- name: tables sqlite
-- Live shared tables; columns as in postgres_tables. Appends are in another file.
SELECT 0, r.cluster, r.database, r.table_name, r.advisory_id, r.created_ms,
       (SELECT count(*) FROM table_context_refs c WHERE c.advisory_id = r.advisory_id)
FROM table_registry r
WHERE r.dropped_ms IS NULL
ORDER BY r.cluster, r.database, r.table_name

-- name: appends postgres
-- What was appended to each table; the state of its last append stands behind its time.
SELECT p.table_name, count(*) FILTER (WHERE p.state = 'done'),
       coalesce(sum(p.row_count) FILTER (WHERE p.state = 'done'), 0)::bigint,
       (extract(epoch FROM max(p.at)) * 1000)::bigint, count(*) FILTER (WHERE p.state = 'doubtful'),
       max(lpad(((extract(epoch FROM p.at) * 1000000)::bigint)::text, 20, '0') || ' ' || p.state)
FROM holdfast.appends p
GROUP BY p.table_name
ORDER BY p.table_name COLLATE "C"

-- name: appends sqlite
-- What was appended to each table; columns as in postgres_appends.
SELECT table_name, count(*) FILTER (WHERE state = 'done'),
       coalesce(sum(row_count) FILTER (WHERE state = 'done'), 0), max(at) * 1000,
       count(*) FILTER (WHERE state = 'doubtful'), max(printf('%020d', at) || ' ' || state)
FROM appends
GROUP BY table_name
ORDER BY table_name

-- name: queries postgres
-- What sessions run, or ran last.
SELECT a.pid, a.query
FROM pg_catalog.pg_stat_activity a
WHERE a.datname = pg_catalog.current_database() AND a.query <> ''

-- name: terminate postgres
-- Ends backend $3 if it holds the key ($1, in space $2) now.
WITH held AS MATERIALIZED (
    SELECT DISTINCT l.pid
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted AND l.pid = $3::int
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
      AND (l.classid::bigint << 32) | l.objid::bigint = $1::bigint AND l.objsubid = $2::int + 1
)
SELECT h.pid FROM held h WHERE pg_catalog.pg_terminate_backend(h.pid)

-- name: terminate_recorded postgres
-- Ends backend $3 if it holds the key ($1, in space $2) now, under token $4 (0: any), and writes
-- down that $5 asked for it, from application $6 on host $7, process $8.
WITH held AS MATERIALIZED (
    SELECT l.pid, pg_catalog.bool_and(l.mode = 'ShareLock') AS shared
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted AND l.pid = $3::int
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
      AND (l.classid::bigint << 32) | l.objid::bigint = $1::bigint AND l.objsubid = $2::int + 1
    GROUP BY l.pid
), ended AS MATERIALIZED (
    SELECT h.shared, pg_catalog.pg_terminate_backend(h.pid) AS ended
    FROM held h
    WHERE $4::bigint = 0 OR EXISTS (
        SELECT FROM holdfast.holders r
        WHERE r.backend_pid = h.pid AND r.token = $4::bigint)
)
INSERT INTO holdfast.events (at, event, key, space, shared, token, application, host, pid, detail)
SELECT pg_catalog.clock_timestamp(), 'terminated', $1::bigint, $2::smallint, e.shared, $4::bigint,
       $6::text, $7::text, $8::int, $5::text
FROM ended e
WHERE e.ended
RETURNING id

-- name: end_lease postgres
-- Ends the lease of the key ($1, in space $2) under term $4, and writes it down as terminate_recorded
-- does. $3 is 0: no session holds it.
SELECT 1 WHERE $3::int = 0 AND holdfast.end_one_lease($1::bigint, $2::smallint, $4::bigint, $5::text, $6::text,
                                                      $7::text, $8::int)

-- name: find_holder sqlite
-- Process $3 as the holder of the key ($1, in space $2), under token $4 (0: any).
SELECT started, pid_space, host, shared
FROM holders
WHERE key = CAST($1 AS INTEGER) AND space = CAST($2 AS INTEGER) AND pid = CAST($3 AS INTEGER)
  AND (CAST($4 AS INTEGER) = 0 OR EXISTS (
      SELECT 1 FROM holders r WHERE r.pid = CAST($3 AS INTEGER) AND r.token = CAST($4 AS INTEGER)))

-- name: terminated sqlite
INSERT INTO events (at_ms, event, key, space, shared, token, application, host, pid, detail)
VALUES (CAST($9 AS INTEGER), 'terminated', CAST($1 AS INTEGER), CAST($2 AS INTEGER), CAST($3 AS INTEGER),
        CAST($4 AS INTEGER), $6, $7, CAST($8 AS INTEGER), $5)

-- lines: joined

-- name: has_schema postgres
-- Somebody may have run `holdfast init` since the store was opened.
SELECT pg_catalog.to_regclass('holdfast.contention') IS NOT NULL

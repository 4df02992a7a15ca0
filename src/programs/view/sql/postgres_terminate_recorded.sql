-- Ends backend $3 if it holds the key ($1, in space $2) now, under token $4 (0: any), and writes down that $5
-- asked for it, from application $6 on host $7, process $8.
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
        WHERE r.backend_pid = h.pid AND (SELECT b.epoch::bigint << 40 FROM holdfast.boot b) | r.token = $4::bigint)
)
INSERT INTO holdfast.events (at, event, key, space, shared, token, application, host, pid, detail)
SELECT pg_catalog.clock_timestamp(), 'terminated', $1::bigint, $2::smallint, e.shared, $4::bigint,
       $6::text, $7::text, $8::int, $5::text
FROM ended e
WHERE e.ended
RETURNING id

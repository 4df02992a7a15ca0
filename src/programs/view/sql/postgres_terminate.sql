-- Ends backend $3 if it holds the key ($1, in space $2) now.
WITH held AS MATERIALIZED (
    SELECT DISTINCT l.pid
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted AND l.pid = $3::int
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
      AND (l.classid::bigint << 32) | l.objid::bigint = $1::bigint AND l.objsubid = $2::int + 1
)
SELECT h.pid FROM held h WHERE pg_catalog.pg_terminate_backend(h.pid)

DELETE FROM holdfast.waiters
WHERE backend_pid = pg_catalog.pg_backend_pid() AND key = $1::bigint AND space = $2::smallint

INSERT INTO holdfast.waiters (backend_pid, key, space, shared, since)
VALUES (pg_catalog.pg_backend_pid(), $1::bigint, $2::smallint, $3::boolean,
        pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $4::float8 / 1000))
ON CONFLICT (backend_pid, key, space) DO UPDATE SET shared = excluded.shared, since = excluded.since

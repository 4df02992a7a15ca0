-- What has been held for longer than a moment; the row of an earlier hold is overwritten.
INSERT INTO holdfast.holders (backend_pid, key, space, shared, slot, since, token)
SELECT DISTINCT ON (h.backend_pid, h.key, h.space) h.backend_pid, h.key, h.space, h.shared, h.slot,
       pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => h.age_ms / 1000.0),
       h.token & 1099511627775
FROM ROWS FROM (pg_catalog.unnest($1::int[]), pg_catalog.unnest($2::bigint[]), pg_catalog.unnest($3::smallint[]),
                pg_catalog.unnest($4::boolean[]), pg_catalog.unnest($5::int[]), pg_catalog.unnest($6::bigint[]),
                pg_catalog.unnest($7::bigint[]))
     AS h (backend_pid, key, space, shared, slot, age_ms, token)
ORDER BY h.backend_pid, h.key, h.space, h.token DESC
ON CONFLICT (backend_pid, key, space) DO UPDATE
SET shared = excluded.shared, slot = excluded.slot, since = excluded.since, token = excluded.token

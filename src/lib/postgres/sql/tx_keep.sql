SELECT pg_catalog.count(CASE
    WHEN w.space = 0 THEN pg_catalog.pg_advisory_lock(w.key)::text
    ELSE pg_catalog.pg_advisory_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)::text
END)
FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) AS w (key, space)

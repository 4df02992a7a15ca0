-- try_set for bigint keys alone.
SELECT coalesce((
    SELECT w.i
    FROM pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS w (key, i)
    WHERE NOT CASE WHEN $2::boolean THEN pg_catalog.pg_try_advisory_lock_shared(w.key)
                   ELSE pg_catalog.pg_try_advisory_lock(w.key) END
    LIMIT 1), 0)

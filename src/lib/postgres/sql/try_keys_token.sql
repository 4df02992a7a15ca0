SELECT got.blocked, CASE WHEN got.blocked = 0 THEN pg_catalog.nextval('holdfast.token') END
FROM (SELECT coalesce((
    SELECT w.i
    FROM pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS w (key, i)
    WHERE NOT CASE WHEN $2::boolean THEN pg_catalog.pg_try_advisory_lock_shared(w.key)
                   ELSE pg_catalog.pg_try_advisory_lock(w.key) END
    LIMIT 1), 0) AS blocked OFFSET 0) AS got

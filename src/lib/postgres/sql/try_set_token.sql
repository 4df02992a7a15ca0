-- try_set, and the token of the whole once all are held.
SELECT got.blocked, CASE WHEN got.blocked = 0 THEN pg_catalog.nextval('holdfast.token') END
FROM (SELECT coalesce((
    SELECT w.i
    FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) WITH ORDINALITY AS w (key, space, i)
    WHERE NOT CASE
        WHEN w.space = 0 AND $3::boolean THEN pg_catalog.pg_try_advisory_lock_shared(w.key)
        WHEN w.space = 0 THEN pg_catalog.pg_try_advisory_lock(w.key)
        WHEN $3::boolean
            THEN pg_catalog.pg_try_advisory_lock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
        ELSE pg_catalog.pg_try_advisory_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
    END
    LIMIT 1), 0) AS blocked OFFSET 0) AS got

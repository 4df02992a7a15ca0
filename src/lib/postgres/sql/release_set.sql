-- How many were not held after all. Unlocks come first, wake-ups after them, and key by key only when
-- somebody listens for any key at all.
WITH freed AS MATERIALIZED (
    SELECT w.companion, w.channel, CASE
        WHEN w.space = 0 AND $3::boolean THEN pg_catalog.pg_advisory_unlock_shared(w.key)
        WHEN w.space = 0 THEN pg_catalog.pg_advisory_unlock(w.key)
        WHEN $3::boolean
            THEN pg_catalog.pg_advisory_unlock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
        ELSE pg_catalog.pg_advisory_unlock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
    END AS ok
    FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[]),
                    pg_catalog.unnest($4::int[]), pg_catalog.unnest($5::text[]))
         AS w (key, space, companion, channel)
), counted AS MATERIALIZED (
    SELECT pg_catalog.count(*) FILTER (WHERE NOT ok) AS missing FROM freed
), heard AS MATERIALIZED (
    SELECT c.missing, CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, 1)
                           THEN NOT pg_catalog.pg_advisory_unlock(1213156420, 1)
                           ELSE true END AS anybody
    FROM counted c
)
SELECT h.missing,
       CASE WHEN h.anybody THEN (
           SELECT pg_catalog.count(CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, f.companion)
                                        THEN pg_catalog.pg_advisory_unlock(1213156420, f.companion)
                                        ELSE pg_catalog.pg_notify(f.channel, '') IS NULL END)
           FROM freed f) END
FROM heard h

-- How many were not held after all, and whether somebody listens for any key at all: then
-- tell_listeners follows.
SELECT freed.missing,
       CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, 1)
            THEN NOT pg_catalog.pg_advisory_unlock(1213156420, 1)
            ELSE true END
FROM (SELECT pg_catalog.count(*) FILTER (
                 WHERE NOT CASE WHEN $2::boolean THEN pg_catalog.pg_advisory_unlock_shared(w.key)
                                ELSE pg_catalog.pg_advisory_unlock(w.key) END) AS missing
      FROM pg_catalog.unnest($1::bigint[]) AS w (key)) AS freed

SELECT pg_catalog.count(CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, w.companion)
                             THEN pg_catalog.pg_advisory_unlock(1213156420, w.companion)
                             ELSE pg_catalog.pg_notify(w.channel, '') IS NULL END)
FROM ROWS FROM (pg_catalog.unnest($1::int[]), pg_catalog.unnest($2::text[])) AS w (companion, channel)

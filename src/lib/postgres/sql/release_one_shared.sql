SELECT pg_catalog.pg_advisory_unlock_shared($1::bigint),
       CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, $2::int)
            THEN pg_catalog.pg_advisory_unlock(1213156420, $2::int)
            ELSE pg_catalog.pg_notify($3::text, '') IS NULL END

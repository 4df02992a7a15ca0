SELECT CASE WHEN $2::boolean THEN pg_catalog.pg_try_advisory_lock_shared($1::bigint)
            ELSE pg_catalog.pg_try_advisory_lock($1::bigint) END

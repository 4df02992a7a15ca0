-- Unlock, then look whether anybody listens: a listener holds the companion key shared. NOTIFY
-- takes a server-wide lock until commit, so it is sent only then. $3 companion, $4 channel.
SELECT CASE WHEN $2::boolean THEN pg_catalog.pg_advisory_unlock_shared($1::bigint)
            ELSE pg_catalog.pg_advisory_unlock($1::bigint) END,
       CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, $3::int)
            THEN pg_catalog.pg_advisory_unlock(1213156420, $3::int)
            ELSE pg_catalog.pg_notify($4::text, '') IS NULL END

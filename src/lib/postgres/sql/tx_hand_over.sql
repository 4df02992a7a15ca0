-- From the session to the transaction, which COMMIT and ROLLBACK free. The first statement with a
-- snapshot: it is younger than the locks. $3 whether the transaction writes and needs an id.
SELECT pg_catalog.pg_backend_pid(),
       CASE WHEN $3::boolean THEN pg_catalog.pg_current_xact_id()::text END,
       pg_catalog.count(handed.taken), pg_catalog.count(handed.given)
FROM (SELECT CASE
                 WHEN w.space = 0 THEN pg_catalog.pg_advisory_xact_lock(w.key)::text
                 ELSE pg_catalog.pg_advisory_xact_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)::text
             END AS taken,
             CASE
                 WHEN w.space = 0 THEN pg_catalog.pg_advisory_unlock(w.key)
                 ELSE pg_catalog.pg_advisory_unlock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
             END AS given
      FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) AS w (key, space)
      OFFSET 0) AS handed

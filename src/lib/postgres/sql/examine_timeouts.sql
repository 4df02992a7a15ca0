-- What sessions of this role in this database start with: our own SET hides it from the setting and
-- its source, not from reset_val. Where it comes from is looked up in the order the server applies.
SELECT s.name,
       CASE WHEN v.ms % 3600000 = 0 THEN v.ms / 3600000 || ' h'
            WHEN v.ms % 60000 = 0 THEN v.ms / 60000 || ' min'
            WHEN v.ms % 1000 = 0 THEN v.ms / 1000 || ' s'
            ELSE v.ms || ' ms' END,
       coalesce((
           SELECT CASE WHEN r.setrole <> 0 AND r.setdatabase <> 0 THEN 'role and database'
                       WHEN r.setrole <> 0 THEN 'role'
                       WHEN r.setdatabase <> 0 THEN 'database'
                       ELSE 'all roles' END
           FROM pg_catalog.pg_db_role_setting r, pg_catalog.unnest(r.setconfig) AS c (entry)
           WHERE pg_catalog.lower(pg_catalog.split_part(c.entry, '=', 1)) = s.name
             AND r.setrole IN (0, (SELECT u.oid FROM pg_catalog.pg_roles u WHERE u.rolname = session_user))
             AND r.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database d
                                       WHERE d.datname = pg_catalog.current_database()))
           ORDER BY r.setrole <> 0 DESC, r.setdatabase <> 0 DESC
           LIMIT 1), 'server or connection')
FROM pg_catalog.pg_settings s, LATERAL (SELECT s.reset_val::bigint) AS v (ms)
WHERE s.name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout',
                 'idle_in_transaction_session_timeout', 'transaction_timeout')
  AND s.reset_val <> '0'
ORDER BY s.name

-- Every advisory lock of the database from one read of pg_locks. Columns as in list_recorded.
SELECT l.classid::bigint, l.objid::bigint, l.objsubid, l.mode = 'ShareLock', l.granted, l.pid,
       coalesce(a.application_name, ''), coalesce(a.client_hostname, pg_catalog.host(a.client_addr), ''),
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - CASE WHEN l.granted THEN a.backend_start ELSE l.waitstart END) * 1000)::bigint,
       CASE WHEN a.state = 'idle' AND a.state_change <= pg_catalog.statement_timestamp()
            THEN (pg_catalog.date_part('epoch', pg_catalog.statement_timestamp() - a.state_change) * 1000)::bigint END,
       a.state IS NULL OR a.state = 'disabled',
       NULL::text, NULL::text, NULL::int, NULL::bigint, NULL::bigint, NULL::int
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())

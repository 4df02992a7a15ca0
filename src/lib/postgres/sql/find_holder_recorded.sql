-- The same with the holder's own words where it recorded them.
SELECT coalesce(s.application, a.application_name, ''),
       coalesce(s.host, a.client_hostname, pg_catalog.host(a.client_addr), ''), l.pid,
       -- A holder that records has a row soon: none yet means that it got the lock just now.
       CASE WHEN s.backend_pid IS NOT NULL AND h.since IS NULL THEN 0
            ELSE (extract(epoch FROM pg_catalog.clock_timestamp() - coalesce(h.since, a.backend_start)) * 1000)::bigint
       END, l.granted, coalesce(s.pid, 0), s.backend_pid IS NOT NULL
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
LEFT JOIN holdfast.sessions s
    ON s.backend_pid = l.pid AND s.backend_start = coalesce(a.backend_start, s.backend_start)
LEFT JOIN holdfast.holders h
    ON h.backend_pid = s.backend_pid AND h.key = ($1::bigint << 32 | $2::bigint) AND h.space = $3::smallint - 1
   AND h.since >= s.backend_start
WHERE l.locktype = 'advisory' AND l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid AND l.objsubid = $3::smallint
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
  AND (NOT $4::boolean OR l.mode = 'ExclusiveLock')
  AND l.pid <> pg_catalog.pg_backend_pid()
ORDER BY l.granted DESC, a.backend_start
LIMIT 1

-- Who has the key ($1 classid, $2 objid, $3 objsubid) in a mode that conflicts with $4 (shared?).
SELECT coalesce(a.application_name, ''), coalesce(a.client_hostname, pg_catalog.host(a.client_addr), ''),
       l.pid, (extract(epoch FROM pg_catalog.clock_timestamp() - a.backend_start) * 1000)::bigint, l.granted
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid AND l.objsubid = $3::smallint
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
  AND (NOT $4::boolean OR l.mode = 'ExclusiveLock')
  AND l.pid <> pg_catalog.pg_backend_pid()
ORDER BY l.granted DESC, a.backend_start
LIMIT 1

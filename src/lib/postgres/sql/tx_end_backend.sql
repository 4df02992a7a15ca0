-- pid and transaction id together: a pid alone may be somebody else's by now.
SELECT pg_catalog.pg_terminate_backend(a.pid)
FROM pg_catalog.pg_stat_activity a
WHERE a.pid = $1::pg_catalog.int4 AND a.backend_xid = $2::pg_catalog.xid8::pg_catalog.xid

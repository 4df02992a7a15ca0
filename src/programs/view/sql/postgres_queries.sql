-- What sessions run, or ran last.
SELECT a.pid, a.query
FROM pg_catalog.pg_stat_activity a
WHERE a.datname = pg_catalog.current_database() AND a.query <> ''

-- What became of transaction $1, and tx_generation in the same breath: 'committed' counts only while
-- that is what it was.
SELECT coalesce(pg_catalog.pg_xact_status($1::pg_catalog.xid8), 'unknown'),
       w.stats_reset::pg_catalog.text OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||)
       pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
FROM pg_catalog.pg_stat_wal w

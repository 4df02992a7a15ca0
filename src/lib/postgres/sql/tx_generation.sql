-- Changes when the server crashes (its statistics start anew) and when a standby takes over (on another
-- timeline, even if it began as a cold copy with the same statistics). And which backend this is, for good.
SELECT w.stats_reset::pg_catalog.text OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||)
       pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8),
       pg_catalog.pg_backend_pid(),
       (SELECT EXTRACT(epoch FROM a.backend_start)::pg_catalog.text
        FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) AS a)
FROM pg_catalog.pg_stat_wal w

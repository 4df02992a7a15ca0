-- From column 12 on what was recorded: label, host, pid, age in ms, token, slot. Waits that sleep
-- without a snapshot are not in pg_locks; their rows come from holdfast.waiters. A session that has been
-- idle since before the statement was so while pg_locks was read: what it holds are session locks.
WITH live AS MATERIALIZED (
    SELECT l.classid::bigint AS classid, l.objid::bigint AS objid, l.objsubid, l.mode = 'ShareLock' AS shared,
           l.granted, l.pid, l.waitstart, NULL::timestamptz AS waiting_since,
           (l.classid::bigint << 32) | l.objid::bigint AS key
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory'
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
), sleeping AS (
    SELECT (w.key >> 32) & 4294967295, w.key & 4294967295, w.space + 1, w.shared, false, w.backend_pid,
           w.since, w.since, w.key
    FROM holdfast.waiters w
), rows AS (
    SELECT * FROM live UNION ALL SELECT * FROM sleeping
)
SELECT r.classid, r.objid, r.objsubid, r.shared, r.granted, r.pid,
       coalesce(s.application, a.application_name, ''),
       coalesce(a.client_hostname, pg_catalog.host(a.client_addr), ''),
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - CASE WHEN r.granted THEN a.backend_start ELSE r.waitstart END) * 1000)::bigint,
       CASE WHEN a.state = 'idle' AND a.state_change <= pg_catalog.statement_timestamp()
            THEN (pg_catalog.date_part('epoch', pg_catalog.statement_timestamp() - a.state_change) * 1000)::bigint END,
       a.state IS NULL OR a.state = 'disabled',
       lb.label, s.host, s.pid,
       -- A holder that records has a row soon: none yet means that it got the lock just now.
       CASE WHEN r.granted AND s.backend_pid IS NOT NULL AND h.since IS NULL THEN 0
            WHEN r.granted THEN (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - h.since) * 1000)::bigint
            ELSE (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - r.waiting_since) * 1000)::bigint END,
       CASE WHEN r.granted THEN (SELECT b.epoch::bigint << 40 FROM holdfast.boot b) | h.token END, CASE WHEN r.granted THEN h.slot END
FROM rows r
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = r.pid
LEFT JOIN holdfast.sessions s
    ON s.backend_pid = r.pid AND s.backend_start = coalesce(a.backend_start, s.backend_start)
LEFT JOIN holdfast.holders h
    ON h.backend_pid = s.backend_pid AND h.key = r.key AND h.space = r.objsubid - 1
   AND h.since >= s.backend_start
LEFT JOIN holdfast.labels lb ON lb.key = r.key AND lb.space = r.objsubid - 1
-- A prepared transaction has no session.
WHERE (a.pid IS NOT NULL OR r.pid IS NULL)
  AND (r.waiting_since IS NULL OR s.backend_pid IS NOT NULL)
  -- A recorded waiter that queues for a slice is in pg_locks as well, under another of its sessions.
  AND NOT (NOT r.granted AND r.waiting_since IS NULL AND EXISTS (
      SELECT FROM holdfast.waiters w JOIN holdfast.sessions ws ON ws.backend_pid = w.backend_pid
      JOIN pg_catalog.pg_stat_activity wa ON wa.pid = w.backend_pid
      WHERE w.key = r.key AND w.space = r.objsubid - 1 AND ws.host = s.host AND ws.pid = s.pid
        AND ws.backend_start = coalesce(wa.backend_start, ws.backend_start)))

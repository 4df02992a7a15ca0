-- After an error nobody knows which keys of a batch were taken: frees those that are held, without
-- a warning in the server's log for the others.
WITH mine AS MATERIALIZED (
    SELECT (l.classid::bigint << 32) | l.objid::bigint AS key, l.objsubid - 1 AS space
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.pid = pg_catalog.pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
      AND l.mode = CASE WHEN $3::boolean THEN 'ShareLock' ELSE 'ExclusiveLock' END
)
SELECT count(CASE
    WHEN w.space = 0 AND $3::boolean THEN pg_catalog.pg_advisory_unlock_shared(w.key)
    WHEN w.space = 0 THEN pg_catalog.pg_advisory_unlock(w.key)
    WHEN $3::boolean
        THEN pg_catalog.pg_advisory_unlock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
    ELSE pg_catalog.pg_advisory_unlock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
END)
FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) AS w (key, space)
JOIN mine USING (key, space)

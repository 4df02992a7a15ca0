-- What was recorded since $1 ms ago (NULL: ever), one row per key: label, how often it was acquired, ms
-- since it was last seen, and who that was. The slots of a semaphore are among them, by their label.
WITH bound AS (
    SELECT coalesce(pg_catalog.now() - pg_catalog.make_interval(secs => $1::bigint / 1000.0), '-infinity') AS since
), happened AS (
    SELECT e.space, e.key, count(*) FILTER (WHERE e.event = 'acquired') AS times, max(e.at) AS at, max(e.id) AS id
    FROM holdfast.events e
    WHERE e.at >= (SELECT b.since FROM bound b)
    GROUP BY e.space, e.key
)
SELECT coalesce(h.space, l.space) AS space, coalesce(h.key, l.key) AS key, l.label, coalesce(h.times, 0),
       greatest(0, extract(epoch FROM pg_catalog.clock_timestamp() - greatest(h.at, l.seen)) * 1000)::bigint,
       e.shared, e.application, e.host, e.pid
FROM happened h
FULL JOIN holdfast.labels l ON l.key = h.key AND l.space = h.space
LEFT JOIN holdfast.events e ON e.id = h.id
WHERE h.key IS NOT NULL OR l.seen >= (SELECT b.since FROM bound b)
ORDER BY 1, 2

-- What was recorded since ?1 (Unix time), one row per key. The slots of a semaphore are among them.
SELECT a.space, a.key, l.label, a.times, a.at_ms, e.shared, e.application, e.host, e.pid
FROM (
    SELECT space, key, sum(times) AS times, max(at_ms) AS at_ms, max(id) AS id
    FROM (
        SELECT space, key, event = 'acquired' AS times, at_ms, id FROM events WHERE at_ms >= ?1
        UNION ALL
        SELECT space, key, 0, seen_ms, NULL FROM labels WHERE seen_ms >= ?1
    )
    GROUP BY space, key
) a
LEFT JOIN labels l ON l.space = a.space AND l.key = a.key
LEFT JOIN events e ON e.id = a.id
ORDER BY a.space, a.key

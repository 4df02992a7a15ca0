-- Holders, waiters, and what an unfinished set has taken; standing is -1 for holders.
SELECT a.space, a.key, a.shared, a.standing, a.slot, a.lifetime, a.token, a.since_ms,
    a.pid, a.started, a.pid_space, a.host, a.application, l.label
FROM (
    SELECT space, key, shared, -1 AS standing, slot, lifetime, token, since_ms,
        pid, started, pid_space, host, application
    FROM holders
    UNION ALL
    SELECT space, key, shared, standing, 0, 0, 0, since_ms,
        pid, started, pid_space, host, application
    FROM waiters
) a
LEFT JOIN labels l ON l.space = a.space AND l.key = a.key
ORDER BY a.space, a.key, a.standing, a.since_ms

-- Who is in the way of a key wanted shared (?3 = 1) or alone: holders first, the latest first.
SELECT pid, started, pid_space, host, application, since_ms, standing
FROM (
    SELECT pid, started, pid_space, host, application, since_ms, -1 AS standing, token
    FROM holders WHERE space = ?1 AND key = ?2 AND NOT (shared AND ?3)
    UNION ALL
    SELECT pid, started, pid_space, host, application, since_ms, standing, 0
    FROM waiters WHERE space = ?1 AND key = ?2 AND NOT (shared AND ?3) AND standing < 2
)
ORDER BY standing, token DESC

SELECT w.space, w.key, l.label, w.pid, w.tid, w.started, w.pid_space, w.host, w.application
FROM waiters w LEFT JOIN labels l ON l.space = w.space AND l.key = w.key
WHERE w.wait = ?1 AND w.standing > 0

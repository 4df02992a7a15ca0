-- Which wait is kept up by which other wait: because the other's thread holds the key, because the
-- other has taken it as a part of a set, or because the other stands in the gate before it. Only
-- waits up to ?1: in a cycle that matters to it, ?1 is the youngest.
SELECT w.wait, b.wait
FROM waiters w
JOIN holders h ON h.space = w.space AND h.key = w.key AND NOT (h.shared AND w.shared)
JOIN waiters b ON b.pid = h.pid AND b.tid = h.tid AND b.started = h.started
    AND b.pid_space = h.pid_space AND b.host = h.host AND b.standing > 0
WHERE w.standing > 0 AND w.wait <= ?1 AND b.wait <= ?1
UNION
SELECT w.wait, b.wait
FROM waiters w
JOIN waiters b ON b.space = w.space AND b.key = w.key AND b.wait <> w.wait
    AND NOT (b.shared AND w.shared) AND (b.standing = 0 OR (b.standing = 1 AND w.standing = 2))
WHERE w.standing > 0 AND w.wait <= ?1 AND b.wait <= ?1

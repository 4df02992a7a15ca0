SELECT pid, started, pid_space, host FROM holders
UNION
SELECT pid, started, pid_space, host FROM waiters

INSERT INTO waiters
    (wait, space, key, shared, standing, since_ms,
     pid, tid, started, pid_space, host, application)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)

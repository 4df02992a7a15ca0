INSERT INTO events
    (at_ms, event, space, key, shared, token, wait_ms, hold_ms, application, host, pid, detail)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, -1), nullif(?8, -1), ?9, ?10, ?11, nullif(?12, ''))

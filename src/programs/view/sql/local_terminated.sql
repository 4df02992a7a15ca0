INSERT INTO events (at_ms, event, key, space, shared, token, application, host, pid, detail)
VALUES (CAST($9 AS INTEGER), 'terminated', CAST($1 AS INTEGER), CAST($2 AS INTEGER), CAST($3 AS INTEGER),
        CAST($4 AS INTEGER), $6, $7, CAST($8 AS INTEGER), $5)

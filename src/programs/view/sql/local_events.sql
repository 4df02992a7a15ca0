-- What has happened since id $1, at most $2; columns as in postgres_events. One writes at a time: ids come in order.
SELECT m.newest, e.id, e.at_ms, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, CAST(l.label AS TEXT)
FROM (SELECT coalesce(max(id), 0) AS newest FROM events) m
LEFT JOIN (SELECT * FROM events WHERE id > CAST($1 AS INTEGER) ORDER BY id LIMIT CAST($2 AS INTEGER)) e ON true
LEFT JOIN labels l ON l.key = e.key AND l.space = e.space
ORDER BY e.id

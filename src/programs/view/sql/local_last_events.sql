-- The newest $1 events; columns as in postgres_events.
SELECT m.newest, e.id, e.at_ms, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, CAST(l.label AS TEXT)
FROM (SELECT coalesce(max(id), 0) AS newest FROM events) m
LEFT JOIN (SELECT * FROM events ORDER BY id DESC LIMIT CAST($1 AS INTEGER)) e ON true
LEFT JOIN labels l ON l.key = e.key AND l.space = e.space
ORDER BY e.id

-- The newest $1 events; columns as in postgres_events.
SELECT m.newest, e.id, (extract(epoch FROM e.at) * 1000)::bigint, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, l.label
FROM (SELECT coalesce(max(n.id), 0) AS newest FROM holdfast.events n) m
LEFT JOIN LATERAL (SELECT * FROM holdfast.events a ORDER BY a.id DESC LIMIT $1::int) e ON true
LEFT JOIN holdfast.labels l ON l.key = e.key AND l.space = e.space
ORDER BY e.id

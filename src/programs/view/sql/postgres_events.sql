-- What has happened since: above id $1 (at most $3), and of the ids in $2. In every row, also where nothing
-- has, the newest id of all, by which a history that began anew is noticed.
SELECT m.newest, e.id, (extract(epoch FROM e.at) * 1000)::bigint, e.event, e.key, e.space, e.shared, e.token,
       e.wait_ms, e.hold_ms, e.application, e.host, e.pid, e.detail, l.label
FROM (SELECT coalesce(max(n.id), 0) AS newest FROM holdfast.events n) m
LEFT JOIN LATERAL (
    (SELECT * FROM holdfast.events a WHERE a.id > $1::bigint ORDER BY a.id LIMIT $3::int)
    UNION ALL
    SELECT * FROM holdfast.events b WHERE b.id = ANY ($2::bigint[])
) e ON true
LEFT JOIN holdfast.labels l ON l.key = e.key AND l.space = e.space
ORDER BY e.id

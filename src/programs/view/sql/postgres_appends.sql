-- What was appended to each table; the state of its last append stands behind its time.
SELECT p.table_name, count(*) FILTER (WHERE p.state = 'done'),
       coalesce(sum(p.row_count) FILTER (WHERE p.state = 'done'), 0)::bigint,
       (extract(epoch FROM max(p.at)) * 1000)::bigint, count(*) FILTER (WHERE p.state = 'doubtful'),
       max(lpad(((extract(epoch FROM p.at) * 1000000)::bigint)::text, 20, '0') || ' ' || p.state)
FROM holdfast.appends p
GROUP BY p.table_name
ORDER BY p.table_name COLLATE "C"

-- What was appended to each table; columns as in postgres_appends.
SELECT table_name, count(*) FILTER (WHERE state = 'done'),
       coalesce(sum(row_count) FILTER (WHERE state = 'done'), 0), max(at) * 1000,
       count(*) FILTER (WHERE state = 'doubtful'), max(printf('%020d', at) || ' ' || state)
FROM appends
GROUP BY table_name
ORDER BY table_name

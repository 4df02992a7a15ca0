-- Live shared tables. In every row, also where there is none, when an append was last written down.
SELECT a.newest, r.cluster, r.database, r.table_name, r.advisory_id,
       (extract(epoch FROM r.created_at) * 1000)::bigint,
       (SELECT count(*) FROM holdfast.table_context_refs c WHERE c.advisory_id = r.advisory_id)
FROM (SELECT coalesce((extract(epoch FROM max(p.at)) * 1000000)::bigint, 0) AS newest FROM holdfast.appends p) a
LEFT JOIN holdfast.table_registry r ON r.dropped_at IS NULL
ORDER BY r.cluster, r.database, r.table_name

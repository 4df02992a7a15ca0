-- Live shared tables; columns as in postgres_tables. Appends are in another file.
SELECT 0, r.cluster, r.database, r.table_name, r.advisory_id, r.created_ms,
       (SELECT count(*) FROM table_context_refs c WHERE c.advisory_id = r.advisory_id)
FROM table_registry r
WHERE r.dropped_ms IS NULL
ORDER BY r.cluster, r.database, r.table_name

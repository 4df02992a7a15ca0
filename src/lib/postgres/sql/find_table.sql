SELECT advisory_id FROM holdfast.table_registry
WHERE cluster = $1 AND database = $2 AND table_name = $3 AND dropped_at IS NULL

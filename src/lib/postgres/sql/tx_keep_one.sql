SELECT pg_catalog.pg_advisory_lock($1::bigint)

SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint

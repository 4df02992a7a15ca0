SELECT (extract(epoch FROM c.at) * 1000)::bigint, c.lock, c.samples, c.held, c.waiters, c.longest_wait_ms
FROM holdfast.contention c
WHERE c.at > pg_catalog.now() - interval '1 day'

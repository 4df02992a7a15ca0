-- What the library itself sets in a caller's transaction.

-- lines: joined

-- name: make_durable postgres
-- A commit that a crash of the server may undo is not enough where another system acts on it.
SELECT pg_catalog.set_config('synchronous_commit', 'on', true)
WHERE pg_catalog.current_setting('synchronous_commit') = 'off'

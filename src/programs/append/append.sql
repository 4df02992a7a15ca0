-- What is recorded of appends: holdfast.appends, or the file appends.db of a local store.
-- ClickHouse's SQL is where it is sent: it is composed from the table's own columns, settings and
-- partitions.

-- lines: joined

-- name: identify postgres
SELECT s.system_identifier::text || ':' || n.oid::text
FROM pg_catalog.pg_control_system() AS s, pg_catalog.pg_namespace AS n
WHERE n.nspname = 'holdfast'

-- name: find postgres
SELECT id, table_name, state, staging, plan, row_count, server, reason,
    (extract(epoch FROM at) * 1000)::bigint
FROM holdfast.appends
WHERE id = $1

-- name: find sqlite
SELECT id, table_name, state, staging, plan, row_count, server, reason, at * 1000
FROM appends
WHERE id = $1

-- name: find_attaching postgres
SELECT id, table_name, state, staging, plan, row_count, server, reason,
    (extract(epoch FROM at) * 1000)::bigint
FROM holdfast.appends
WHERE table_name = $1 AND state = 'attaching'

-- name: find_attaching sqlite
SELECT id, table_name, state, staging, plan, row_count, server, reason, at * 1000
FROM appends
WHERE table_name = $1 AND state = 'attaching'

-- name: list postgres
SELECT id, table_name, state, staging, plan, row_count, server, reason,
    (extract(epoch FROM at) * 1000)::bigint
FROM holdfast.appends
WHERE state <> 'done'
ORDER BY at, id

-- name: list sqlite
SELECT id, table_name, state, staging, plan, row_count, server, reason, at * 1000
FROM appends
WHERE state <> 'done'
ORDER BY at, id

-- name: list_all postgres
SELECT id, table_name, state, staging, plan, row_count, server, reason,
    (extract(epoch FROM at) * 1000)::bigint
FROM holdfast.appends
ORDER BY at, id

-- name: list_all sqlite
SELECT id, table_name, state, staging, plan, row_count, server, reason, at * 1000
FROM appends
ORDER BY at, id

-- name: save postgres
INSERT INTO holdfast.appends (id, table_name, state, staging, plan, row_count, server, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, staging = excluded.staging,
    plan = excluded.plan, row_count = excluded.row_count, server = excluded.server,
    reason = excluded.reason, at = pg_catalog.now()

-- name: save sqlite
INSERT INTO appends (id, table_name, state, staging, plan, row_count, server, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, staging = excluded.staging,
    plan = excluded.plan, row_count = excluded.row_count, server = excluded.server,
    reason = excluded.reason, at = strftime('%s', 'now')

-- name: remove postgres
DELETE FROM holdfast.appends WHERE id = $1

-- name: remove sqlite
DELETE FROM appends WHERE id = $1

-- name: forget postgres
-- Appends that are long over.
DELETE FROM holdfast.appends WHERE state = 'done' AND at < pg_catalog.now() - interval '30 days'

-- name: forget sqlite
DELETE FROM appends WHERE state = 'done' AND at < CAST(strftime('%s', 'now') AS INTEGER) - 2592000

-- name: create_table sqlite
-- On PostgreSQL 'holdfast init' creates it.
CREATE TABLE IF NOT EXISTS appends (id TEXT PRIMARY KEY, table_name TEXT NOT NULL,
    state TEXT NOT NULL, staging TEXT NOT NULL, plan TEXT NOT NULL, row_count INTEGER NOT NULL,
    at INTEGER NOT NULL DEFAULT (strftime('%s', 'now')), server TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '') WITHOUT ROWID

-- name: has_server sqlite
SELECT 1 FROM pragma_table_info('appends') WHERE name = 'server'

-- name: add_server sqlite
-- To a table of an earlier version.
ALTER TABLE appends ADD COLUMN server TEXT NOT NULL DEFAULT ''

-- name: add_reason sqlite
ALTER TABLE appends ADD COLUMN reason TEXT NOT NULL DEFAULT ''

-- name: drop_attaching sqlite
-- It left out the server.
DROP INDEX IF EXISTS appends_attaching

-- name: create_attaching sqlite
-- One append at a time attaches to a table of a server.
CREATE UNIQUE INDEX IF NOT EXISTS appends_attaching_to ON appends (table_name, server)
WHERE state = 'attaching'

-- name: create_at sqlite
CREATE INDEX IF NOT EXISTS appends_at ON appends (at)

-- What is recorded of appends: holdfast.appends, or the file appends.db of a local store.
-- ClickHouse's SQL is where it is sent: it is composed from the table's own columns, settings and
-- partitions.

-- lines: joined

-- name: find postgres
SELECT id, table_name, state, staging, plan, row_count FROM holdfast.appends WHERE id = $1

-- name: find sqlite
SELECT id, table_name, state, staging, plan, row_count FROM appends WHERE id = $1

-- name: find_attaching postgres
SELECT id, table_name, state, staging, plan, row_count
FROM holdfast.appends
WHERE table_name = $1 AND state = 'attaching'

-- name: find_attaching sqlite
SELECT id, table_name, state, staging, plan, row_count
FROM appends
WHERE table_name = $1 AND state = 'attaching'

-- name: save postgres
INSERT INTO holdfast.appends (id, table_name, state, staging, plan, row_count)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, staging = excluded.staging,
    plan = excluded.plan, row_count = excluded.row_count, at = pg_catalog.now()

-- name: save sqlite
INSERT INTO appends (id, table_name, state, staging, plan, row_count)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, staging = excluded.staging,
    plan = excluded.plan, row_count = excluded.row_count, at = strftime('%s', 'now')

-- name: forget postgres
-- Appends that are long over.
DELETE FROM holdfast.appends WHERE state = 'done' AND at < pg_catalog.now() - interval '30 days'

-- name: forget sqlite
DELETE FROM appends WHERE state = 'done' AND at < CAST(strftime('%s', 'now') AS INTEGER) - 2592000

-- name: create_table sqlite
-- On PostgreSQL 'holdfast init' creates it.
CREATE TABLE IF NOT EXISTS appends (id TEXT PRIMARY KEY, table_name TEXT NOT NULL,
    state TEXT NOT NULL, staging TEXT NOT NULL, plan TEXT NOT NULL, row_count INTEGER NOT NULL,
    at INTEGER NOT NULL DEFAULT (strftime('%s', 'now'))) WITHOUT ROWID

-- name: create_attaching sqlite
-- One append at a time attaches to a table.
CREATE UNIQUE INDEX IF NOT EXISTS appends_attaching ON appends (table_name)
WHERE state = 'attaching'

-- name: create_at sqlite
CREATE INDEX IF NOT EXISTS appends_at ON appends (at)

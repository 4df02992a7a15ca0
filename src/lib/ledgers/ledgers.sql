-- The tables of one network. @prefix@ is its schema, quoted, with a dot; a local network has a file
-- of its own, and no prefix.

-- lines: joined

-- ---- the store: cursors and rows of our own -----------------------------------------------------

-- name: store_read
SELECT value FROM @prefix@ingest_store WHERE key = $1

-- name: store_read_locked postgres
-- SQLite has one writer at a time, and needs no locks on rows.
SELECT value FROM @prefix@ingest_store WHERE key = $1 FOR UPDATE

-- name: store_read_locked sqlite
SELECT value FROM @prefix@ingest_store WHERE key = $1

-- name: store_write
INSERT INTO @prefix@ingest_store (key, value)
VALUES ($1, $2)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: store_update
UPDATE @prefix@ingest_store SET value = $2 WHERE key = $1

-- name: store_move
-- From $2 to $3, as text.
UPDATE @prefix@ingest_store SET value = $3 WHERE key = $1 AND value = $2

-- name: store_list postgres
SELECT key, value FROM @prefix@ingest_store ORDER BY key COLLATE "C"

-- name: store_list sqlite
SELECT key, value FROM @prefix@ingest_store ORDER BY key

-- name: store_identity
SELECT key, value FROM @prefix@ingest_store WHERE key IN ($1, $2, $3)

-- ---- coverage -----------------------------------------------------------------------------------

-- name: coverage_read
-- The rows that meet $1 to $2, and perhaps one before.
SELECT lo, hi
FROM @prefix@ingest_coverage
WHERE lo <= $2 AND lo >= coalesce((SELECT max(lo) FROM @prefix@ingest_coverage WHERE lo <= $1), $1)
ORDER BY lo

-- name: coverage_last
-- Downwards, a page at a time.
SELECT lo, hi FROM @prefix@ingest_coverage WHERE lo < $1 ORDER BY lo DESC LIMIT 32

-- name: coverage_find
-- The row that may hold $1.
SELECT lo, hi FROM @prefix@ingest_coverage WHERE lo <= $1 ORDER BY lo DESC LIMIT 1

-- name: coverage_lock_rows postgres
-- The row before $1, the rows that begin up to $2, and the one at $3 unless it is the last. The
-- live ingester may hold that one: it need not be waited for.
SELECT lo, hi, lo = (SELECT max(lo) FROM @prefix@ingest_coverage)
FROM @prefix@ingest_coverage
WHERE lo >= coalesce((SELECT max(lo) FROM @prefix@ingest_coverage WHERE lo <= $1), $1)
    AND (lo <= $2 OR (lo = $3 AND lo < (SELECT max(lo) FROM @prefix@ingest_coverage)))
ORDER BY lo FOR UPDATE

-- name: coverage_lock_rows sqlite
SELECT lo, hi, lo = (SELECT max(lo) FROM @prefix@ingest_coverage)
FROM @prefix@ingest_coverage
WHERE lo >= coalesce((SELECT max(lo) FROM @prefix@ingest_coverage WHERE lo <= $1), $1)
    AND (lo <= $2 OR (lo = $3 AND lo < (SELECT max(lo) FROM @prefix@ingest_coverage)))
ORDER BY lo

-- name: coverage_lock_row postgres
SELECT FROM @prefix@ingest_coverage WHERE lo = $1 FOR NO KEY UPDATE

-- name: coverage_extend
-- The row from $1 to $2 grows to $3, unless somebody has begun a range in the way.
UPDATE @prefix@ingest_coverage
SET hi = $3
WHERE lo = $1 AND hi = $2 AND NOT EXISTS (SELECT 1 FROM @prefix@ingest_coverage AS other
    WHERE other.lo > $1 AND other.lo <= $3)

-- name: coverage_insert
INSERT INTO @prefix@ingest_coverage (lo, hi) VALUES ($1, $2)

-- name: coverage_raise
UPDATE @prefix@ingest_coverage SET hi = $2 WHERE lo = $1

-- name: coverage_swallow
DELETE FROM @prefix@ingest_coverage WHERE lo > $1 AND lo <= $2

-- name: coverage_drop_below
DELETE FROM @prefix@ingest_coverage WHERE lo < $1 AND hi < $1

-- name: coverage_cut_below
UPDATE @prefix@ingest_coverage SET lo = $1 WHERE lo < $1

-- name: coverage_drop_above
DELETE FROM @prefix@ingest_coverage WHERE lo > $1

-- name: coverage_cut_above
UPDATE @prefix@ingest_coverage
SET hi = $1
WHERE hi > $1 AND lo = (SELECT max(lo) FROM @prefix@ingest_coverage WHERE lo <= $1)

-- name: coverage_start
SELECT coalesce(min(lo), $1) FROM @prefix@ingest_coverage

-- name: coverage_clear
DELETE FROM @prefix@ingest_coverage

-- name: coverage_fill
-- @rows@: (lo,hi),(lo,hi),...
INSERT INTO @prefix@ingest_coverage (lo, hi) VALUES @rows@

-- name: quarantined
SELECT DISTINCT sequence FROM @prefix@ingest_quarantine WHERE sequence > $1 ORDER BY sequence

-- ---- coverage against the data ------------------------------------------------------------------

-- name: verify_next
-- The first ledger from $1 on, the first range, and the end of the range before.
SELECT (SELECT min(sequence) FROM @prefix@ledgers WHERE sequence >= $1),
    (SELECT min(lo) FROM @prefix@ingest_coverage WHERE lo >= $1),
    (SELECT hi FROM @prefix@ingest_coverage WHERE lo < $1 ORDER BY lo DESC LIMIT 1)

-- name: verify_ledgers
-- Ledgers $1 to $2, whose transactions have the ids $3 to $4: how many they say, how many there
-- are.
SELECT l.sequence, l.transaction_count, coalesce(t.rows, 0)
FROM @prefix@ledgers AS l
LEFT JOIN (SELECT to_id >> 32 AS ledger, count(*) AS rows FROM @prefix@transactions
    WHERE to_id >= $3 AND to_id <= $4 GROUP BY to_id >> 32) AS t ON t.ledger = l.sequence
WHERE l.sequence >= $1 AND l.sequence <= $2
ORDER BY l.sequence

-- ---- locks --------------------------------------------------------------------------------------

-- name: lock postgres
SELECT pg_catalog.pg_advisory_xact_lock($1)

-- name: lock_timeout postgres
-- Not set_config: what calls that may change the session for good, which is then reset.
SET LOCAL lock_timeout = @ms@

-- name: table_locker postgres
-- Which table of the schema readers are kept out of, and by whom: who has locked it, or else who is
-- in line to do so, since later readers queue behind that one.
SELECT c.relname || CASE WHEN l.granted THEN ' is locked by ' ELSE ' is about to be locked by ' END
    || coalesce(nullif(a.application_name, ''), a.usename::text, 'somebody') || ' (backend pid '
    || l.pid || '), whose transaction began ' || coalesce(pg_catalog.to_char(a.xact_start,
    'YYYY-MM-DD HH24:MI:SS TZ'), 'at a time unknown')
FROM pg_catalog.pg_locks l
JOIN pg_catalog.pg_class c ON c.oid = l.relation
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE n.nspname = $1 AND l.mode = 'AccessExclusiveLock' AND l.database
    = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
ORDER BY l.granted DESC, c.relname, l.pid
LIMIT 1

-- ---- which tables are there, and do they fit ----------------------------------------------------

-- name: tables postgres
SELECT c.relname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')

-- name: tables sqlite
SELECT name FROM sqlite_master WHERE type IN ('table', 'view')

-- name: columns postgres
-- Rows of (table, column, type, must be filled). The local store has no types to check.
SELECT c.relname, a.attname, t.typname, a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
    AND a.attgenerated = ''
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = $1 AND a.attnum > 0 AND NOT a.attisdropped AND c.relname
    IN ('ingest_store', 'ingest_coverage', 'ledgers', 'transactions', 'ingest_quarantine')

-- name: columns sqlite
SELECT m.name, c.name, '', c."notnull" = 1 AND c.dflt_value IS NULL AND c.pk = 0
FROM sqlite_master m, pragma_table_info(m.name) c
WHERE m.type = 'table'

-- name: keys_missing postgres
-- Upserts go by these keys, and the second writer of a ledger is told by them.
SELECT w.relname, w.attname
FROM (VALUES ('ingest_store', 'key'), ('ingest_coverage', 'lo'), ('ledgers', 'sequence'))
    AS w (relname, attname)
JOIN pg_catalog.pg_namespace n ON n.nspname = $1
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.relname
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = w.attname
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique
    AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)

-- ---- creating them ------------------------------------------------------------------------------

-- Times of the local store are text, RFC 3339 in UTC with six digits: they sort and compare as
-- times. hi and value are in no index, and pages keep room, so that updates stay on their page
-- (HOT).

-- name: has_schema postgres
SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1

-- name: create_schema postgres
-- Not IF NOT EXISTS: that wants a right on the database even where it does nothing.
CREATE SCHEMA "@schema@"

-- name: create_store postgres
CREATE TABLE @prefix@ingest_store (key text PRIMARY KEY, value text NOT NULL) WITH (fillfactor = 50)

-- name: create_store sqlite
CREATE TABLE ingest_store (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT

-- name: create_coverage postgres
CREATE TABLE @prefix@ingest_coverage (lo bigint PRIMARY KEY, hi bigint NOT NULL, CHECK (lo <= hi))
WITH (fillfactor = 70)

-- name: create_coverage sqlite
CREATE TABLE ingest_coverage (lo INTEGER PRIMARY KEY, hi INTEGER NOT NULL, CHECK (lo <= hi)) STRICT

-- name: create_ledgers postgres
CREATE TABLE @prefix@ledgers (sequence bigint PRIMARY KEY, hash text NOT NULL, previous_hash text,
    closed_at timestamptz NOT NULL, transaction_count int NOT NULL)
PARTITION BY RANGE (sequence)

-- name: create_ledgers sqlite
CREATE TABLE ledgers (sequence INTEGER PRIMARY KEY, hash TEXT NOT NULL, previous_hash TEXT,
    closed_at TEXT NOT NULL, transaction_count INTEGER NOT NULL) STRICT

-- name: create_transactions postgres
CREATE TABLE @prefix@transactions (to_id bigint PRIMARY KEY, ledger_number bigint NOT NULL,
    application_order int NOT NULL, hash text NOT NULL, status text, fee bigint,
    closed_at timestamptz NOT NULL, body json)
PARTITION BY RANGE (to_id)

-- name: create_transactions sqlite
CREATE TABLE transactions (to_id INTEGER PRIMARY KEY, ledger_number INTEGER NOT NULL,
    application_order INTEGER NOT NULL, hash TEXT NOT NULL, status TEXT, fee INTEGER,
    closed_at TEXT NOT NULL, body TEXT) STRICT

-- name: index_transactions postgres
CREATE INDEX transactions_hash ON @prefix@transactions (hash)

-- name: index_transactions sqlite
CREATE INDEX transactions_hash ON transactions (hash)

-- name: create_quarantine postgres
CREATE TABLE @prefix@ingest_quarantine (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    sequence bigint, reason text NOT NULL, source text, line text,
    at timestamptz NOT NULL DEFAULT now())

-- name: create_quarantine sqlite
CREATE TABLE ingest_quarantine (id INTEGER PRIMARY KEY, sequence INTEGER, reason TEXT NOT NULL,
    source TEXT, line TEXT, at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))) STRICT

-- name: index_quarantine postgres
CREATE INDEX ingest_quarantine_sequence ON @prefix@ingest_quarantine (sequence)

-- name: index_quarantine sqlite
CREATE INDEX ingest_quarantine_sequence ON ingest_quarantine (sequence)

-- ---- partitions, on PostgreSQL only; their names are computed -----------------------------------

-- name: partitions postgres
-- Rows of (parent, its kind, partition, is it in the same schema, its bounds, may we drop it).
SELECT p.relname, p.relkind, c.relname, c.relnamespace = p.relnamespace,
    pg_catalog.pg_get_expr(c.relpartbound, c.oid), pg_catalog.pg_has_role(c.relowner, 'USAGE')
    OR pg_catalog.pg_has_role(n.nspowner, 'USAGE')
FROM pg_catalog.pg_class p
JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
LEFT JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid AND p.relkind = 'p'
LEFT JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
WHERE n.nspname = $1 AND p.relname IN ('ledgers', 'transactions')

-- name: partition_create postgres
CREATE TABLE @prefix@@table@ (LIKE @prefix@@parent@ INCLUDING ALL)

-- name: partition_attach postgres
ALTER TABLE @prefix@@parent@ ATTACH PARTITION @prefix@@table@ FOR VALUES FROM (@from@) TO (@to@)

-- name: partition_drop postgres
DROP TABLE IF EXISTS @prefix@"@table@"

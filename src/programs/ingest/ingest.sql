-- What ingesting asks and writes, besides cursors and coverage, which are lib/ledgers' own.
-- @prefix@ is the network's schema, quoted, with a dot. COPY and the INSERT of many rows are in
-- writer.c: they are as wide as their rows.

-- lines: joined

-- ---- looking at what is there -------------------------------------------------------------------

-- name: has_column postgres
-- Has table $1 of schema $3 a column $2?
SELECT 1
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $1 AND a.attname = $2 AND n.nspname = $3 AND a.attnum > 0 AND NOT a.attisdropped

-- name: has_column sqlite
SELECT 1 FROM pragma_table_info($1) WHERE name = $2

-- name: has_ledgers
SELECT 1 FROM @prefix@ledgers LIMIT 1

-- name: count_ledgers
SELECT count(*) FROM @prefix@ledgers WHERE sequence >= $1

-- name: first_ledger
SELECT min(sequence) FROM @prefix@ledgers

-- name: first_transaction
-- to_id has an index everywhere; ledger_number need not.
SELECT ledger_number FROM @prefix@transactions ORDER BY to_id LIMIT 1

-- name: first_transaction_without_id
SELECT min(ledger_number) FROM @prefix@transactions

-- name: ledger_hash
SELECT hash FROM @prefix@ledgers WHERE sequence = $1

-- name: is_without_ledgers
-- Are there no ledgers, but transactions with ids from $1 to below $2?
SELECT 1
FROM @prefix@transactions
WHERE to_id >= $1 AND to_id < $2 AND NOT EXISTS (SELECT 1 FROM @prefix@ledgers)
LIMIT 1

-- name: neighbours postgres
-- $1: an array of sequences.
SELECT sequence, hash, previous_hash FROM @prefix@ledgers WHERE sequence = ANY ($1::bigint[])

-- name: neighbours sqlite
SELECT sequence, hash, previous_hash
FROM @prefix@ledgers
WHERE sequence IN (SELECT value FROM json_each($1))

-- name: covered_behind
-- The first covered ledger behind $1, which is not covered.
SELECT min(lo) FROM @prefix@ingest_coverage WHERE lo > $1

-- name: covered_up_to
-- The last covered ledger that is not above $1.
SELECT max(CASE WHEN hi < $1 THEN hi ELSE $1 END) FROM @prefix@ingest_coverage WHERE lo <= $1

-- name: ledgers_there
-- With how many transactions they have.
SELECT l.sequence, l.hash, l.transaction_count,
    (SELECT count(*) FROM @prefix@transactions AS t WHERE t.to_id >= l.sequence * 4294967296
    AND t.to_id < (l.sequence + 1) * 4294967296)
FROM @prefix@ledgers AS l
WHERE l.sequence BETWEEN $1 AND $2

-- ---- ledgers that are there in part ---------------------------------------------------------------

-- name: drop_ledgers
DELETE FROM @prefix@ledgers WHERE sequence BETWEEN $1 AND $2

-- name: drop_transactions
DELETE FROM @prefix@transactions WHERE to_id BETWEEN $1 AND $2

-- ---- rows that are lost at the lower end --------------------------------------------------------

-- name: is_partial
-- Are rows missing of ledger $1, whose transactions have the ids from $2 to below $3?
SELECT sequence
FROM @prefix@ledgers
WHERE sequence = $1 AND transaction_count > (SELECT count(*) FROM @prefix@transactions
    WHERE to_id >= $2 AND to_id < $3)

-- name: is_partial_without_id
SELECT sequence
FROM @prefix@ledgers
WHERE sequence = $1 AND transaction_count > (SELECT count(*) FROM @prefix@transactions
    WHERE ledger_number = $1)

-- name: last_lost
SELECT sequence
FROM @prefix@ledgers
WHERE sequence < $1 AND transaction_count > 0
ORDER BY sequence DESC LIMIT 1

-- ---- adopting: coverage from numbers ------------------------------------------------------------

-- name: measure_ledgers
-- Runs of numbers without a hole have one difference to their rank.
SELECT min(n), max(n)
FROM (SELECT n, n - row_number() OVER (ORDER BY n) AS run
    FROM (SELECT sequence AS n FROM @prefix@ledgers WHERE sequence >= $1) AS seen) AS ranked
GROUP BY run
ORDER BY 1

-- name: measure_transactions
SELECT min(n), max(n)
FROM (SELECT n, n - row_number() OVER (ORDER BY n) AS run
    FROM (SELECT DISTINCT ledger_number AS n FROM @prefix@transactions WHERE ledger_number >= $1)
    AS seen) AS ranked
GROUP BY run
ORDER BY 1

-- ---- leaving what was adopted -------------------------------------------------------------------

-- name: forget_own_rows
DELETE FROM @prefix@ingest_store WHERE substr(key, 1, 9) = 'holdfast.'

-- name: drop_coverage
DROP TABLE @prefix@ingest_coverage

-- name: drop_quarantine_table
DROP TABLE @prefix@ingest_quarantine

-- ---- counting coverage --------------------------------------------------------------------------

-- name: count_covered
SELECT sum(hi - lo + 1) FROM @prefix@ingest_coverage

-- name: count_covered_below
SELECT sum(CASE WHEN hi < $1 THEN hi ELSE $1 - 1 END - lo + 1)
FROM @prefix@ingest_coverage
WHERE lo < $1

-- ---- reset --------------------------------------------------------------------------------------

-- name: patience postgres
SET LOCAL lock_timeout = '10s'

-- name: lock_transactions postgres
LOCK TABLE ONLY @prefix@transactions IN SHARE ROW EXCLUSIVE MODE

-- name: lock_ledgers postgres
LOCK TABLE ONLY @prefix@ledgers IN SHARE ROW EXCLUSIVE MODE

-- name: empty_partition postgres
TRUNCATE @prefix@"@table@"

-- name: delete_transactions
DELETE FROM @prefix@transactions WHERE to_id >= $1

-- name: delete_ledgers
DELETE FROM @prefix@ledgers WHERE sequence > $1

-- name: delete_quarantine
DELETE FROM @prefix@ingest_quarantine WHERE sequence > $1

-- name: forget
DELETE FROM @prefix@ingest_store WHERE key = $1

-- ---- retention ----------------------------------------------------------------------------------

-- name: clock postgres
-- Milliseconds since 1970, by the clock that all processes share.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint

-- name: clock sqlite
SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)

-- name: not_partitioned postgres
SELECT count(*)
FROM pg_catalog.pg_class
WHERE relkind <> 'p' AND oid IN (pg_catalog.to_regclass('@prefix@ledgers'),
    pg_catalog.to_regclass('@prefix@transactions'))

-- name: closed_at postgres
-- Microseconds since 1970.
SELECT (extract(epoch FROM closed_at::timestamptz) * 1000000)::bigint
FROM @prefix@ledgers
WHERE sequence = $1

-- name: closed_at sqlite
SELECT unixepoch(substr(closed_at, 1, 19)) * 1000000 + CAST(substr(closed_at, 21, 6) AS INTEGER)
FROM @prefix@ledgers
WHERE sequence = $1

-- name: first_since
SELECT sequence
FROM @prefix@ledgers
WHERE closed_at >= $1 AND sequence >= coalesce((SELECT min(lo) FROM @prefix@ingest_coverage), 0)
ORDER BY sequence LIMIT 1

-- name: expire_ledgers
-- At most $2 rows at a time, so that others can write between them.
DELETE FROM @prefix@ledgers
WHERE sequence IN (SELECT sequence FROM @prefix@ledgers WHERE sequence < $1 ORDER BY sequence
    LIMIT $2)

-- name: expire_transactions
DELETE FROM @prefix@transactions
WHERE to_id IN (SELECT to_id FROM @prefix@transactions WHERE to_id < $1 ORDER BY to_id LIMIT $2)

-- ---- status -------------------------------------------------------------------------------------

-- name: networks postgres
-- Schemas that hold a network, and may we read them? ingest_store alone is not enough under any name
-- but ours: other programs have a table of that name.
SELECT n.nspname, pg_catalog.has_schema_privilege(n.oid, 'USAGE')
    AND bool_and(pg_catalog.has_table_privilege(c.oid, 'SELECT'))
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname IN ('ingest_store', 'ingest_coverage') AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND n.nspname ~ '^[a-zA-Z0-9_][a-zA-Z0-9_-]*$' AND n.nspname !~ '^pg_'
GROUP BY n.oid, n.nspname
HAVING n.nspname ~ '^ingest_[a-z0-9_][a-z0-9_-]{0,39}$'
    OR bool_or(c.relname = 'ingest_coverage')

-- name: has_coverage sqlite
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ingest_coverage'

-- name: age postgres
SELECT to_char(closed_at::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    (extract(epoch FROM pg_catalog.clock_timestamp() - closed_at::timestamptz) * 1000)::bigint
FROM @prefix@ledgers
WHERE sequence = $1

-- name: age sqlite
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', closed_at),
    CAST((julianday('now') - julianday(closed_at)) * 86400000 AS INTEGER)
FROM @prefix@ledgers
WHERE sequence = $1

-- name: estimate_transactions postgres
-- As of the last ANALYZE or VACUUM: counting them would take minutes.
SELECT sum(reltuples) FILTER (WHERE reltuples >= 0)::bigint
FROM pg_catalog.pg_class
WHERE relkind <> 'p' AND oid IN (SELECT inhrelid FROM pg_catalog.pg_inherits
    WHERE inhparent = pg_catalog.to_regclass('@prefix@transactions') UNION ALL
    SELECT pg_catalog.to_regclass('@prefix@transactions'))

-- name: count_quarantine
SELECT count(*) FROM @prefix@ingest_quarantine

-- name: read_activity
SELECT key, value FROM @prefix@ingest_store WHERE key IN ($1, $2, $3, $4, $5)

-- name: write_activity
INSERT INTO @prefix@ingest_store (key, value)
VALUES ($1, $2), ($3, $4), ($5, $6), ($7, $8)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: add_backfill postgres
-- Adds $3 to the row $1, which begins with $2.
INSERT INTO @prefix@ingest_store AS s (key, value)
VALUES ($1, $2)
ON CONFLICT (key) DO UPDATE SET value = (CASE WHEN s.value ~ '^[0-9]{1,18}$' THEN s.value::bigint
    ELSE 0 END + $3::bigint)::text

-- name: add_backfill sqlite
INSERT INTO @prefix@ingest_store AS s (key, value)
VALUES ($1, $2)
ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(s.value AS INTEGER) + $3 AS TEXT)

-- ---- quarantine ---------------------------------------------------------------------------------

-- name: add_quarantine
INSERT INTO @prefix@ingest_quarantine (sequence, reason, source, line, at)
VALUES ($1, $2, $3, $4, $5)

-- name: last_quarantined
SELECT max(sequence) FROM @prefix@ingest_quarantine

-- name: drop_quarantine
DELETE FROM @prefix@ingest_quarantine WHERE sequence BETWEEN $1 AND $2

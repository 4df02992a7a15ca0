-- What the interface reads of a network by itself; the rest comes from the collector's snapshots.
-- @prefix@ is the network's schema, quoted, with a dot.

-- lines: joined

-- name: ledgers postgres
SELECT sequence, hash, previous_hash, transaction_count,
    to_char(closed_at::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
FROM @prefix@ledgers
WHERE sequence BETWEEN $1 AND $2
ORDER BY sequence LIMIT $3

-- name: ledgers sqlite
SELECT sequence, hash, previous_hash, transaction_count, strftime('%Y-%m-%dT%H:%M:%fZ', closed_at)
FROM @prefix@ledgers
WHERE sequence BETWEEN $1 AND $2
ORDER BY sequence LIMIT $3

-- name: transactions postgres
SELECT to_id, hash, status, application_order, ledger_number, fee, body,
    to_char(closed_at::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
FROM @prefix@transactions
WHERE to_id BETWEEN $1 AND $2
ORDER BY to_id LIMIT $3

-- name: transactions sqlite
SELECT to_id, hash, status, application_order, ledger_number, fee, body,
    strftime('%Y-%m-%dT%H:%M:%fZ', closed_at)
FROM @prefix@transactions
WHERE to_id BETWEEN $1 AND $2
ORDER BY to_id LIMIT $3

-- name: transactions_by_hash postgres
-- There is an index on hash. PostgreSQL would not use it if the rows were ordered by the plain id.
SELECT to_id, hash, status, application_order, ledger_number, fee, body,
    to_char(closed_at::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
FROM @prefix@transactions
WHERE hash = $1 AND to_id >= $2
ORDER BY to_id + 0 LIMIT $3

-- name: transactions_by_hash sqlite
SELECT to_id, hash, status, application_order, ledger_number, fee, body,
    strftime('%Y-%m-%dT%H:%M:%fZ', closed_at)
FROM @prefix@transactions
WHERE hash = $1 AND to_id >= $2
ORDER BY to_id + 0 LIMIT $3

-- The registry of shared tables: ids, references, and the adoption of references that somebody else
-- has made. @relation@ is the table that is adopted, quoted, with its schema.

-- lines: joined

-- ---- one table ----------------------------------------------------------------------------------

-- name: find_id postgres
-- The id of cluster $1, database $2, table $3, as it is now.
SELECT advisory_id FROM holdfast.table_registry
WHERE cluster = $1 AND database = $2 AND table_name = $3 AND dropped_at IS NULL

-- name: find_id sqlite
SELECT advisory_id FROM table_registry
WHERE cluster = $1 AND database = $2 AND table_name = $3 AND dropped_ms IS NULL

-- name: live_id postgres
-- The id of cluster $1, database $2, table $3, locked against changes until the transaction ends.
SELECT advisory_id
FROM holdfast.table_registry
WHERE cluster = $1 AND database = $2 AND table_name = $3 AND dropped_at IS NULL FOR UPDATE

-- name: live_id sqlite
SELECT advisory_id
FROM table_registry
WHERE cluster = $1 AND database = $2 AND table_name = $3 AND dropped_ms IS NULL

-- name: register postgres
-- Changes nothing where the table has an id, or the id a table.
INSERT INTO holdfast.table_registry (advisory_id, cluster, database, table_name)
VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING

-- name: register sqlite
INSERT INTO table_registry (advisory_id, cluster, database, table_name, created_ms)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING

-- name: retire postgres
UPDATE holdfast.table_registry SET dropped_at = pg_catalog.now() WHERE advisory_id = $1

-- name: retire sqlite
UPDATE table_registry SET dropped_ms = CAST($2 AS INTEGER) WHERE advisory_id = CAST($1 AS INTEGER)

-- name: lease_machine postgres
-- A machine number for a second from now, or from $1 if that is later. The time is read once,
-- however the planner turns the statement.
WITH clock AS MATERIALIZED (SELECT pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp())
    * 1000)::bigint AS now_ms)
UPDATE holdfast.machines m
SET until_ms = greatest(clock.now_ms, $1::bigint) + 1000, holder = $2
FROM clock
WHERE m.machine = (SELECT f.machine FROM holdfast.machines f
    WHERE f.until_ms < (SELECT now_ms FROM clock) ORDER BY f.until_ms
    LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING m.machine, m.until_ms, clock.now_ms

-- name: lease_machine sqlite
INSERT INTO machines (machine, until_ms, holder)
SELECT chosen, max(CAST($1 AS INTEGER), CAST($3 AS INTEGER)) + 1000, $2
FROM (SELECT coalesce((SELECT machine FROM machines WHERE until_ms < CAST($3 AS INTEGER)
    ORDER BY until_ms LIMIT 1), (SELECT coalesce(max(machine), 0) + 1 FROM machines)) AS chosen)
WHERE chosen <= 1023
ON CONFLICT (machine) DO UPDATE SET until_ms = excluded.until_ms, holder = excluded.holder
RETURNING machine, until_ms, CAST($3 AS INTEGER)

-- ---- references ---------------------------------------------------------------------------------

-- name: add_ref postgres
INSERT INTO holdfast.table_context_refs (table_name, context_id, advisory_id)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING

-- name: add_ref sqlite
INSERT INTO table_context_refs (table_name, context_id, advisory_id)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING

-- name: count_refs postgres
-- Those of context $2, all, and those among them that another program has in its own relation.
SELECT count(*) FILTER (WHERE context_id = $2), count(*),
    count(followed) FILTER (WHERE context_id = $2 OR $2 IS NULL), min(followed::text)
FROM holdfast.table_context_refs
WHERE advisory_id = $1

-- name: count_refs sqlite
SELECT count(*) FILTER (WHERE context_id = $2), count(*), 0, ''
FROM table_context_refs
WHERE advisory_id = CAST($1 AS INTEGER)

-- name: delete_ref postgres
DELETE FROM holdfast.table_context_refs WHERE advisory_id = $1 AND context_id = $2

-- name: delete_ref sqlite
DELETE FROM table_context_refs WHERE advisory_id = CAST($1 AS INTEGER) AND context_id = $2

-- name: delete_refs postgres
DELETE FROM holdfast.table_context_refs WHERE advisory_id = $1

-- name: delete_refs sqlite
DELETE FROM table_context_refs WHERE advisory_id = CAST($1 AS INTEGER)

-- name: contexts postgres
-- Who refers to the live table $1, $2, $3.
SELECT c.context_id
FROM holdfast.table_context_refs c
JOIN holdfast.table_registry r USING (advisory_id)
WHERE r.cluster = $1 AND r.database = $2 AND r.table_name = $3 AND r.dropped_at IS NULL
ORDER BY c.context_id

-- name: contexts sqlite
SELECT c.context_id
FROM table_context_refs c
JOIN table_registry r USING (advisory_id)
WHERE r.cluster = $1 AND r.database = $2 AND r.table_name = $3 AND r.dropped_ms IS NULL
ORDER BY c.context_id

-- ---- the list, which is put together from these pieces ------------------------------------------

-- name: list postgres
SELECT r.cluster, r.database, r.table_name, r.advisory_id,
    pg_catalog.floor(extract(epoch FROM r.created_at) * 1000)::bigint,
    pg_catalog.floor(extract(epoch FROM r.dropped_at) * 1000)::bigint,
    (SELECT count(*) FROM holdfast.table_context_refs c WHERE c.advisory_id = r.advisory_id)
FROM holdfast.table_registry r
WHERE true

-- name: list sqlite
SELECT r.cluster, r.database, r.table_name, r.advisory_id, r.created_ms, r.dropped_ms,
    (SELECT count(*) FROM table_context_refs c WHERE c.advisory_id = r.advisory_id)
FROM table_registry r
WHERE true

-- name: list_live postgres
AND r.dropped_at IS NULL

-- name: list_live sqlite
AND r.dropped_ms IS NULL

-- name: list_named
AND r.cluster = $1 AND r.database = $2 AND r.table_name = $3

-- name: list_order
ORDER BY r.cluster, r.database, r.table_name, r.advisory_id

-- ---- adoption: the relation ---------------------------------------------------------------------

-- name: adopt_patience postgres
SET LOCAL lock_timeout = '5s'

-- name: adopt_find postgres
-- By schema $1 (NULL: by the search path) and name $2.
-- Also: has it the foreign key, and has an adoption forbidden NULL?
SELECT c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname), c.relkind IN ('r', 'p'),
    n.nspname = 'holdfast',
    EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.contype = 'f' AND f.conrelid = c.oid
        AND f.confrelid = 'holdfast.table_registry'::regclass),
    EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND t.tgnargs = 3
        AND t.tgname = 'holdfast_follow')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass(coalesce(pg_catalog.quote_ident($1::text) || '.', '')
    || pg_catalog.quote_ident($2))

-- name: adopt_lock postgres
LOCK TABLE @relation@ IN ACCESS EXCLUSIVE MODE

-- name: adopt_lock_to_write postgres
-- Others can go on reading.
LOCK TABLE @relation@ IN SHARE ROW EXCLUSIVE MODE

-- name: adopt_lock_to_read postgres
LOCK TABLE @relation@ IN ACCESS SHARE MODE

-- name: adopt_lock_registry postgres
LOCK TABLE holdfast.table_registry IN SHARE ROW EXCLUSIVE MODE

-- name: adopt_columns postgres
-- Of the relation with the oid $1; in a file, of the one that is called so.
SELECT a.attname, t.typname, a.attnotnull
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped

-- name: adopt_columns sqlite
SELECT lower(i.name), i."notnull"
FROM sqlite_schema s, pragma_table_info(s.name) i
WHERE s.type = 'table' AND s.name = $1 COLLATE NOCASE

-- name: adopt_add_column
ALTER TABLE @relation@ ADD COLUMN advisory_id bigint

-- name: adopt_widen_column postgres
ALTER TABLE @relation@ ALTER COLUMN advisory_id TYPE bigint

-- name: adopt_spellings postgres
-- The names in it, by their bytes, whatever collation the column has.
SELECT table_name::text COLLATE "C", count(*), count(advisory_id), min(advisory_id),
    max(advisory_id), 0, 'text', coalesce(max(pg_catalog.octet_length(context_id::text)), 0)
FROM @relation@
GROUP BY 1

-- name: adopt_spellings sqlite
SELECT table_name, count(*), count(advisory_id), min(advisory_id), max(advisory_id),
    sum(advisory_id IS NOT NULL AND typeof(advisory_id) <> 'integer'), typeof(table_name),
    coalesce(max(length(CAST(context_id AS BLOB))), 0)
FROM @relation@
GROUP BY table_name COLLATE BINARY, typeof(table_name)

-- name: adopt_spellings_without_id postgres
SELECT table_name::text COLLATE "C", count(*), 0, NULL, NULL, 0, 'text',
    coalesce(max(pg_catalog.octet_length(context_id::text)), 0)
FROM @relation@
GROUP BY 1

-- name: adopt_spellings_without_id sqlite
SELECT table_name, count(*), 0, NULL, NULL, 0, typeof(table_name),
    coalesce(max(length(CAST(context_id AS BLOB))), 0)
FROM @relation@
GROUP BY table_name COLLATE BINARY, typeof(table_name)

-- name: adopt_rows postgres
-- Some of the rows with the name $1.
SELECT context_id::text, advisory_id::text
FROM @relation@
WHERE table_name::text COLLATE "C" IS NOT DISTINCT FROM $1::text
ORDER BY 1, 2 LIMIT 100

-- name: adopt_rows sqlite
SELECT CAST(context_id AS TEXT), CAST(advisory_id AS TEXT)
FROM @relation@
WHERE CAST(table_name AS TEXT) COLLATE BINARY IS CAST($1 AS TEXT)
ORDER BY 1, 2 LIMIT 100

-- name: adopt_rows_without_id postgres
SELECT context_id::text, NULL
FROM @relation@
WHERE table_name::text COLLATE "C" IS NOT DISTINCT FROM $1::text
ORDER BY 1, 2 LIMIT 100

-- name: adopt_rows_without_id sqlite
SELECT CAST(context_id AS TEXT), NULL
FROM @relation@
WHERE CAST(table_name AS TEXT) COLLATE BINARY IS CAST($1 AS TEXT)
ORDER BY 1, 2 LIMIT 100

-- ---- adoption: the registry ---------------------------------------------------------------------

-- name: adopt_clashes postgres
-- $1 is JSON, [[cluster, database, table, id, place], ...]. Rows of (place, live id of that name)
-- and of (place, 0, name of the row with that id, is it retired).
WITH wanted AS MATERIALIZED (SELECT j.e->>0 AS cluster, j.e->>1 AS database, j.e->>2 AS table_name,
    (j.e->>3)::bigint AS id, (j.e->>4)::bigint AS place
    FROM pg_catalog.jsonb_array_elements($1::jsonb) AS j (e))
SELECT w.place, r.advisory_id, '', false
FROM wanted w
JOIN holdfast.table_registry r USING (cluster, database, table_name)
WHERE r.dropped_at IS NULL
UNION ALL
SELECT w.place, 0, CASE WHEN r.cluster <> '' THEN r.cluster || '/' ELSE '' END || r.database || '.'
    || r.table_name, r.dropped_at IS NOT NULL
FROM wanted w
JOIN holdfast.table_registry r ON r.advisory_id = w.id
WHERE r.dropped_at IS NOT NULL OR (r.cluster, r.database, r.table_name) <> (w.cluster, w.database,
    w.table_name)

-- name: adopt_clashes sqlite
WITH wanted AS MATERIALIZED (SELECT json_extract(value, '$[0]') AS cluster,
    json_extract(value, '$[1]') AS database, json_extract(value, '$[2]') AS table_name,
    json_extract(value, '$[3]') AS id, json_extract(value, '$[4]') AS place FROM json_each($1))
SELECT w.place, r.advisory_id, '', 'f'
FROM wanted w
JOIN table_registry r ON r.cluster = w.cluster AND r.database = w.database
    AND r.table_name = w.table_name
WHERE r.dropped_ms IS NULL
UNION ALL
SELECT w.place, 0, CASE WHEN r.cluster <> '' THEN r.cluster || '/' ELSE '' END || r.database || '.'
    || r.table_name, iif(r.dropped_ms IS NULL, 'f', 't')
FROM wanted w
JOIN table_registry r ON r.advisory_id = w.id
WHERE r.dropped_ms IS NOT NULL OR (r.cluster, r.database, r.table_name) <> (w.cluster, w.database,
    w.table_name)

-- name: adopt_retire postgres
-- $1 is JSON, [[old id, id], ...]. The lock of the old ids is held.
UPDATE holdfast.table_registry r
SET dropped_at = pg_catalog.now()
FROM pg_catalog.jsonb_array_elements($1::jsonb) AS j (e)
WHERE r.advisory_id = (j.e->>0)::bigint

-- name: adopt_retire sqlite
UPDATE table_registry
SET dropped_ms = CAST($2 AS INTEGER)
WHERE advisory_id IN (SELECT json_extract(value, '$[0]') FROM json_each($1))

-- name: adopt_register postgres
-- An id that was retired is the table's again. They are taken from the relation with the oid $2.
INSERT INTO holdfast.table_registry AS r (advisory_id, cluster, database, table_name, followed)
SELECT (j.e->>3)::bigint, j.e->>0, j.e->>1, j.e->>2, $2::oid::regclass
FROM pg_catalog.jsonb_array_elements($1::jsonb) AS j (e)
ON CONFLICT (advisory_id) DO UPDATE SET dropped_at = NULL, followed = excluded.followed
WHERE r.dropped_at IS NOT NULL OR r.followed IS DISTINCT FROM excluded.followed

-- name: adopt_register sqlite
INSERT INTO table_registry (advisory_id, cluster, database, table_name, created_ms)
SELECT json_extract(value, '$[3]'), json_extract(value, '$[0]'), json_extract(value, '$[1]'),
    json_extract(value, '$[2]'), CAST($2 AS INTEGER)
FROM json_each($1)
WHERE true
ON CONFLICT (advisory_id) DO UPDATE SET dropped_ms = NULL

-- name: adopt_move_refs postgres
UPDATE holdfast.table_context_refs c
SET advisory_id = (j.e->>1)::bigint
FROM pg_catalog.jsonb_array_elements($1::jsonb) AS j (e)
WHERE c.advisory_id = (j.e->>0)::bigint

-- name: adopt_move_refs sqlite
UPDATE OR REPLACE table_context_refs
SET advisory_id = (SELECT json_extract(value, '$[1]') FROM json_each($1)
    WHERE json_extract(value, '$[0]') = advisory_id)
WHERE advisory_id IN (SELECT json_extract(value, '$[0]') FROM json_each($1))

-- ---- adoption: ids and references ---------------------------------------------------------------

-- name: adopt_make_ids sqlite
-- A table of its own: SQLite would look through the JSON for every row.
CREATE TEMP TABLE IF NOT EXISTS holdfast_ids (raw TEXT PRIMARY KEY, id INTEGER, text TEXT)
    WITHOUT ROWID

-- name: adopt_spread_ids sqlite
-- $1 is JSON, [[table_name, id, text], ...].
INSERT OR REPLACE INTO temp.holdfast_ids
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each($1)

-- name: adopt_give_ids postgres
-- $1 as above.
UPDATE @relation@ AS t
SET advisory_id = (j.e->>1)::bigint
FROM pg_catalog.jsonb_array_elements($1::jsonb) AS j (e)
WHERE t.table_name::text COLLATE "C" = j.e->>0 AND t.advisory_id IS NULL

-- name: adopt_give_ids sqlite
UPDATE @relation@
SET advisory_id = (SELECT i.id FROM temp.holdfast_ids i WHERE i.raw = table_name)
WHERE advisory_id IS NULL

-- name: adopt_forget_refs postgres
-- Those that are no more in the relation with the oid $1, or whose relation is no more.
WITH left_over AS (UPDATE holdfast.table_registry r SET followed = NULL
    WHERE r.followed IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c
        WHERE c.oid = r.followed))
DELETE FROM holdfast.table_context_refs c
WHERE (c.followed = $1::oid AND NOT EXISTS (SELECT FROM @relation@ t
        WHERE t.advisory_id = c.advisory_id AND t.context_id::text = c.context_id))
    OR (c.followed IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_class r
        WHERE r.oid = c.followed))

-- name: adopt_copy_refs postgres
-- Relation and registry are in one database; the relation has the oid $2.
INSERT INTO holdfast.table_context_refs AS c (table_name, context_id, advisory_id, followed)
SELECT DISTINCT j.e->>2, t.context_id::text, t.advisory_id, $2::oid::regclass
FROM @relation@ AS t
JOIN pg_catalog.jsonb_array_elements($1::jsonb) AS j (e) ON t.table_name::text COLLATE "C" = j.e->>0
WHERE t.context_id::text <> ''
ON CONFLICT (advisory_id, context_id) DO UPDATE SET followed = excluded.followed
WHERE c.followed IS DISTINCT FROM excluded.followed

-- name: adopt_collect_refs sqlite
-- They are in two files: the references go over as JSON, [[text, context, id], ...].
SELECT json_group_array(json_array(text, context, id))
FROM (SELECT DISTINCT i.text AS text, CAST(t.context_id AS TEXT) AS context, i.id AS id
    FROM @relation@ AS t JOIN temp.holdfast_ids i ON i.raw = t.table_name
    WHERE CAST(t.context_id AS TEXT) <> '')

-- name: adopt_add_refs sqlite
INSERT INTO table_context_refs (table_name, context_id, advisory_id)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each($1)
WHERE true
ON CONFLICT DO NOTHING

-- ---- adoption: constraints ----------------------------------------------------------------------

-- name: adopt_check_now postgres
-- Deferred checks of the rows that were changed would forbid to alter the table.
SET CONSTRAINTS ALL IMMEDIATE

-- name: adopt_set_not_null postgres
ALTER TABLE @relation@ ALTER COLUMN advisory_id SET NOT NULL

-- name: adopt_may_refer postgres
-- May we make the foreign key, and what is the one called that is there?
SELECT pg_catalog.has_table_privilege('holdfast.table_registry', 'REFERENCES'),
    coalesce((SELECT pg_catalog.quote_ident(conname) FROM pg_catalog.pg_constraint
        WHERE contype = 'f' AND conrelid = $1::oid
            AND confrelid = 'holdfast.table_registry'::regclass LIMIT 1), '')

-- name: adopt_add_foreign_key postgres
ALTER TABLE @relation@ ADD FOREIGN KEY (advisory_id)
    REFERENCES holdfast.table_registry (advisory_id)

-- name: adopt_drop_foreign_key postgres
ALTER TABLE @relation@ DROP CONSTRAINT @name@

-- name: adopt_follow postgres
SELECT holdfast.follow($1::oid, $2, $3, $4::boolean)

-- name: adopt_leave postgres
SELECT holdfast.leave($1::oid)

-- name: adopt_read_definition sqlite
-- SQLite cannot add NOT NULL to a column. It keeps CREATE TABLE as it was written, and that is what
-- is changed.
SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = $1 COLLATE NOCASE

-- name: adopt_schema_version sqlite
PRAGMA schema_version

-- name: adopt_open_schema sqlite
PRAGMA writable_schema = ON

-- name: adopt_write_definition sqlite
UPDATE sqlite_schema SET sql = $1 WHERE type = 'table' AND name = $2 COLLATE NOCASE

-- name: adopt_set_schema_version sqlite
PRAGMA schema_version = @version@

-- name: adopt_close_schema sqlite
PRAGMA writable_schema = RESET

-- name: adopt_is_not_null sqlite
SELECT "notnull" FROM pragma_table_info($1) WHERE lower(name) = 'advisory_id'

-- $5 bounds the wait for the table: a statement that misses its deadline costs the session its locks.
SELECT noted.wanted, noted.taken_by, noted.key
FROM (SELECT pg_catalog.set_config('lock_timeout', $5::text, true) OFFSET 0) AS bounded,
     LATERAL holdfast.note_labels($1::bigint[], $2::smallint[], $3::text[], $4::text[]) AS noted

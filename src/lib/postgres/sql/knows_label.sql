-- The first of the arrays, which note_labels would get as well.
SELECT holdfast.knows_label(($1::bigint[])[1], ($2::smallint[])[1], ($3::text[])[1])
FROM (SELECT pg_catalog.set_config('lock_timeout', $4::text, true) OFFSET 0) AS bounded

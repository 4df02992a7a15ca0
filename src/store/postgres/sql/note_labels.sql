SELECT wanted, taken_by, key
FROM holdfast.note_labels($1::bigint[], $2::smallint[], $3::text[], $4::text[])

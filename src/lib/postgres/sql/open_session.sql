SELECT v, o.epoch, o.leftovers, pg_catalog.pg_backend_pid()
FROM holdfast.schema_version() AS v
LEFT JOIN LATERAL (SELECT * FROM holdfast.open_session($1::text, $2::text, $3::int) WHERE v = $4::int) AS o ON true

SELECT v, CASE WHEN v = $4::int THEN holdfast.open_session($1::text, $2::text, $3::int) END,
       pg_catalog.pg_backend_pid()
FROM holdfast.schema_version() AS v

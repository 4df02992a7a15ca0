SELECT holdfast.open_session($1::text, $2::text, $3::int)

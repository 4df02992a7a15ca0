SELECT holdfast.renew($1::bigint[], $2::smallint[], $3::boolean, $4::int[])

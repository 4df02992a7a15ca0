SELECT blocked, token FROM holdfast.take($1::bigint[], $2::smallint[], $3::boolean, $4::int[])

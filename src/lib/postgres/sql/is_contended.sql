-- $1 classid, $2 objid, $3 objsubid, $4 companion class, $5 companion.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory'
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
      AND (l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid AND l.objsubid = $3::smallint AND NOT l.granted
           OR l.classid = $4::bigint::oid AND l.objid = $5::bigint::oid AND l.objsubid = 2 AND l.granted))

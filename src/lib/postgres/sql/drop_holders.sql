-- Records of released locks of this process ($2 host, $3 pid), whichever session held them. The
-- table has the sequence's part of the token only.
DELETE FROM holdfast.holders h
USING holdfast.sessions s
WHERE s.host = $2::text AND s.pid = $3::int AND h.backend_pid = s.backend_pid
  AND h.token = ANY (SELECT t & 1099511627775 FROM pg_catalog.unnest($1::bigint[]) AS t)

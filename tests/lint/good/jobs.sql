/* SELECT pg_advisory_lock(1); /* nested */ SELECT pg_advisory_lock(2); */
REVOKE EXECUTE ON FUNCTION pg_advisory_lock(bigint) FROM public;
BEGIN;
SELECT pg_advisory_xact_lock(51515151);
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM jobs;
COMMIT;
-- holdfast-ignore: unresolved-key the caller gives the key
SELECT pg_try_advisory_xact_lock(q.id) FROM (SELECT id FROM jobs LIMIT 1) q;
SELECT pg_advisory_xact_lock(('x'||left(encode(sha256(convert_to('booking:7','UTF8')),'hex'),16))::bit(64)::bigint) WHERE false;

-- Tokens that no two servers give. Version 1 put the number of the timeline above the sequence, but
-- two standbys of one primary are both promoted to the same number, and a schema that is dropped and
-- installed again starts over.
--
-- A token is still epoch * 2^40 plus the sequence, but the epoch stays what it was, so that sessions
-- which were opened before this change and after it agree. Each start of a server moves the sequence
-- instead, to the clock: a second is 2^32 tokens, more than any server gives, so the clock is ahead of
-- all that were given anywhere. Where it was set back, the sequence goes on from what this server
-- knows of, with a gap of random size, so that two that know the same do not give the same.

-- After this call the epoch of the running server is base + timeline.
DO $$BEGIN PERFORM holdfast.current_epoch(); END$$;

ALTER TABLE holdfast.epoch ADD COLUMN epoch int;
UPDATE holdfast.epoch SET epoch = base + timeline;
ALTER TABLE holdfast.epoch
    ALTER COLUMN epoch SET NOT NULL,
    DROP COLUMN system_identifier,
    DROP COLUMN base,
    DROP COLUMN timeline;

-- A crash and a promotion empty this table, and started tells that the server was restarted.
DELETE FROM holdfast.boot;
ALTER TABLE holdfast.boot
    DROP COLUMN system_identifier,
    DROP COLUMN wal_prefix,
    ADD COLUMN started timestamptz NOT NULL;

CREATE OR REPLACE FUNCTION holdfast.known_epoch() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.epoch FROM holdfast.boot b WHERE b.started = pg_postmaster_start_time()
$$;

-- The token that belongs to this moment, counted from 2025-01-01.
CREATE FUNCTION holdfast.clock_token() RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT floor((extract(epoch FROM clock_timestamp()) - 1735689600) * 4294967296)::bigint
$$;

CREATE OR REPLACE FUNCTION holdfast.current_epoch() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_epoch int := holdfast.known_epoch();
    base bigint;
    past bigint;
BEGIN
    IF found_epoch IS NOT NULL THEN
        RETURN found_epoch;
    END IF;

    LOCK TABLE holdfast.boot IN EXCLUSIVE MODE;
    found_epoch := holdfast.known_epoch();
    IF found_epoch IS NOT NULL THEN
        RETURN found_epoch;
    END IF;

    -- The jump must be on disk (and on synchronous standbys) before anybody gets a token above it.
    PERFORM set_config('synchronous_commit', 'on', true);
    SELECT e.epoch, e.epoch::bigint << 40 INTO found_epoch, base FROM holdfast.epoch e;
    past := nextval('holdfast.token') + 16777216; -- a crash or a promotion has lost some
    PERFORM setval('holdfast.token', CASE WHEN holdfast.clock_token() - base > past
                                          THEN holdfast.clock_token() - base
                                          ELSE past + (random() * 68719476736)::bigint END);
    DELETE FROM holdfast.boot;
    INSERT INTO holdfast.boot (started, epoch) VALUES (pg_postmaster_start_time(), found_epoch);
    RETURN found_epoch;
END $$;

-- Moves the sequence above a token that it has not given, and says whether it had to: another server
-- gave it, whose clock was ahead. One from tomorrow is nobody's token.
CREATE FUNCTION holdfast.lift_token(seen bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    base bigint := (SELECT e.epoch::bigint << 40 FROM holdfast.epoch e);
BEGIN
    IF seen <= (SELECT base + t.last_value FROM holdfast.token t)
       OR seen > holdfast.clock_token() + 86400 * 4294967296 THEN
        RETURN false;
    END IF;
    LOCK TABLE holdfast.boot IN EXCLUSIVE MODE;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM setval('holdfast.token', greatest(seen - base, t.last_value) + 16777216)
    FROM holdfast.token t;
    RETURN true;
END $$;

-- Accepts a token for a resource unless a greater one was seen; call it in the transaction that
-- writes to the resource. The next token is above all that are met here, also if this one is refused.
CREATE OR REPLACE FUNCTION holdfast.fence(resource text, token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    seen bigint;
BEGIN
    IF resource IS NULL OR token IS NULL THEN
        RAISE EXCEPTION 'holdfast.fence: resource and token must not be null'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
    INSERT INTO holdfast.fences AS f (resource, token) VALUES ($1, $2)
    ON CONFLICT ON CONSTRAINT fences_pkey DO UPDATE SET token = excluded.token
    WHERE f.token <= excluded.token;
    IF FOUND THEN
        PERFORM holdfast.lift_token(token);
    ELSE
        SELECT f.token INTO seen FROM holdfast.fences f WHERE f.resource = $1;
        PERFORM holdfast.lift_token(seen);
        RAISE EXCEPTION 'fenced: token % for ''%'' is older than %, which was seen before', token, resource, seen
            USING ERRCODE = 'HF001', HINT = 'Another holder took the lock since; stop and acquire it again.';
    END IF;
END $$;

-- Where an append attaches, and why nobody can tell what came of it. Servers that share a store may have
-- tables of the same name.
ALTER TABLE holdfast.appends
    ADD COLUMN server text NOT NULL DEFAULT '',
    ADD COLUMN reason text NOT NULL DEFAULT '';
DROP INDEX holdfast.appends_attaching;
CREATE UNIQUE INDEX appends_attaching ON holdfast.appends (table_name, server) WHERE state = 'attaching';

CREATE OR REPLACE FUNCTION holdfast.schema_version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2';

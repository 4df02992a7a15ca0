-- Shared tables beside the program whose table_context_refs was adopted. That program mints ids of
-- its own, drops tables and makes them again, and knows nothing of us: triggers on its relation keep
-- the registry on the ids that it uses. followed is the relation that a row was taken from.

ALTER TABLE holdfast.table_registry ADD COLUMN followed regclass;
ALTER TABLE holdfast.table_context_refs ADD COLUMN followed regclass;
CREATE INDEX table_context_refs_followed ON holdfast.table_context_refs (followed)
WHERE followed IS NOT NULL;

-- "table", "database.table" or "cluster/database.table", as the library reads it. NULL: no such name.
CREATE FUNCTION holdfast.table_parts(name text, INOUT cluster text, INOUT database text, OUT table_name text)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fine CONSTANT text := '^(?! )[^''"`\\./[:cntrl:]]+(?<! )$';
BEGIN
    IF strpos(name, '/') > 0 THEN
        cluster := left(name, strpos(name, '/') - 1);
        name := substr(name, strpos(name, '/') + 1);
        IF cluster !~ fine THEN
            RETURN;
        END IF;
    END IF;
    IF strpos(name, '.') > 0 THEN
        database := left(name, strpos(name, '.') - 1);
        name := substr(name, strpos(name, '.') + 1);
    END IF;
    IF name ~ fine AND database ~ fine
       AND greatest(octet_length(name), octet_length(database), octet_length(cluster)) <= 200 THEN
        table_name := name;
    END IF;
END $$;

-- A new id, as the library mints them: a machine number that is ours for this millisecond.
CREATE FUNCTION holdfast.mint_id() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    id bigint;
BEGIN
    UPDATE holdfast.machines m SET until_ms = now_ms, holder = 'SQL'
    WHERE m.machine = (SELECT f.machine FROM holdfast.machines f WHERE f.until_ms < now_ms
                       ORDER BY f.until_ms LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING (now_ms << 22) | (m.machine::bigint << 12) INTO id;
    IF id IS NULL THEN
        RAISE EXCEPTION 'all machine numbers of holdfast are in use' USING ERRCODE = '53000',
            HINT = 'They are leased for a second each: try again.';
    END IF;
    RETURN id;
END $$;

-- The id of a shared table, which is the key of its lock; NULL: it has none.
CREATE FUNCTION holdfast.find_table(name text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.advisory_id FROM holdfast.table_parts($1, '', 'default') p
    JOIN holdfast.table_registry r USING (cluster, database, table_name)
    WHERE r.dropped_at IS NULL
$$;

-- The same, but the table gets an id if it has none: the one that is given, or a new one. What it
-- returns is the id to use.
CREATE FUNCTION holdfast.register_table(name text, id bigint DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts record := holdfast.table_parts(name, '', 'default');
    found_id bigint;
    wanted bigint := id;
BEGIN
    IF parts.table_name IS NULL THEN
        RAISE EXCEPTION 'holdfast.register_table: ''%'' is no name of a shared table', name
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    LOOP
        found_id := holdfast.find_table(name);
        IF found_id IS NOT NULL THEN
            RETURN found_id;
        END IF;
        wanted := coalesce(id, holdfast.mint_id());
        INSERT INTO holdfast.table_registry AS r (advisory_id, cluster, database, table_name)
        VALUES (wanted, parts.cluster, parts.database, parts.table_name)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN wanted;
        END IF;
        IF EXISTS (SELECT FROM holdfast.table_registry r WHERE r.advisory_id = register_table.id) THEN
            RAISE EXCEPTION 'holdfast.register_table: the id % is, or was, that of another table', id
                USING ERRCODE = 'unique_violation';
        END IF;
    END LOOP;
END $$;

-- Makes id the id of the table. Whoever holds the table by the id that it had is waited for: ids
-- change only under their lock. False, with a warning: the id cannot be that table's.
CREATE FUNCTION holdfast.follow_id(relation regclass, cluster text, database text, table_name text, id bigint)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known bigint;
BEGIN
    IF EXISTS (SELECT FROM holdfast.table_registry r WHERE r.advisory_id = id
               AND (r.cluster, r.database, r.table_name) <> ($2, $3, $4)) THEN
        RAISE WARNING 'holdfast: the id % of ''%.%'' in % is, or was, that of another table',
            id, database, table_name, relation
            USING HINT = 'Run ''holdfast table adopt'' to see which; until then no lock covers both.';
        RETURN false;
    END IF;
    LOOP
        SELECT r.advisory_id INTO known FROM holdfast.table_registry r
        WHERE (r.cluster, r.database, r.table_name) = ($2, $3, $4) AND r.dropped_at IS NULL;
        EXIT WHEN known = id;
        IF EXISTS (SELECT FROM holdfast.table_context_refs c
                   WHERE c.advisory_id = known AND c.followed = relation) THEN
            RAISE WARNING 'holdfast: % has two ids for ''%.%'', % and %: the first one stays',
                relation, database, table_name, known, id
                USING HINT = 'All rows of a table have the same id: repair them.';
            RETURN false;
        END IF;
        PERFORM pg_advisory_xact_lock(known); -- none: the function is strict
        UPDATE holdfast.table_registry r SET dropped_at = now()
        WHERE r.advisory_id = known AND r.dropped_at IS NULL;
        IF known IS NULL OR FOUND THEN
            INSERT INTO holdfast.table_registry AS r (advisory_id, cluster, database, table_name, followed)
            VALUES (id, $2, $3, $4, relation) ON CONFLICT DO NOTHING;
            UPDATE holdfast.table_registry r SET dropped_at = NULL, followed = relation
            WHERE r.advisory_id = id AND r.dropped_at IS NOT NULL
              AND NOT EXISTS (SELECT FROM holdfast.table_registry l WHERE l.dropped_at IS NULL
                              AND (l.cluster, l.database, l.table_name) = ($2, $3, $4));
            UPDATE holdfast.table_context_refs c SET advisory_id = id
            WHERE c.advisory_id = known
              AND EXISTS (SELECT FROM holdfast.table_registry r WHERE r.advisory_id = id);
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- Triggers run with the rights of the schema's owner, so they touch values of built-in types only:
-- the code of other types would run with these rights, too.
CREATE FUNCTION holdfast.check_types(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
               WHERE a.attrelid = relation AND a.attname IN ('table_name', 'context_id', 'advisory_id')
                 AND t.typnamespace <> 'pg_catalog'::regnamespace) THEN
        RAISE EXCEPTION 'holdfast: % cannot be followed, since its columns are not of built-in types', relation
            USING ERRCODE = 'wrong_object_type';
    END IF;
END $$;

-- The trigger behind each change of an adopted relation; its arguments are cluster and database of
-- names that have none.
CREATE FUNCTION holdfast.follow_refs() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    relation regclass := coalesce(pg_partition_root(TG_RELID), TG_RELID);
    parts record;
BEGIN
    PERFORM holdfast.check_types(TG_RELID);
    IF TG_OP = 'TRUNCATE' THEN
        DELETE FROM holdfast.table_context_refs c WHERE c.followed = relation;
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM holdfast.table_context_refs c
        WHERE c.followed = relation AND c.advisory_id = OLD.advisory_id AND c.context_id = OLD.context_id::text;
        -- Temporary tables come by the million, and nobody of ours has locked this one.
        IF OLD.table_name::text ~ '^t_' THEN
            DELETE FROM holdfast.table_registry r
            WHERE r.advisory_id = OLD.advisory_id AND r.followed = relation
              AND NOT EXISTS (SELECT FROM holdfast.table_context_refs c WHERE c.advisory_id = r.advisory_id)
              AND NOT EXISTS (SELECT FROM holdfast.labels l WHERE l.key = r.advisory_id);
        END IF;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN NULL;
    END IF;
    parts := holdfast.table_parts(NEW.table_name::text, TG_ARGV[0], TG_ARGV[1]);
    IF parts.table_name IS NOT NULL AND NEW.advisory_id > 0
       AND holdfast.follow_id(relation, parts.cluster, parts.database, parts.table_name, NEW.advisory_id)
       AND octet_length(NEW.context_id::text) BETWEEN 1 AND 1000 THEN
        INSERT INTO holdfast.table_context_refs (table_name, context_id, advisory_id, followed)
        VALUES (concat(nullif(parts.cluster, '') || '/', parts.database, '.', parts.table_name),
                NEW.context_id::text, NEW.advisory_id, relation)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;

-- A row without an id gets that of its table.
CREATE FUNCTION holdfast.fill_id() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts record;
BEGIN
    PERFORM holdfast.check_types(TG_RELID);
    parts := holdfast.table_parts(NEW.table_name::text, TG_ARGV[0], TG_ARGV[1]);
    IF parts.table_name IS NOT NULL THEN
        NEW.advisory_id := holdfast.register_table(
            concat(nullif(parts.cluster, '') || '/', parts.database, '.', parts.table_name));
    END IF;
    RETURN NEW;
END $$;

-- Begins to follow a relation, with its owner's rights. forbids_null: NOT NULL was added for us.
CREATE FUNCTION holdfast.follow(relation regclass, cluster text, database text, forbids_null boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    args text := format('(%L, %L%s)', cluster, database, CASE WHEN forbids_null THEN ', ''not_null''' END);
BEGIN
    PERFORM holdfast.check_types(relation);
    EXECUTE format('CREATE OR REPLACE TRIGGER holdfast_fill BEFORE INSERT OR UPDATE ON %s FOR EACH ROW
                    WHEN (NEW.advisory_id IS NULL) EXECUTE FUNCTION holdfast.fill_id%s', relation, args);
    EXECUTE format('CREATE OR REPLACE TRIGGER holdfast_follow AFTER INSERT OR DELETE OR
                    UPDATE OF table_name, context_id, advisory_id ON %s FOR EACH ROW
                    EXECUTE FUNCTION holdfast.follow_refs%s', relation, args);
    EXECUTE format('CREATE OR REPLACE TRIGGER holdfast_truncate AFTER TRUNCATE ON %s
                    FOR EACH STATEMENT EXECUTE FUNCTION holdfast.follow_refs%s', relation, args);
END $$;

-- Undoes it, and what adoption has added to the relation. False: it was not adopted.
CREATE FUNCTION holdfast.leave(relation regclass) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
    was_adopted boolean := false;
BEGIN
    IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = relation AND t.tgname = 'holdfast_follow'
               AND t.tgnargs = 3) THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN advisory_id DROP NOT NULL', relation);
    END IF;
    FOR name IN SELECT c.conname FROM pg_constraint c WHERE c.contype = 'f' AND c.conrelid = relation
                AND c.confrelid = 'holdfast.table_registry'::regclass LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', relation, name);
        was_adopted := true;
    END LOOP;
    FOR name IN SELECT t.tgname FROM pg_trigger t WHERE t.tgrelid = relation AND NOT t.tgisinternal
                AND t.tgname IN ('holdfast_fill', 'holdfast_follow', 'holdfast_truncate') LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', name, relation);
        was_adopted := true;
    END LOOP;
    DELETE FROM holdfast.table_context_refs c WHERE c.followed = relation;
    UPDATE holdfast.table_registry r SET followed = NULL WHERE r.followed = relation;
    RETURN was_adopted;
END $$;

CREATE OR REPLACE FUNCTION holdfast.schema_version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 3';

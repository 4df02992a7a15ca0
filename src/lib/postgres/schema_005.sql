-- Locks by label for plain SQL: whoever has no library computes the same keys, locks with the same
-- care, and sees who holds what. Nothing in here has more rights than its caller.

-- ---- keys: the same numbers as lib/keys ---------------------------------------------------------

-- In two halves, because bigint refuses to overflow. The prime is 2^40 + 435.
CREATE FUNCTION holdfast.fnv1a64(bytes bytea) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    high bigint := 3421674724;
    low bigint := 2216829733;
BEGIN
    FOR i IN 0 .. octet_length(bytes) - 1 LOOP
        low := low # get_byte(bytes, i);
        high := (high * 435 + (low * 435 >> 32) + (low << 8)) & 4294967295;
        low := low * 435 & 4294967295;
    END LOOP;
    RETURN high << 32 | low;
END $$;

-- Over the bytes of UTF-8: FNV-1a of 32 bits; over the UTF-16 code units that they stand for: the
-- same, or Java's hash.
CREATE FUNCTION holdfast.hash32(bytes bytea, over_units boolean, is_java boolean) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    hash bigint := CASE WHEN is_java THEN 0 ELSE 2166136261 END;
    byte int;
    missing int := 0; -- bytes of the character
    point int;
    unit int;
BEGIN
    FOR i IN 0 .. octet_length(bytes) - 1 LOOP
        byte := get_byte(bytes, i);
        IF byte < 128 OR NOT over_units THEN
            point := byte;
        ELSIF byte < 192 THEN
            point := (point << 6) | (byte & 63);
            missing := missing - 1;
        ELSE
            missing := CASE WHEN byte < 224 THEN 1 WHEN byte < 240 THEN 2 ELSE 3 END;
            point := byte & (63 >> missing);
        END IF;
        CONTINUE WHEN missing > 0;
        FOREACH unit IN ARRAY CASE WHEN point < 65536 THEN ARRAY[point]
                                   ELSE ARRAY[55232 + (point >> 10), 56320 + (point & 1023)] END LOOP
            hash := CASE WHEN is_java THEN hash * 31 + unit ELSE (hash # unit) * 16777619 END & 4294967295;
        END LOOP;
    END LOOP;
    RETURN hash;
END $$;

-- Four bits at a time.
CREATE FUNCTION holdfast.crc32(bytes bytea) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    steps CONSTANT bigint[] := ARRAY[0, 498536548, 997073096, 651767980, 1994146192, 1802195444, 1303535960, 1342533948,
        3988292384, 4027552580, 3604390888, 3412177804, 2607071920, 2262029012, 2685067896, 3183342108];
    crc bigint := 4294967295;
BEGIN
    FOR i IN 0 .. octet_length(bytes) - 1 LOOP
        crc := crc # get_byte(bytes, i);
        crc := (crc >> 4) # steps[(crc & 15) + 1];
        crc := (crc >> 4) # steps[(crc & 15) + 1];
    END LOOP;
    RETURN crc # 4294967295;
END $$;

-- The first 8 bytes of SHA-1, little endian.
CREATE FUNCTION holdfast.sha1_head(bytes bytea) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mask CONSTANT bigint := 4294967295;
    size CONSTANT int := octet_length(bytes);
    message CONSTANT bytea := bytes || '\x80'::bytea
        || decode(repeat('00', 63 - (size + 8) % 64), 'hex') || int8send(size::bigint * 8);
    sum bigint[] := ARRAY[1732584193, 4023233417, 2562383102, 271733878, 3285377520];
    w bigint[];
    a bigint; b bigint; c bigint; d bigint; e bigint; mixed bigint;
    digest bytea;
BEGIN
    FOR block IN 0 .. octet_length(message) / 64 - 1 LOOP
        a := sum[1]; b := sum[2]; c := sum[3]; d := sum[4]; e := sum[5];
        FOR i IN 0 .. 79 LOOP
            IF i < 16 THEN
                mixed := 0;
                FOR j IN 0 .. 3 LOOP
                    mixed := (mixed << 8) | get_byte(message, block * 64 + i * 4 + j);
                END LOOP;
            ELSE
                mixed := w[i - 3] # w[i - 8] # w[i - 14] # w[i - 16];
                mixed := ((mixed << 1) | (mixed >> 31)) & mask;
            END IF;
            w[i] := mixed;
            mixed := mixed + e + (((a << 5) | (a >> 27)) & mask) + CASE
                WHEN i < 20 THEN ((b & c) | (~b & mask & d)) + 1518500249
                WHEN i < 40 THEN (b # c # d) + 1859775393
                WHEN i < 60 THEN ((b & c) | (b & d) | (c & d)) + 2400959708
                ELSE (b # c # d) + 3395469782 END;
            e := d; d := c; c := ((b << 30) | (b >> 2)) & mask; b := a; a := mixed & mask;
        END LOOP;
        sum := ARRAY[(sum[1] + a) & mask, (sum[2] + b) & mask, (sum[3] + c) & mask, (sum[4] + d) & mask,
                     (sum[5] + e) & mask];
    END LOOP;
    digest := int8send((sum[1] << 32) | sum[2]);
    RETURN (SELECT bit_or(get_byte(digest, i)::bigint << (8 * i)) FROM generate_series(0, 7) i);
END $$;

-- DistributedLock's key of at most nine ASCII characters: seven bits for each, a zero, and then ones.
CREATE FUNCTION holdfast.ascii_key(bytes bytea) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    size CONSTANT int := octet_length(bytes);
    bits bigint := 0;
BEGIN
    FOR i IN 0 .. 8 LOOP
        bits := (bits << CASE WHEN i = size THEN 8 ELSE 7 END)
                | CASE WHEN i < size THEN get_byte(bytes, i) ELSE 127 END;
    END LOOP;
    RETURN CASE WHEN size = 9 THEN bits << 1 ELSE bits END;
END $$;

CREATE FUNCTION holdfast.is_pair(derivation text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT $1 COLLATE "C" IN ('with-advisory-lock', 'distributedlock-ascii')
$$;

-- The key of a label, as hf_key_derive computes it. A key in the space of two int4 is both of them in
-- one bigint, the first one above.
CREATE FUNCTION holdfast.key(label text, derivation text DEFAULT 'sha256') RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    how CONSTANT text COLLATE "C" := derivation;
    bytes CONSTANT bytea := convert_to(label, 'UTF8');
    size CONSTANT int := octet_length(bytes);
    is_ascii CONSTANT boolean := size = char_length(label) AND NOT label COLLATE "C" ~ '[^\x01-\x7f]';
    fault text;
    remedy text := '';
BEGIN
    IF label IS NULL OR derivation IS NULL THEN
        RAISE EXCEPTION 'holdfast.key: label and derivation must not be null' USING ERRCODE = 'null_value_not_allowed';
    ELSIF size > 65536 THEN
        fault := format('the label has %s bytes, more than 65536', size);
        remedy := 'Shorten it, or use a digest of it as the label.';
    ELSIF how = 'sha256' THEN
        RETURN ('x' || encode(substr(sha256(bytes), 1, 8), 'hex'))::bit(64)::bigint;
    ELSIF how = 'fnv1a64' THEN
        RETURN holdfast.fnv1a64(bytes);
    ELSIF how IN ('fnv1a32', 'fnv1a32-js', 'java-hashcode') THEN
        RETURN holdfast.hash32(bytes, how <> 'fnv1a32', how = 'java-hashcode') << 32 >> 32;
    ELSIF how IN ('hashtext', 'hashtextextended') THEN
        -- The library has the bytes of UTF-8, and these functions those of the database.
        IF is_ascii OR getdatabaseencoding() IN ('UTF8', 'SQL_ASCII') THEN
            RETURN CASE how WHEN 'hashtext' THEN hashtext(label COLLATE "C")
                            ELSE hashtextextended(label COLLATE "C", 0) END;
        END IF;
        fault := format('in a database with the encoding %s, %s gives another key than elsewhere',
                        getdatabaseencoding(), how);
        remedy := 'Use another derivation, or labels of ASCII.';
    ELSIF how = 'fixed' THEN
        IF size < 32 AND label COLLATE "C" ~ '^-?[0-9]+$'
           AND label::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
            RETURN label::bigint;
        END IF;
        fault := format('the key is not a 64-bit number: ''%s''', left(label, 60));
        remedy := 'Give a decimal number, or another derivation than fixed.';
    ELSIF how = 'crc32' THEN
        RETURN holdfast.crc32(bytes) << 32 >> 32;
    ELSIF how = 'crc32-sqlx' THEN
        RETURN holdfast.crc32(bytes) * 1026731422;
    ELSIF how = 'md5' THEN
        RETURN ('x' || left(md5(bytes), 16))::bit(64)::bigint;
    ELSIF how = 'with-advisory-lock' THEN
        RETURN (holdfast.crc32(bytes) & 2147483647) << 32;
    ELSIF how = 'distributedlock-ascii' THEN
        IF is_ascii AND size <= 9 THEN
            RETURN holdfast.ascii_key(bytes);
        END IF;
        fault := 'the label is not at most 9 ASCII characters';
        remedy := 'DistributedLock hashes such names: use distributedlock-hash.';
    ELSIF how = 'distributedlock-hash' THEN
        IF is_ascii AND size <= 9 THEN
            remedy := 'Use distributedlock-ascii.';
        ELSIF label COLLATE "C" ~ '^[0-9a-fA-F]{8},?[0-9a-fA-F]{8}$' THEN
            remedy := 'It is the number itself: use fixed.';
        ELSE
            RETURN holdfast.sha1_head(bytes);
        END IF;
        fault := 'DistributedLock does not hash this label';
    ELSIF how = 'minted' THEN
        fault := 'a minted key is not computed from a label';
        remedy := 'holdfast.table_id() has the keys of shared tables.';
    ELSE
        fault := format('unknown derivation: ''%s''', left(how, 60));
        remedy := 'One of sha256, fnv1a64, fnv1a32, fnv1a32-js, hashtext, hashtextextended, fixed, crc32, crc32-sqlx, '
            'md5, java-hashcode, with-advisory-lock, distributedlock-ascii, distributedlock-hash.';
    END IF;
    RAISE EXCEPTION 'holdfast.key: %', fault USING ERRCODE = 'invalid_parameter_value', HINT = remedy;
END $$;

-- ---- shared tables ------------------------------------------------------------------------------

-- As before, but it judges the bytes of UTF-8, as the library does: sizes, and every control character.
-- What cannot be in UTF-8 is no name, and no error: triggers of other programs' relations call this.
CREATE OR REPLACE FUNCTION holdfast.table_parts(name text, INOUT cluster text, INOUT database text, OUT table_name text)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fine CONSTANT text := '^(?! )[^''"`\\./\x01-\x1f\x7f]+(?<! )$';
    part text;
    bytes bytea;
BEGIN
    IF strpos(name, '/') > 0 THEN
        cluster := left(name, strpos(name, '/') - 1);
        name := substr(name, strpos(name, '/') + 1);
        IF cluster COLLATE "C" !~ fine THEN
            RETURN;
        END IF;
    END IF;
    IF strpos(name, '.') > 0 THEN
        database := left(name, strpos(name, '.') - 1);
        name := substr(name, strpos(name, '.') + 1);
    END IF;
    IF (name COLLATE "C" ~ fine AND database COLLATE "C" ~ fine) IS NOT TRUE THEN
        RETURN;
    END IF;
    FOREACH part IN ARRAY ARRAY[cluster, database, name] LOOP
        bytes := convert_to(part, 'UTF8');
        -- U+0080 to U+009F, U+2028 and U+2029.
        IF octet_length(bytes) > 200 OR encode(bytes, 'hex') ~ '^(..)*(c2[89]|e280a[89])' THEN
            RETURN;
        END IF;
    END LOOP;
    table_name := name;
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    NULL;
END $$;

-- The name in one text; an empty cluster is none, and an empty database is the default one.
CREATE FUNCTION holdfast.table_text(cluster text, database text, table_name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    whole CONSTANT text := concat(nullif(cluster, '') || '/', coalesce(nullif(database, ''), 'default'), '.',
                                  table_name);
BEGIN
    -- A slash or a dot inside would give other parts.
    IF table_name IS NULL OR (holdfast.table_parts(whole, '', '')).table_name IS NULL
       OR (SELECT count(*) FROM regexp_matches(whole, '[./]', 'g')) <> 1 + (coalesce(cluster, '') <> '')::int THEN
        RAISE EXCEPTION 'no name of a shared table: cluster %, database %, table %',
            quote_nullable(cluster), quote_nullable(database), quote_nullable(table_name)
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'Each part has at most 200 bytes, no space at an end, and no quotes, backticks, backslashes, '
                         'dots, slashes and control characters.';
    END IF;
    RETURN whole;
END $$;

-- The id of a shared table, which is the key of its lock; NULL: it has none.
CREATE FUNCTION holdfast.table_id(cluster text, database text, table_name text) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT holdfast.find_table(holdfast.table_text($1, $2, $3))
$$;

-- The same, but the table gets an id if it has none.
CREATE FUNCTION holdfast.register_table(cluster text, database text, table_name text) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT holdfast.register_table(holdfast.table_text($1, $2, $3))
$$;

-- ---- locking ------------------------------------------------------------------------------------

-- The key to lock, under the library's rules for labels.
CREATE FUNCTION holdfast.lock_key(label text, derivation text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    id bigint;
BEGIN
    IF label = '' OR label COLLATE "C" ~ '[\x01-\x1f\x7f]' THEN
        RAISE EXCEPTION 'the label is empty, or has a control character' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Name what is locked, like ''Transfer:acc1:acc2''.';
    END IF;
    IF derivation COLLATE "C" IS DISTINCT FROM 'minted' THEN
        RETURN holdfast.key(label, derivation);
    END IF;
    id := holdfast.find_table(label);
    IF id IS NULL THEN
        RAISE EXCEPTION 'no shared table is registered as ''%''', label USING ERRCODE = 'undefined_object',
            HINT = 'SELECT holdfast.register_table(cluster, database, table) gives it an id.';
    END IF;
    RETURN id;
END $$;

-- Refuses a lock that would protect nothing. A function runs only after its statement has taken a
-- snapshot, also by CALL and in DO; under REPEATABLE READ that is the snapshot of the whole
-- transaction, and older than the lock. context tells whether another function called. A statement
-- that is its own transaction can be told only if it came in a simple query: it starts at the same
-- microsecond as its transaction, and has no other one beside it.
CREATE FUNCTION holdfast.refuse_useless(context text, lasting boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    isolation CONSTANT text := current_setting('transaction_isolation');
    -- without what may have a semicolon inside: strings, names, comments
    text CONSTANT text := regexp_replace(current_query(),
        '\$([A-Za-z_]\w*)?\$.*?\$\1\$|''[^'']*''|"[^"]*"|--[^\n]*|/\*.*?\*/', ' ', 'g');
    is_alone CONSTANT boolean := strpos(context, E'\n') = 0 AND now() = statement_timestamp()
                                 AND coalesce(text !~ ';\s*[^\s;]', false);
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this server is a standby: it would grant locks of its own'
            USING ERRCODE = 'read_only_sql_transaction', HINT = 'Connect to the primary.';
    END IF;
    IF is_alone AND NOT lasting THEN
        RAISE EXCEPTION 'a transaction lock outside of a transaction block is gone at once'
            USING ERRCODE = 'no_active_sql_transaction',
                  HINT = 'Send BEGIN first, or call it in the function that does the work.';
    END IF;
    IF isolation IN ('repeatable read', 'serializable') AND NOT is_alone THEN
        RAISE EXCEPTION 'under % the lock would be younger than the transaction''s snapshot, which does not show '
            'what the last holder has committed', upper(isolation)
            USING ERRCODE = 'active_sql_transaction',
                  HINT = 'Use READ COMMITTED, or lock in an earlier transaction: BEGIN ISOLATION LEVEL READ COMMITTED; '
                         'SELECT holdfast.serialize(L); SELECT holdfast.try_lock(L); COMMIT. Begin this one then, and '
                         'SELECT holdfast.unlock(L) when it has ended. hf_transact and ''holdfast tx'' do the like.';
    END IF;
END $$;

-- how: 'wait' or 'try' for a lock of the transaction, 'keep' to try for one of the session.
CREATE FUNCTION holdfast.acquire(context text, label text, derivation text, how text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_pair CONSTANT boolean := holdfast.is_pair(derivation);
    key bigint;
    high int;
    low int;
    got boolean := true;
BEGIN
    PERFORM holdfast.refuse_useless(context, how = 'keep');
    LOOP
        key := holdfast.lock_key(label, derivation);
        high := key >> 32;
        low := key << 32 >> 32;
        IF how = 'wait' AND is_pair THEN
            PERFORM pg_advisory_xact_lock(high, low);
        ELSIF how = 'wait' THEN
            PERFORM pg_advisory_xact_lock(key);
        ELSIF how = 'try' THEN
            got := CASE WHEN is_pair THEN pg_try_advisory_xact_lock(high, low) ELSE pg_try_advisory_xact_lock(key) END;
        ELSE
            got := CASE WHEN is_pair THEN pg_try_advisory_lock(high, low) ELSE pg_try_advisory_lock(key) END;
        END IF;
        EXIT WHEN NOT got OR derivation COLLATE "C" <> 'minted';
        -- The id of a shared table changes only under its lock, so it is looked at again under it.
        EXIT WHEN key IS NOT DISTINCT FROM holdfast.find_table(label);
        IF how = 'keep' THEN
            PERFORM pg_advisory_unlock(key);
        END IF;
    END LOOP;
    RETURN got;
END $$;

-- Waits for the label's lock and holds it until the transaction ends. Statements after it see what
-- the last holder has committed.
CREATE FUNCTION holdfast.serialize(label text, derivation text DEFAULT 'sha256') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    PERFORM holdfast.acquire(context, label, derivation, 'wait');
END $$;

-- The same without waiting. False: somebody else holds it.
CREATE FUNCTION holdfast.try_serialize(label text, derivation text DEFAULT 'sha256') RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    RETURN holdfast.acquire(context, label, derivation, 'try');
END $$;

-- A lock of the session: until unlock(), as often as it was locked, or the session's end.
CREATE FUNCTION holdfast.try_lock(label text, derivation text DEFAULT 'sha256') RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    RETURN holdfast.acquire(context, label, derivation, 'keep');
END $$;

-- Fails when the session does not hold it: it was lost, or never was there.
CREATE FUNCTION holdfast.unlock(label text, derivation text DEFAULT 'sha256') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key CONSTANT bigint := holdfast.lock_key(label, derivation);
BEGIN
    IF NOT (CASE WHEN holdfast.is_pair(derivation) THEN pg_advisory_unlock((key >> 32)::int, (key << 32 >> 32)::int)
                 ELSE pg_advisory_unlock(key) END) THEN
        RAISE EXCEPTION 'this session does not hold ''%''', left(label, 200)
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'If it was locked before, the session is another one, as behind a pooler: others may have '
                         'touched what the lock protected.';
    END IF;
END $$;

-- Puts the label on record, so that views name its key. Fails when the key is another label's.
CREATE FUNCTION holdfast.note_label(label text, derivation text DEFAULT 'sha256') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    taken_by CONSTANT text := (holdfast.note_labels(ARRAY[holdfast.lock_key(label, derivation)],
        ARRAY[holdfast.is_pair(derivation)::int::smallint], ARRAY[label], ARRAY[derivation])).taken_by;
BEGIN
    IF taken_by IS NOT NULL THEN
        RAISE EXCEPTION 'the labels ''%'' and ''%'' share one key under %',
            left(label, 200), left(taken_by, 200), derivation
            USING ERRCODE = 'unique_violation', HINT = 'Rename one of them, or use sha256.';
    END IF;
END $$;

-- ---- who holds what -----------------------------------------------------------------------------

-- Advisory locks of this database, without those that the library uses to wait, and waits that sleep
-- without being in pg_locks. What is not on record is NULL.
CREATE VIEW holdfast.seen_locks AS
WITH live AS MATERIALIZED (
    SELECT (l.classid::bigint << 32) | l.objid::bigint AS key, (l.objsubid - 1)::smallint AS space,
           l.mode = 'ShareLock' AS shared, l.granted, l.pid, l.waitstart AS waits_since, false AS sleeps,
           l.virtualtransaction
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory'
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
      AND NOT (l.objsubid = 2 AND (l.classid::bigint IN (1213156420, 1213156421)
                                   OR l.classid::bigint BETWEEN 1213267968 AND 1213267968 + 65535))
), seen AS (
    SELECT * FROM live
    UNION ALL
    SELECT w.key, w.space, w.shared, false, w.backend_pid, w.since, true, NULL FROM holdfast.waiters w
)
SELECT r.key, r.space, r.shared, r.granted, r.pid, n.label, n.derivation,
       coalesce(nullif(t.cluster, '') || '/', '') || t.database || '.' || t.table_name AS table_name,
       coalesce(s.application, a.application_name) AS application, a.usename AS username,
       coalesce(a.client_hostname, pg_catalog.host(a.client_addr)) AS client, s.host, s.pid AS process,
       CASE WHEN r.granted THEN h.since ELSE r.waits_since END AS since, a.backend_start AS not_before,
       CASE WHEN r.granted THEN h.token END AS token, CASE WHEN r.granted THEN nullif(h.slot, 0) END AS slot,
       CASE WHEN r.pid IS NULL THEN (
           SELECT p.gid FROM pg_catalog.pg_locks x
           JOIN pg_catalog.pg_prepared_xacts p ON p.transaction = x.transactionid
           WHERE x.locktype = 'transactionid' AND x.pid IS NULL AND x.virtualtransaction = r.virtualtransaction)
       END AS prepared
FROM seen r
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = r.pid
LEFT JOIN holdfast.sessions s
    ON s.backend_pid = r.pid AND s.backend_start = coalesce(a.backend_start, s.backend_start)
LEFT JOIN holdfast.holders h
    ON h.backend_pid = s.backend_pid AND h.key = r.key AND h.space = r.space AND h.since >= s.backend_start
LEFT JOIN holdfast.labels n ON n.key = r.key AND n.space = r.space
LEFT JOIN holdfast.table_registry t ON t.advisory_id = r.key AND r.space = 0
WHERE (a.pid IS NOT NULL OR r.pid IS NULL)
  AND (NOT r.sleeps OR s.backend_pid IS NOT NULL)
  -- A recorded waiter that queues for a moment is also in pg_locks, with another of its sessions.
  AND NOT (NOT r.granted AND NOT r.sleeps AND EXISTS (
      SELECT FROM holdfast.waiters w
      JOIN holdfast.sessions ws ON ws.backend_pid = w.backend_pid AND ws.host = s.host AND ws.pid = s.pid
      JOIN pg_catalog.pg_stat_activity wa
          ON wa.pid = w.backend_pid AND ws.backend_start = coalesce(wa.backend_start, ws.backend_start)
      WHERE w.key = r.key AND w.space = r.space));

-- Who holds what. not_before: the session is no older, so neither is the lock.
CREATE VIEW holdfast.locks AS
SELECT l.key, CASE l.space WHEN 0 THEN 'bigint' ELSE 'pair' END AS space, l.label, l.derivation,
       l.table_name, CASE WHEN l.shared THEN 'shared' ELSE 'exclusive' END AS mode, l.pid, l.application,
       l.username, l.client, l.host, l.process, l.since, l.not_before, l.token, l.slot, l.prepared
FROM holdfast.seen_locks l
WHERE l.granted;

-- Who waits for what, and for the locks of which backends; 0 is a prepared transaction, as in
-- pg_blocking_pids.
CREATE VIEW holdfast.waits AS
SELECT l.key, CASE l.space WHEN 0 THEN 'bigint' ELSE 'pair' END AS space, l.label, l.derivation,
       l.table_name, CASE WHEN l.shared THEN 'shared' ELSE 'exclusive' END AS mode, l.pid, l.application,
       l.username, l.client, l.host, l.process, l.since,
       ARRAY(SELECT coalesce(g.pid, 0) FROM pg_catalog.pg_locks g
             WHERE g.locktype = 'advisory' AND g.granted AND g.pid IS DISTINCT FROM l.pid
               AND g.database = (SELECT d.oid FROM pg_catalog.pg_database d
                                 WHERE d.datname = pg_catalog.current_database())
               AND (g.classid::bigint << 32) | g.objid::bigint = l.key AND g.objsubid - 1 = l.space
               AND (g.mode = 'ExclusiveLock' OR NOT l.shared)
             ORDER BY 1) AS blocked_by
FROM holdfast.seen_locks l
WHERE NOT l.granted;

-- Whoever holds the label's lock and is not this session. since is NULL unless it is on record;
-- prepared is the name of a prepared transaction, which has no pid.
CREATE FUNCTION holdfast.who_blocks(label text, derivation text DEFAULT 'sha256')
RETURNS TABLE (pid int, application text, username name, client text, since timestamptz, mode text,
               prepared text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted CONSTANT bigint := holdfast.lock_key(label, derivation); -- fails also where nothing is locked
    place CONSTANT text := CASE WHEN holdfast.is_pair(derivation) THEN 'pair' ELSE 'bigint' END;
BEGIN
    RETURN QUERY
    SELECT l.pid, l.application, l.username, l.client, l.since, l.mode, l.prepared
    FROM holdfast.locks l
    WHERE l.key = wanted AND l.space = place AND l.pid IS DISTINCT FROM pg_backend_pid()
    ORDER BY l.not_before, l.pid;
END $$;

-- ---- who may use it -----------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION holdfast.grant_use(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA holdfast TO %s', role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.labels, holdfast.sessions, holdfast.holders,
                    holdfast.waiters, holdfast.events, holdfast.schedules, holdfast.commits,
                    holdfast.table_registry, holdfast.table_context_refs, holdfast.machines,
                    holdfast.appends, holdfast.contention TO %s', role);
    EXECUTE format('GRANT SELECT ON holdfast.fences, holdfast.boot, holdfast.locks, holdfast.waits TO %s', role);
    EXECUTE format('GRANT USAGE ON SEQUENCE holdfast.token TO %s', role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO %s', role);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION holdfast.grant_use(regrole) FROM %s', role);
END $$;

-- Those who were let in before stay in.
DO $$
DECLARE
    grantee oid;
BEGIN
    FOR grantee IN SELECT DISTINCT g.grantee FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) g
                   WHERE c.oid = 'holdfast.commits'::pg_catalog.regclass AND g.privilege_type = 'DELETE'
                     AND g.grantee NOT IN (0, c.relowner) LOOP
        PERFORM holdfast.grant_use(grantee);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION holdfast.schema_version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 5';

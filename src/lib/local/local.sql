-- Statements on the records of the local store. Columns called seat hold the number of a session;
-- a schema is not renamed. PRAGMAs, and most scripts of several statements, are in the C code.

-- ---- transactions -------------------------------------------------------------------------------

-- name: begin prepared
BEGIN IMMEDIATE

-- name: commit prepared
COMMIT

-- name: rollback prepared
ROLLBACK

-- ---- tokens and boots ---------------------------------------------------------------------------

-- name: get_boot prepared
SELECT boot_id FROM token

-- name: next_token prepared
UPDATE token SET value = value + 1 RETURNING value

-- name: jump_token prepared
-- 2^24 are more tokens than can be given out between two syncs.
UPDATE token SET value = value + 16777216, boot_id = ?1

-- ---- labels -------------------------------------------------------------------------------------

-- name: find_label prepared
SELECT label, seen_ms FROM labels WHERE space = ?1 AND key = ?2

-- name: add_label prepared
INSERT INTO labels (space, key, label, derivation, seen_ms) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: touch_label prepared
UPDATE labels SET seen_ms = ?3 WHERE space = ?1 AND key = ?2

-- ---- holders ------------------------------------------------------------------------------------

-- name: put_holder prepared
INSERT OR REPLACE INTO holders
    (space, key, seat, shared, slot, lifetime, token, since_ms,
     pid, tid, started, pid_space, host, application, traceparent)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)

-- name: drop_holder prepared
DELETE FROM holders WHERE space = ?1 AND key = ?2 AND seat = ?3

-- name: drop_session prepared
DELETE FROM holders WHERE seat = ?1

-- name: end_rival_leases prepared
-- Before drop_rivals: they are over, and end for all their keys. Who held one hears of it when it renews.
DELETE FROM leases WHERE seat IN (SELECT seat FROM holders WHERE space = ?1 AND key = ?2 AND seat <> ?3)

-- name: drop_rivals prepared
-- The session holds the key exclusively, so other recorded holders are gone.
DELETE FROM holders WHERE space = ?1 AND key = ?2 AND seat <> ?3

-- name: find_rivals prepared
-- Who is in the way of a shared (?3 = 1) or exclusive claim: holders, the latest first, then sets that
-- have taken the key and wait for another one. Leases that are over by ?4 count only while the kernel
-- has the key locked (?5 = 1): a transaction under one is open still. Nothing else counts unless it has.
SELECT pid, started, pid_space, host, application, since_ms, until_ms, traceparent
FROM (
    SELECT pid, started, pid_space, host, application, since_ms, until_ms, -1 AS standing, token, traceparent
    FROM holders h LEFT JOIN leases l ON l.seat = h.seat
    WHERE space = ?1 AND key = ?2 AND NOT (shared AND ?3) AND (?5 OR until_ms > ?4)
    UNION ALL
    SELECT pid, started, pid_space, host, application, since_ms, NULL, standing, 0, NULL
    FROM waiters WHERE space = ?1 AND key = ?2 AND NOT (shared AND ?3) AND standing = 0 AND ?5
)
ORDER BY standing, token DESC

-- ---- leases -------------------------------------------------------------------------------------

-- name: find_lease prepared
-- Until when the key is leased in the way of a shared (?3 = 1) or exclusive claim, after ?4.
SELECT max(l.until_ms) FROM holders h JOIN leases l ON l.seat = h.seat
WHERE h.space = ?1 AND h.key = ?2 AND NOT (h.shared AND ?3) AND l.until_ms > ?4

-- name: add_lease prepared
INSERT INTO leases (seat, store, lease_ms, until_ms) VALUES (?1, ?2, ?3, ?4)

-- name: renew_leases prepared
-- What is over stays so: another may have been told that it is free.
UPDATE leases SET until_ms = max(until_ms, ?2 + lease_ms) WHERE store = ?1 AND until_ms > ?2

-- name: get_lease prepared
SELECT until_ms FROM leases WHERE seat = ?1 AND until_ms > ?2

-- name: check_lease prepared
-- Is the key leased under this term, after ?4?
SELECT 1 FROM holders h JOIN leases l ON l.seat = h.seat
WHERE h.space = ?1 AND h.key = ?2 AND h.token = ?3 AND l.until_ms > ?4

-- name: drop_lease prepared
DELETE FROM leases WHERE seat = ?1 AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.seat = ?1)

-- name: orphan_leases prepared
-- Leases of no store are not renewed.
UPDATE leases SET store = ?2 WHERE store = ?1

-- name: own_lease prepared
UPDATE leases SET store = ?2 WHERE seat = ?1

-- name: drop_store_holders prepared
DELETE FROM holders WHERE seat IN (SELECT seat FROM leases WHERE store = ?1)

-- name: drop_store_leases prepared
DELETE FROM leases WHERE store = ?1

-- name: drop_ended_holders prepared
DELETE FROM holders
WHERE lifetime = 2 AND seat NOT IN (SELECT seat FROM leases WHERE until_ms > ?1)

-- name: drop_ended_leases prepared
DELETE FROM leases WHERE until_ms <= ?1

-- ---- waiters ------------------------------------------------------------------------------------

-- name: next_wait prepared
SELECT coalesce(max(wait), 0) + 1 FROM waiters

-- name: add_waiter prepared
INSERT INTO waiters
    (wait, space, key, shared, standing, since_ms,
     pid, tid, started, pid_space, host, application)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)

-- name: drop_waits prepared
-- A thread waits once at a time. Rows of an earlier wait stay where their deletion failed, on a full disk.
DELETE FROM waiters WHERE pid = ?1 AND tid = ?2 AND started = ?3 AND pid_space = ?4 AND host = ?5

-- name: get_wait prepared
SELECT w.space, w.key, l.label, w.pid, w.tid, w.started, w.pid_space, w.host, w.application
FROM waiters w LEFT JOIN labels l ON l.space = w.space AND l.key = w.key
WHERE w.wait = ?1 AND w.standing > 0

-- name: heads_of_line prepared
-- Who is in the gate of a key, as far as it is recorded; more than one if they wait in shared mode.
SELECT pid, started, pid_space, host FROM waiters WHERE space = ?1 AND key = ?2 AND standing = 1

-- name: waits_for prepared
-- Which wait is blocked by which other wait: the other's thread holds the key, or the other has it
-- already as a part of its set, or the other has the gate. Only waits up to ?1, because only the
-- youngest wait of a cycle is to find it. A lease of which less than half is left by ?2 is not renewed any
-- more: its end ends the wait.
SELECT w.wait, b.wait
FROM waiters w
JOIN holders h ON h.space = w.space AND h.key = w.key AND NOT (h.shared AND w.shared)
LEFT JOIN leases l ON l.seat = h.seat
JOIN waiters b ON b.pid = h.pid AND b.tid = h.tid AND b.started = h.started
    AND b.pid_space = h.pid_space AND b.host = h.host AND b.standing > 0
WHERE w.standing > 0 AND w.wait <= ?1 AND b.wait <= ?1
    AND (h.lifetime <> 2 OR l.until_ms - ?2 > l.lease_ms / 2)
UNION
SELECT w.wait, b.wait
FROM waiters w
JOIN waiters b ON b.space = w.space AND b.key = w.key AND b.wait <> w.wait
    AND NOT (b.shared AND w.shared) AND (b.standing = 0 OR (b.standing = 1 AND w.standing = 2))
WHERE w.standing > 0 AND w.wait <= ?1 AND b.wait <= ?1

-- ---- history, and what is due -------------------------------------------------------------------

-- name: add_event prepared
INSERT INTO events
    (at_ms, event, space, key, shared, token, wait_ms, hold_ms, application, host, pid, detail)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, -1), nullif(?8, -1), ?9, ?10, ?11, nullif(?12, ''))

-- name: get_schedule prepared
SELECT last_start_ms FROM schedules WHERE label = ?1

-- name: put_schedule prepared
INSERT OR REPLACE INTO schedules (label, last_start_ms) VALUES (?1, ?2)

-- ---- sweeping -----------------------------------------------------------------------------------

-- name: claim_sweep prepared
-- The second condition: a clock that was set back must not stop the sweeping.
UPDATE token SET swept_ms = ?1
WHERE swept_ms < ?1 - 3600000 OR swept_ms > ?1 + 3600000
RETURNING 1

-- name: list_processes prepared
-- A lease outlives its process until its time is over.
SELECT pid, started, pid_space, host FROM holders WHERE lifetime <> 2
UNION
SELECT pid, started, pid_space, host FROM waiters

-- name: list_strangers prepared
-- Holders whose process cannot be seen from here, recorded more than an hour ago.
SELECT space, key, seat FROM holders
WHERE since_ms < ?1 - 3600000 AND (pid_space <> ?2 OR host <> ?3) AND lifetime <> 2

-- name: drop_process_holders prepared
DELETE FROM holders
WHERE pid = ?1 AND started = ?2 AND pid_space = ?3 AND host = ?4 AND lifetime <> 2

-- name: drop_process_waiters prepared
DELETE FROM waiters WHERE pid = ?1 AND started = ?2 AND pid_space = ?3 AND host = ?4

-- name: drop_old_events prepared
DELETE FROM events
WHERE id IN (SELECT id FROM events WHERE at_ms < ?1 - 30 * 86400000 ORDER BY at_ms LIMIT 5000)

-- name: drop_old_labels prepared
DELETE FROM labels
WHERE seen_ms < ?1 - 90 * 86400000
    AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.space = labels.space AND h.key = labels.key)

-- name: drop_old_contention prepared
DELETE FROM contention
WHERE at_ms < ?1 - 30 * 86400000

-- ---- lists --------------------------------------------------------------------------------------

-- name: list_locks prepared
-- Holders, waiters, and the keys that an unfinished set has already; standing is -1 for holders. until_ms
-- is of leases alone.
SELECT a.space, a.key, a.shared, a.standing, a.slot, a.lifetime, a.token, a.since_ms,
    a.pid, a.started, a.pid_space, a.host, a.application, l.label, a.until_ms, a.traceparent
FROM (
    SELECT space, key, shared, -1 AS standing, slot, lifetime, token, since_ms,
        pid, started, pid_space, host, application, until_ms, traceparent
    FROM holders h LEFT JOIN leases t ON t.seat = h.seat
    UNION ALL
    SELECT space, key, shared, standing, 0, 0, 0, since_ms,
        pid, started, pid_space, host, application, NULL, NULL
    FROM waiters
) a
LEFT JOIN labels l ON l.space = a.space AND l.key = a.key
ORDER BY a.space, a.key, a.standing, a.since_ms

-- name: list_past prepared
-- What was recorded since ?1 (Unix time), one row per key, with the slots of semaphores.
SELECT a.space, a.key, l.label, a.times, a.at_ms, e.shared, e.application, e.host, e.pid
FROM (
    SELECT space, key, sum(times) AS times, max(at_ms) AS at_ms, max(id) AS id
    FROM (
        SELECT space, key, event = 'acquired' AS times, at_ms, id FROM events WHERE at_ms >= ?1
        UNION ALL
        SELECT space, key, 0, seen_ms, NULL FROM labels WHERE seen_ms >= ?1
    )
    GROUP BY space, key
) a
LEFT JOIN labels l ON l.space = a.space AND l.key = a.key
LEFT JOIN events e ON e.id = a.id
ORDER BY a.space, a.key

-- ---- scripts, each sent as one line -------------------------------------------------------------

-- lines: joined

-- name: install
-- Runs after the first version of the schema.
INSERT INTO token (value, boot_id, swept_ms) VALUES (@token@, '', @now@)

-- name: mark
-- The schema is installed, or upgraded.
PRAGMA user_version = @version@

-- name: drop_everybody
-- After a reboot all recorded processes are dead.
DELETE FROM holders; DELETE FROM waiters; DELETE FROM leases

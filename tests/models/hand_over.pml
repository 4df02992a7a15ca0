/*
 * A key that is handed over inside a process, and dies meanwhile: src/lib/locks/queue.c, claims.c
 * and release.c over src/lib/local/session.c and wait.c. Threads of one process queue for a key;
 * whoever releases it gives it to the next one without asking the store. The lock file may be
 * removed at any time (a cleaner of /tmp): then the lock is worth nothing, and another process can
 * have it in a new file of the same name. A session of PostgreSQL that was ended is the same to the
 * engine: its renewal asks the server for a token, which checks and counts in one.
 *
 * Holds: no two hold the key in the same file; where two believe to hold it, the one with the
 * greater token has the file that has its name, so that a fence stops the other; a release that
 * says HF_OK was one of a lock that was still held when it began; nobody is left waiting.
 *
 * check: safety
 * check: ltl progress
 * wrong: JOIN_UNCHECKED, safety
 * wrong: CHECK_THEN_TOKEN, safety
 * wrong: RELEASE_UNCONFIRMED, safety
 * wrong: ADMIT_NOBODY, safety
 */
#define THREADS 3
#define RIVAL (THREADS + 1) /* the other process */
#define SESSIONS 4
#define MOST_HANDOVERS 1
#define NONE 255

byte current; /* the file that has its name */
byte removals = 1;
byte byte_lock[3]; /* by file: the session that has the byte, plus one; 0: nobody */
byte file[SESSIONS + 1];
bool lost[SESSIONS + 1]; /* session->lost: the process knows it */
bool used[SESSIONS + 1];
byte shared_session;
byte last_token;

/* struct key_state */
byte busy, holders, handovers;
byte hold = NONE; /* the session of the hold that others may join */
chan first = [THREADS] of { byte };

mtype = { QUEUED, JOINS, ASKS };
mtype state[THREADS + 1];
bool held[RIVAL + 1]; /* whoever was told HF_OK; and by that: */
byte held_on[RIVAL + 1], token[RIVAL + 1];
byte finished;

#define is_current(session) (file[session] == current)

/* ---- the engine: the store's mutex is held -------------------------------------------------- */

inline assign(who)
{
    if
    :: hold != NONE && !lost[hold] -> state[who] = JOINS; holders++; handovers++
    :: else -> state[who] = ASKS; busy++; handovers = 0
    fi
}

inline admit()
{
    if
    :: busy == 0 && holders == 0 && len(first) > 0 -> first ? next; assign(next); next = 0
    :: else
    fi
}

#define may_hand_over \
    (len(first) > 0 && busy == 0 && hold == session && handovers < MOST_HANDOVERS && !lost[session])

/* ---- the store ------------------------------------------------------------------------------ */

/* hf__local_confirm_claims */
inline confirm_claims()
{
    if
    :: !is_current(session) -> lost[session] = true
    :: else
    fi
}

inline unlock_byte()
{
    if
    :: byte_lock[file[session]] == session + 1 -> byte_lock[file[session]] = 0
    :: else
    fi;
    used[session] = false
}

/* hf__local_try_claims, or a wait: locks the byte, then looks whether the file has its name still,
 * then records the holder, which gives the token, and looks again. */
inline ask_store(my_session)
{
    do
    ::  atomic { session = my_session; file[session] = current; used[session] = true }
        atomic { byte_lock[file[session]] == 0 -> byte_lock[file[session]] = session + 1 }
        if
        :: atomic { !is_current(session) -> unlock_byte() }
        :: atomic { is_current(session) -> last_token++; mine = last_token }
            if
            :: is_current(session) -> break
            :: atomic { !is_current(session) -> unlock_byte() }
            fi
        fi
    od
}

/* ---- what a caller is told ------------------------------------------------------------------ */

inline told_held(who)
{
    d_step {
    for (i : 1 .. RIVAL) {
        if
        :: held[i] ->
            assert(file[held_on[i]] != file[session]);
            assert(mine < token[i] || is_current(session) || !is_current(held_on[i]))
        :: else
        fi
    }
    i = 0;
    held[who] = true;
    held_on[who] = session;
    token[who] = mine;
    mine = 0
    }
}

proctype thread(byte me)
{
    byte session, next, mine, i;
    bool ok, dead, confirmed;

again:
    atomic { /* await_key */
        if
        :: busy == 0 && holders == 0 && len(first) == 0 -> assign(me)
        :: else -> state[me] = QUEUED; first ! me
        fi
    }
    if
    :: atomic {
        state[me] == ASKS ->
        if /* pick_shared_session */
        :: lost[shared_session] -> shared_session++
        :: else
        fi
       }
       assert(shared_session < SESSIONS);
       ask_store(shared_session);
       atomic { /* attach_granted */
        busy--;
        holders++;
        hold = session;
        told_held(me);
        admit()
       }
    :: atomic { state[me] == JOINS -> session = hold; ok = true }
       /* renew_joined */
#ifndef JOIN_UNCHECKED
       atomic { confirm_claims(); ok = !lost[session] }
#endif
       if
       :: atomic { ok -> last_token++; mine = last_token }
#ifndef JOIN_UNCHECKED
#ifndef CHECK_THEN_TOKEN
          ok = is_current(session)
#endif
#endif
       :: else
       fi;
       atomic {
        if
        :: ok -> told_held(me)
        :: else -> mine = 0
        fi
       }
    fi;

    /* hf_lock_release, or that of a join that failed */
    atomic {
        dead = held[me] && !is_current(session);
        held[me] = false;
        token[me] = 0;
        goto end_claims
    }
confirm:
    atomic { confirm_claims(); confirmed = true }
end_claims:
    atomic { /* the mutex is held, but not while the store looks */
#ifndef RELEASE_UNCONFIRMED
        if
        :: may_hand_over && !confirmed -> goto confirm
        :: else
        fi;
#endif
        confirmed = false;
        holders--; /* hand_over */
        if
        :: lost[session] -> /* hf__drop_grant */
            if
            :: hold == session -> hold = NONE
            :: else
            fi;
            unlock_byte();
#ifndef ADMIT_NOBODY
            admit();
#endif
            dead = false;
            goto released
        :: !lost[session] && may_hand_over ->
            admit();
            goto released
        :: else ->
            hold = NONE;
            busy++
        fi
    }
    atomic { /* hf__local_release_claims, which says HF_LOST if the file has not its name */
        confirm_claims();
        unlock_byte();
        dead = false
    }
    atomic { busy--; admit() }
released:
    atomic {
        assert(!dead); /* it was dead when the release began, and HF_OK is what it said */
        if
        :: state[me] == JOINS && !ok -> goto again /* HF_UNREACHABLE: on another session */
        :: else -> finished++
        fi
    }
}

proctype rival()
{
    byte session, mine, i;

    ask_store(SESSIONS);
    atomic { told_held(RIVAL) }
    atomic { held[RIVAL] = false; token[RIVAL] = 0; unlock_byte() }
    finished++
}

/* hf__local_session_check, now and then */
proctype watcher()
{
end:
    do
    :: atomic { used[0] && !is_current(0) && !lost[0] && holders > 0 -> lost[0] = true }
    :: atomic { used[1] && !is_current(1) && !lost[1] && holders > 0 -> lost[1] = true }
    :: atomic { used[2] && !is_current(2) && !lost[2] && holders > 0 -> lost[2] = true }
    od
}

proctype cleaner()
{
    do
    :: atomic { removals > 0 -> removals--; current++ }
    :: break
    od
}

init
{
    atomic {
        run thread(1);
        run thread(2);
        run thread(3);
        run rival();
        run watcher();
        run cleaner()
    }
}

ltl progress { <> (finished == RIVAL) }

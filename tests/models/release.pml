/*
 * Statements that fail on a session that several locks of a process are on: hf__pg_clean_up in
 * src/lib/postgres/claims.c, used by hf__pg_release_claims and by clean_up_after in wait.c. A
 * session that serves waits may have a shared key twice: one thread holds K, another the set {K,
 * X}. The server counts the two, but shows only that the key is locked. A statement may fail before
 * it did anything or behind it (a cancel, a full queue of notifications), or be left alone by a
 * caller who is out of patience, and come to its end later.
 *
 * Holds: a stranger never gets a key that a lock which nobody was told of losing still has; and
 * when all is released, nothing stays locked.
 *
 * check: safety
 * wrong: GIVE_BACK_AGAIN, safety
 * wrong: LEAVE_IT, safety
 */
byte locked_k, locked_y; /* by the server: how often the session has them */
bool lost;               /* the session, and whoever is on it is told */
byte holds;              /* session->base.holds */
bool mutex;              /* the session's */
bool due;                /* session->answer_due, of an abandoned statement that may lock Y */
bool errand;             /* to undo it, behind it */
bool held[4];
byte finished;
byte faults = 2;

#define enter atomic { !mutex -> mutex = true } /* hf__pg_session_lock */
#define leave mutex = false

inline lose()
{
    d_step {
        lost = true;
        locked_k = 0; locked_y = 0;
        due = false;
        errand = false
    }
}

/* Before a session is used, the answer that it owes is taken in, and its errands are run. */
inline settle()
{
    if
    :: atomic {
        due ->
        if
        :: locked_y++
        :: skip
        fi;
        due = false
       }
    :: else
    fi;
    atomic {
        if
        :: errand && locked_y > 0 -> locked_y--
        :: else
        fi;
        errand = false
    }
}

/* A statement is done, or fails before or behind what it does. */
inline outcome()
{
    if
    :: failed = false; did_it = true
    :: atomic { faults > 0 -> faults--; failed = true };
        if
        :: did_it = false
        :: did_it = true
        fi
    fi
}

/* undo: unlocks what pg_locks shows, once. */
inline undo()
{
    atomic {
        if
        :: is_k && locked_k > 0 -> locked_k--
        :: !is_k && locked_y > 0 -> locked_y--
        :: else
        fi
    }
}

inline clean_up(own)
{
#ifdef LEAVE_IT
    skip
#else
    if
    :: lost
#ifndef GIVE_BACK_AGAIN
    :: !lost && is_k && holds > own -> lose() /* may_be_anothers */
    :: !lost && due && holds == own -> lose() /* is_spare */
    :: !lost && !(is_k && holds > own) && !(due && holds == own) ->
#else
    :: !lost ->
#endif
        if
        :: due -> errand = true /* undo_later */
        :: !due -> undo()
        fi
    fi
#endif
}

/* Acquires its key on the session, in keys claims, and releases it. */
proctype thread(byte me; bool is_k; byte keys)
{
    bool failed, did_it;

    enter;
    settle();
    if
    :: lost -> leave; goto done
    :: else
    fi;
    outcome();
    if
    :: atomic { !is_k && failed -> due = true } /* out of patience */
    :: atomic {
        did_it ->
        if
        :: is_k -> locked_k++
        :: else -> locked_y++
        fi
       }
    :: else
    fi;
    if
    :: failed -> clean_up(0); leave; goto done
    :: else
    fi;
    atomic { holds = holds + keys; held[me] = true }
    leave;

    held[me] = false;
    enter; /* hf__pg_release_claims */
    settle();
    if
    :: !lost ->
        outcome();
        if
        :: atomic {
            did_it ->
            if
            :: is_k -> locked_k--
            :: else -> locked_y--
            fi
           }
        :: else
        fi;
        if
        :: failed -> clean_up(keys)
        :: else
        fi
    :: else
    fi;
    leave;
    holds = holds - keys; /* hf__session_leave */
done:
    finished++
}

proctype stranger()
{
    if
    :: atomic { locked_k == 0 -> assert(lost || !(held[1] || held[2])) }
    :: atomic { locked_y == 0 -> assert(lost || !held[3]) }
    fi
}

/* Sends errands when the session is idle; at the end nothing is locked. */
proctype watcher()
{
    enter;
    settle();
    leave;
    finished == 3;
    settle();
    assert(locked_k == 0 && locked_y == 0)
}

init
{
    atomic {
        run thread(1, true, 1);
        run thread(2, true, 2);
        run thread(3, false, 1);
        run stranger();
        run watcher()
    }
}

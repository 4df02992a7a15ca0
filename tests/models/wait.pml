/*
 * Waiting for a key on PostgreSQL, over processes: src/lib/postgres/wait.c, line.c, listen.c and
 * claims.c. A waiter queues for a slice, then takes the companion key, listens, takes a place in
 * the line, and only then tries; a releaser unlocks and then looks whether anybody has the
 * companion.
 *
 * Holds: no two hold the key; who was refused has left nothing locked; and nobody sleeps while the
 * key is free for it. There is a tick in the code, because some things are told by nobody: a crash,
 * a stranger's release, a NOTIFY that failed, somebody ahead in the line who gives up or has yet to
 * leave its place. Here the tick comes in these cases only, so that all others are seen to do
 * without it.
 *
 * check: safety
 * check: safety with AGAIN
 * check: ltl progress with AGAIN
 * wrong: LOOK_THEN_LISTEN, safety
 * wrong: LISTEN_UNCOMMITTED, safety
 * wrong: LOOK_THEN_UNLOCK, safety
 * wrong: WAIT_WITH_SESSION_LOCK, safety
 * wrong: NO_TICK, safety
 */
#ifdef AGAIN
#define CLIENTS 2
#define ROUNDS 2
#define STARTS_AS_HOLDER(who) false
#else
#define CLIENTS 3
#define ROUNDS 1
#define STARTS_AS_HOLDER(who) (who == 1)
#endif
#define STRANGER (CLIENTS + 1)

byte session_lock; /* who has the key for its session; 0: nobody */
byte xact_lock;    /* for its transaction */
#define grantable(who) \
    ((session_lock == 0 || session_lock == who) && (xact_lock == 0 || xact_lock == who))

bool companion[CLIENTS + 1]; /* whose listening session has the companion key, shared */
bool listening[CLIENTS + 1]; /* LISTEN has been committed */
bool woken[CLIENTS + 1];     /* listener->releases has moved on from notice->ticket */
byte place[CLIENTS + 1];     /* in the line; 0: none */
bool errand[CLIENTS + 1];    /* to leave the line and to stop listening */
bool unsaid[CLIENTS + 1];    /* something happened that nobody tells: it takes a tick */

byte holders, finished;
byte faults = 1; /* that are still to come: crash, cancel, deadline, full queue of notifications */

inline say_nothing()
{
    for (i : 1 .. CLIENTS) { unsaid[i] = true }
    i = 0
}

inline run_errand(who)
{
    place[who] = 0;
    companion[who] = false;
    listening[who] = false;
    errand[who] = false
}

/* Its sessions end, and all that they had with them. */
inline die()
{
    faults--;
    if
    :: session_lock == me -> session_lock = 0
    :: else
    fi;
    run_errand(me);
    say_nothing();
    goto gone
}

/* hf__pg_try_now */
inline try_now()
{
    if
    :: grantable(me) -> session_lock = me; ok = true
    :: else -> ok = false
    fi
}

/* queue_on: waits with a transaction lock, keeps with a session lock. */
inline queue_slice()
{
#ifdef WAIT_WITH_SESSION_LOCK
    if
    :: atomic { grantable(me) -> session_lock = me; ok = true }
    :: atomic { grantable(me) -> session_lock = me; ok = false } /* the timeout comes now */
    :: ok = false
    fi;
    assert(ok || session_lock != me)
#else
    if
    :: atomic { grantable(me) -> xact_lock = me }
    :: skip /* lock_timeout, which the script catches */
    :: atomic { faults > 0 -> faults--; cancelled = true }
    fi;
    atomic {
        if
        :: !cancelled ->
            try_now();
            if
            :: skip
            :: faults > 0 -> faults--; cancelled = true /* before COMMIT */
            fi
        :: else
        fi;
        if
        :: xact_lock == me -> xact_lock = 0
        :: else
        fi;
        if
        :: cancelled && session_lock == me -> /* clean_up_after: others may have missed it */
            session_lock = 0;
            say_nothing()
        :: else
        fi;
        ok = ok && !cancelled;
        assert(ok || session_lock != me)
    }
#endif
}

/* hf__pg_listen_for; what was on the way is done first, on the same connection. */
inline listen_for()
{
    atomic {
        if
        :: errand[me] -> run_errand(me)
        :: else
        fi;
        woken[me] = false;
        companion[me] = true
    }
#ifndef LISTEN_UNCOMMITTED
    listening[me] = true
#endif
}

/* hf__pg_line_up: list_places, take_place, and a look at those ahead. */
inline line_up()
{
    if
    :: d_step {
        place[me] == 0 ->
        for (i : 1 .. CLIENTS) {
            if
            :: place[i] > last -> last = place[i]
            :: else
            fi
        }
        i = 0
       }
       d_step { /* the first number behind it that is free */
        last++;
        for (i : 1 .. CLIENTS) {
            if
            :: place[1] == last || place[2] == last || place[CLIENTS] == last -> last++
            :: else
            fi
        }
        i = 0; place[me] = last; last = 0
       }
    :: else
    fi;
    d_step { /* place_ahead */
        first = true;
        for (i : 1 .. CLIENTS) {
            if
            :: place[i] != 0 && place[i] < place[me] ->
                first = false;
                unsaid[me] = unsaid[me] || errand[i] /* it has the key already, or gave up */
            :: else
            fi
        }
        i = 0
    }
}

inline act()
{
    if
    :: first ->
        atomic { try_now() }
        if
        :: !ok -> queue_slice()
        :: else
        fi
    :: !first
    :: !first -> atomic { try_now() } /* the line stalls */
    fi;
    first = false
}

inline look_for_listeners()
{
    heard = companion[1] || companion[2] || companion[CLIENTS]
}

inline release()
{
#ifdef LOOK_THEN_UNLOCK
    look_for_listeners();
    session_lock = 0;
#else
    session_lock = 0;
    look_for_listeners();
#endif
    if /* tell_listeners */
    :: d_step {
        heard ->
        for (i : 1 .. CLIENTS) { woken[i] = woken[i] || listening[i] }
        i = 0
       }
    :: atomic { heard && faults > 0 -> faults--; say_nothing() } /* the queue is full */
    :: else
    fi
}

proctype client(byte me)
{
    bool ok, heard, first, cancelled;
    byte last, i, round;

    if
    :: atomic { STARTS_AS_HOLDER(me) -> goto held }
    :: else
    fi;
again:
    if
    :: !heard ->
        atomic { try_now() } /* hf__pg_try_claims */
        if
        :: !ok -> queue_slice()
        :: else
        fi
    :: heard /* hf__pg_has_passed: those who listen go first */
    fi;
    atomic {
        heard = false;
        if
        :: ok -> goto held
        :: cancelled -> goto gone
        :: else
        fi
    }

    do /* wait_snapshot_free */
    ::
#ifdef LOOK_THEN_LISTEN
        line_up();
        act();
        if
        :: !ok && !cancelled -> listen_for()
        :: else
        fi;
#else
        listen_for();
        line_up();
        act();
#endif
        if
        :: ok || cancelled -> break
        :: else
        fi;
#ifdef LISTEN_UNCOMMITTED
        listening[me] = true;
#endif
        if /* await_wake */
        :: woken[me]
#ifndef NO_TICK
        :: atomic { unsaid[me] -> unsaid[me] = false }
#endif
        :: atomic { faults > 0 -> faults--; cancelled = true; break } /* the deadline */
        :: atomic { faults > 0 -> die() }
        fi
    od;
    atomic { /* withdraw */
        errand[me] = true;
        if
        :: cancelled -> say_nothing(); goto gone
        :: else
        fi
    }

held:
    atomic {
        ok = false;
        holders++;
        assert(holders == 1 && session_lock == me)
    }
    if
    :: holders--
    :: atomic { faults > 0 -> holders--; die() }
    fi;
    release();
    atomic {
        round++;
        if
        :: round < ROUNDS ->
            if
            :: skip
            :: heard = false /* later than PASSED_MS */
            fi;
            goto again
        :: else
        fi
    }

gone:
    atomic {
        assert(session_lock != me && xact_lock != me);
        finished++
    }
}

/* Takes the key as other programs do, and says nothing when it is released. */
proctype stranger()
{
    byte i;
    if
    :: atomic { grantable(STRANGER) -> session_lock = STRANGER };
        atomic { session_lock = 0; say_nothing() }
    :: skip
    fi
}

/* Runs errands when it gets to it. */
proctype watcher()
{
end:
    do
    :: atomic { errand[1] -> run_errand(1) }
    :: atomic { errand[2] -> run_errand(2) }
#if CLIENTS == 3
    :: atomic { errand[3] -> run_errand(3) }
#endif
    od
}

init
{
    byte i;
    atomic {
        run stranger();
        run watcher();
#ifndef AGAIN
        session_lock = 1;
#endif
        for (i : 1 .. CLIENTS) { run client(i) }
    }
}

ltl progress { <> (finished == CLIENTS) }

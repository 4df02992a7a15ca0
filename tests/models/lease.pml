/*
 * Leases: src/lib/postgres/schema_006.sql (take_leases, evict, renew_tenure, check_leases,
 * release_leases) and what the process makes of their answers in leases/lease.c and renew.c,
 * beside a session lock of the same key, whose taker calls hf__pg_refuse_leased. Time is the
 * server's. A process sees it go on as well, but not when the server looked: it counts from before
 * it sent (hf__pg_put_off_loss). Anybody may be stopped anywhere, or go away without a release; an
 * answer may be lost.
 *
 * Holds: of all that is written under a lease whose term was checked, or under the session lock, no
 * two are between their check and their commit; nobody is granted the key while another may
 * believe that it holds it, be it as a lease or as a session lock.
 *
 * check: safety
 * wrong: TRUST_OWN_CLOCK, safety
 * wrong: OLD_SNAPSHOT, safety
 * wrong: CHECK_WITHOUT_LOCK, safety
 * wrong: EVICT_BESIDE_RENEWAL, safety
 * wrong: COUNT_FROM_ANSWER, safety
 */
#define CLIENTS 2
#define SESSION 3 /* who wants the session lock */
#define LENGTH 2  /* of a lease */
#define TIMES 4

byte now = 1;         /* clock_timestamp() */
byte xact_lock;       /* who has the key for its transaction; 0: nobody */
byte session_lock;    /* for its session */
byte term[3];         /* the row in holdfast.leases of each client, by its takes; 0: there is none */
byte until[3];        /* of its tenure */
byte key_share[3];    /* a transaction that has checked the row */
byte for_update[3];   /* who is about to delete it */
byte tenure_lock[3];  /* who updates the tenure */

bool has[3];          /* the process was told so, and has told nobody of a loss */
byte lost_at[3];      /* tenure->base.lost_at */
bool session_held;
byte writing;
byte faults = 1;      /* answers that are lost */

#define believes(i) (has[i] && now < lost_at[i])
#define key_is_free (xact_lock == 0 && session_lock == 0)

/* What the statement sees: all that was committed before. */
inline take_snapshot()
{
    d_step { seen[1] = term[1]; seen[2] = term[2]; ends[1] = until[1]; ends[2] = until[2] }
}

/* Deletes row i, if it is over and nobody has it locked; the commit makes that seen. */
inline evict_row(i)
{
    if
    :: seen[i] == 0 || blocked
    :: else ->
        if
        :: atomic { i != me && ends[i] > now -> blocked = true }
        :: atomic {
            !(i != me && ends[i] > now) ->
            if
            :: term[i] == seen[i] && (key_share[i] != 0 || for_update[i] != 0) -> blocked = true
            :: term[i] == seen[i] && key_share[i] == 0 && for_update[i] == 0 ->
                for_update[i] = me; deletes[i] = true
            :: term[i] != seen[i] /* another has deleted it */
            fi
           }
        fi;
#ifndef EVICT_BESIDE_RENEWAL
        atomic { /* the tenure, FOR UPDATE NOWAIT */
            if
            :: deletes[i] && i != me && (tenure_lock[i] != 0 || until[i] > now) -> blocked = true
            :: deletes[i] && i != me && tenure_lock[i] == 0 && until[i] <= now -> tenure_lock[i] = me
            :: else
            fi
        }
#endif
    fi
}

/* The end of the transaction, for what evict_row has locked: what is deleted is over for good. */
inline settle_row(i, commits)
{
    if
    :: deletes[i] ->
        for_update[i] = 0;
        if
        :: commits -> term[i] = 0
        :: else
        fi;
        if
        :: tenure_lock[i] == me ->
            tenure_lock[i] = 0;
            if
            :: commits -> until[i] = 0
            :: else
            fi
        :: else
        fi;
        deletes[i] = false
    :: else
    fi;
    seen[i] = 0;
    ends[i] = 0
}

/* take_leases, in one statement. */
inline take()
{
    sent = now;
#ifdef OLD_SNAPSHOT
    take_snapshot();
#endif
    atomic {
        if
        :: key_is_free -> xact_lock = me; blocked = false
        :: else -> blocked = true
        fi
    }
    if
    :: blocked
    :: else ->
#ifndef OLD_SNAPSHOT
        take_snapshot();
#endif
        evict_row(1);
        evict_row(2);
        atomic {
            if
            :: !blocked -> next_until = now + LENGTH
            :: else
            fi
        }
    fi;
    atomic { /* COMMIT: seen, and only then are the locks free */
        settle_row(1, !blocked);
        settle_row(2, !blocked);
        if
        :: !blocked ->
            assert(!believes(3 - me) && !session_held);
            my_term++;
            term[me] = my_term;
            until[me] = next_until
        :: else
        fi
    }
    atomic {
        if
        :: xact_lock == me -> xact_lock = 0
        :: else
        fi;
        if
        :: !blocked -> got = true
        :: !blocked && faults > 0 -> faults-- /* the answer is lost: the row stays until it is over */
        :: else
        fi;
        if
        :: got -> keep()
        :: else
        fi;
        next_until = 0;
        sent = 0
    }
}

/* hf__pg_put_off_loss: the server says what was left when it looked, which was after sent. */
inline keep()
{
    has[me] = true;
    if
#ifdef COUNT_FROM_ANSWER
    :: now + LENGTH > lost_at[me] -> lost_at[me] = now + LENGTH
#else
    :: sent + LENGTH > lost_at[me] -> lost_at[me] = sent + LENGTH
#endif
    :: else
    fi
}

/* renew_tenure: waits for whoever has the tenure's row. */
inline renew()
{
    sent = now;
    if
    :: atomic { tenure_lock[me] == 0 && until[me] > now -> tenure_lock[me] = me; next_until = now + LENGTH }
    :: atomic { tenure_lock[me] == 0 && until[me] <= now -> has[me] = false } /* it is told */
    fi;
    if
    :: has[me] ->
        atomic {
            if
            :: until[me] < next_until -> until[me] = next_until
            :: else
            fi;
            tenure_lock[me] = 0
        }
        atomic {
            if
            :: believes(me) -> keep()
            :: else -> has[me] = false
            fi
        }
    :: else
    fi;
    d_step { sent = 0; next_until = 0 }
}

/* What is written under the lease, in a transaction that begins with check_leases. */
inline write()
{
#ifdef TRUST_OWN_CLOCK
    if
    :: atomic { believes(me) -> assert(writing == 0); writing++ }
        writing--
    :: !believes(me)
    fi
#else
    atomic { /* FOR KEY SHARE waits for who is about to delete the row */
        for_update[me] == 0;
        if
#ifndef CHECK_WITHOUT_LOCK
        :: term[me] == my_term -> key_share[me] = me
#endif
        :: else
        fi
    }
    if
    :: atomic { term[me] == my_term && until[me] > now -> assert(writing == 0); writing++ }
        atomic { writing--; key_share[me] = 0 } /* COMMIT */
    :: atomic { !(term[me] == my_term && until[me] > now) -> key_share[me] = 0 } /* HF002 */
    fi
#endif
}

/* release_leases, FOR UPDATE SKIP LOCKED. */
inline release()
{
    has[me] = false;
    atomic {
        if
        :: term[me] == my_term && for_update[me] == 0 -> term[me] = 0
        :: else
        fi
    }
}

/* The two have the same life, but for a part: a second try, or a renewal and a release. */
proctype client(byte me)
{
    byte seen[3], ends[3], sent, next_until, my_term;
    bool deletes[3], blocked, got;

    take();
    if
    :: !got && me == 2 -> take() /* again: also what a lost answer has left behind */
    :: got && me == 1 -> renew()
    :: else
    fi;
    if
    :: has[me] -> write()
    :: else
    fi;
    if
    :: has[me] && me == 1 -> release()
    :: else /* it dies: its time passes */
    fi;
    my_term = 0
}

/* Takes the session lock, and looks for leases under it. */
proctype session(byte me)
{
    byte seen[3], ends[3];
    bool deletes[3], blocked;

#ifdef OLD_SNAPSHOT
    take_snapshot();
#endif
    if
    :: atomic { key_is_free -> session_lock = me }
    :: atomic { !key_is_free -> goto refused }
    fi;
#ifndef OLD_SNAPSHOT
    take_snapshot();
#endif
    evict_row(1);
    evict_row(2);
    atomic {
        settle_row(1, !blocked);
        settle_row(2, !blocked);
        if
        :: blocked -> session_lock = 0; goto refused
        :: else -> assert(!believes(1) && !believes(2)); session_held = true
        fi
    }
    atomic { assert(writing == 0); writing++ }
    writing--;
    session_held = false;
    session_lock = 0;
refused:
    skip
}

proctype clock()
{
    do
    :: now < TIMES -> now++
    :: else -> break
    od
}

init
{
    atomic {
        run client(1);
        run client(2);
        run session(SESSION);
        run clock()
    }
}

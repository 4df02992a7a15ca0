/*
 * How a transaction gets its labels, in one message: src/lib/postgres/transactions/steps.c, and
 * clean_session in exchange.c. A transaction of its own waits for the label, the session keeps it
 * over COMMIT AND CHAIN, the second transaction takes it over, with a snapshot that is younger. A
 * cancel may hit any statement, and those behind it are skipped. A transaction pooler gives the
 * server's session to anybody as soon as it idles.
 *
 * Holds: a transaction sees all that the holder of the label before it has committed; no session
 * idles with a lock; in the end nothing is locked.
 *
 * check: safety
 * wrong: TEXTBOOK, safety
 * wrong: PLAIN_COMMIT, safety
 * wrong: UNLOCK_FIRST, safety
 */
#define CLIENTS 3
mtype = { IDLE, OPEN, FAILED };

mtype tx[CLIENTS + 1];                  /* of a client's session on the server */
byte xact_lock, session_lock;           /* whose they are; 0: nobody's */
byte value, snapshot[CLIENTS + 1];      /* of a row that every transaction adds one to */
byte committed, finished;
byte cancels = 2;

#define grantable \
    ((session_lock == 0 || session_lock == me) && (xact_lock == 0 || xact_lock == me))
/* What the pooler sees: between two statements, and when the message has been worked off. */
#define may_be_given_away assert(tx[me] != IDLE || (session_lock != me && xact_lock != me))

inline end_transaction(next)
{
    d_step {
        if
        :: xact_lock == me -> xact_lock = 0
        :: else
        fi;
        snapshot[me] = 0;
        tx[me] = next
    }
}

/* The statement before this is done. A cancel hits the next one. */
inline or_cancel()
{
    if
    :: skip
    :: atomic {
        cancels > 0 ->
        cancels--;
        if
        :: tx[me] == OPEN -> tx[me] = FAILED
        :: else
        fi;
        goto failed
       }
    fi
}

proctype client(byte me)
{
again:
    tx[me] = OPEN; /* BEGIN */
    or_cancel();
#ifdef TEXTBOOK
    snapshot[me] = value;
    atomic { grantable -> xact_lock = me }
    or_cancel();
#else
    atomic { grantable -> xact_lock = me } /* tx_lock_one */
    or_cancel();
    atomic { assert(grantable); session_lock = me } /* tx_keep_one */
    or_cancel();
#ifdef PLAIN_COMMIT
    end_transaction(IDLE);
    or_cancel();
    tx[me] = OPEN;
#else
    end_transaction(OPEN); /* COMMIT AND CHAIN */
#endif
    or_cancel();
    snapshot[me] = value; /* tx_hand_over_one: its columns are evaluated in their order */
#ifdef UNLOCK_FIRST
    session_lock = 0;
    atomic { grantable -> xact_lock = me }
#else
    atomic { assert(grantable); xact_lock = me }
    session_lock = 0;
#endif
    or_cancel();
#endif

    /* The caller's statements, and COMMIT. */
    atomic {
        assert(snapshot[me] == value);
        value = snapshot[me] + 1;
        committed++;
        end_transaction(IDLE);
        goto done
    }

failed:
    atomic { /* the message is worked off up to its end */
        may_be_given_away
    }
    if /* clean_session; a cancel may hit it, too, and then the session is given up */
    :: end_transaction(OPEN); /* ROLLBACK AND CHAIN */
        if
        :: atomic { session_lock == me -> session_lock = 0 } /* hf__pg_undo */
        :: else
        fi;
        end_transaction(IDLE)
    :: atomic {
        cancels > 0 ->
        cancels--;
        if
        :: session_lock == me -> session_lock = 0
        :: else
        fi;
        end_transaction(IDLE)
       }
    fi;
    may_be_given_away;
    goto again;

done:
    atomic {
        may_be_given_away;
        finished++;
        if
        :: finished == CLIENTS ->
            assert(value == CLIENTS && committed == CLIENTS);
            assert(session_lock == 0 && xact_lock == 0)
        :: else
        fi
    }
}

init
{
    atomic {
        tx[1] = IDLE; tx[2] = IDLE; tx[3] = IDLE;
        run client(1);
        run client(2);
        run client(3)
    }
}

/*
 * A COMMIT whose answer was lost: src/lib/postgres/transactions/outcome.c and transaction.c,
 * connect.c for servers that have stepped down, judge_broken in src/lib/transactions/transact.c. A
 * client makes one transaction on a synchronous pair of servers, in at most two attempts. The line
 * breaks, servers crash and start again, the primary is paused, its standby is promoted, the old
 * primary goes on, all at any time, also between the statements of those who ask what became of it.
 *
 * Holds: where HF_OK was told, the transaction is there once, on the server that is primary in the
 * end; where it was told that it did not commit, it is not there; where it is in doubt, at most
 * once.
 *
 * check: safety
 * wrong: ASK_AT_ONCE, safety
 * wrong: LOOK_ONCE, safety
 * wrong: ASK_OLD_PRIMARY, safety
 * wrong: TRUST_UNREPLICATED, safety
 * wrong: IGNORE_WARNING, safety
 * wrong: ID_WITHOUT_GENERATION, safety
 */
#define ATTEMPTS 2
mtype = { DOWN, PAUSED, STANDBY, PRIMARY };                   /* role */
mtype = { NO_BACKEND, CLIENT_READ, SYNC_REP, ENDED };         /* backend */
mtype = { UNKNOWN, COMMITTED, NOT_COMMITTED, IN_DOUBT };      /* hf__attempt_outcome */

mtype role[3];
byte timeline[3];
byte generation[3]; /* of the server's transaction ids: changes with every crash and promotion */

/* By server and attempt: the commit is in its WAL; it is visible; another has got its id. */
#define at(s, a) ((s) * ATTEMPTS + (a) - ATTEMPTS - 1)
bool in_wal[2 * ATTEMPTS], visible[2 * ATTEMPTS], reused[2 * ATTEMPTS];

/* By attempt. */
mtype backend[ATTEMPTS + 1];
byte server[ATTEMPTS + 1];
bool connected[ATTEMPTS + 1], commit_arrives[ATTEMPTS + 1], answered[ATTEMPTS + 1];
bool unreplicated[ATTEMPTS + 1]; /* the answer came with a warning */
bool terminated[ATTEMPTS + 1];   /* pg_terminate_backend was called */

byte session;     /* of those who ask: a server, or 0 */
byte seen;        /* the latest timeline that the process has seen */
mtype told;
bool marked;      /* the transaction writes a marker */
bool env_done, over;
byte cuts = 1, crashes = 1, pauses = 1, cancels = 1;

#define is_replicated(a) (role[2] == STANDBY && in_wal[at(2, a)])

/* The backend of an attempt, on its server. */
proctype backend_of(byte a)
{
end:
    do
    :: atomic {
        backend[a] == CLIENT_READ && role[server[a]] == PRIMARY && commit_arrives[a] ->
        commit_arrives[a] = false;
        in_wal[at(server[a], a)] = true;
        backend[a] = SYNC_REP
       }
    :: atomic {
        backend[a] == CLIENT_READ && role[server[a]] == PRIMARY && terminated[a] ->
        commit_arrives[a] = false;
        backend[a] = ENDED
       }
    :: atomic { /* the client is gone, and nothing more is to be read */
        backend[a] == CLIENT_READ && role[server[a]] == PRIMARY && !commit_arrives[a] &&
            !connected[a] ->
        backend[a] = ENDED
       }
    :: atomic { /* a new primary has no standby to wait for */
        backend[a] == SYNC_REP && role[server[a]] == PRIMARY &&
            (server[a] == 2 || is_replicated(a)) ->
        visible[at(server[a], a)] = true;
        answered[a] = true;
        backend[a] = ENDED
       }
    :: atomic { /* commits here alone */
        backend[a] == SYNC_REP && role[server[a]] == PRIMARY && (terminated[a] || cancels > 0) ->
        if
        :: terminated[a] -> connected[a] = false
        :: else -> cancels--
        fi;
        visible[at(server[a], a)] = true;
        unreplicated[a] = true;
        answered[a] = true;
        backend[a] = ENDED
       }
    :: atomic { over && backend[a] != CLIENT_READ && backend[a] != SYNC_REP -> break }
    :: atomic { over && role[server[a]] != PRIMARY -> break }
    :: atomic { over && server[a] == 1 && role[2] == PRIMARY -> break } /* waits for ever */
    od
}

/* Every commit that is in the WAL can be seen now, and the backends are gone. */
inline start_over(s)
{
    d_step {
        generation[s]++;
        for (i : 1 .. ATTEMPTS) {
            visible[at(s, i)] = in_wal[at(s, i)];
            if
            :: server[i] == s && (backend[i] == CLIENT_READ || backend[i] == SYNC_REP) ->
                backend[i] = ENDED;
                commit_arrives[i] = false;
                connected[i] = false
            :: else
            fi
        }
        i = 0;
        if
        :: session == s -> session = 0
        :: else
        fi
    }
}

proctype replication()
{
    do
    :: d_step { /* all that the primary has flushed so far */
        role[1] == PRIMARY && role[2] == STANDBY &&
            (in_wal[at(1, 1)] != in_wal[at(2, 1)] || in_wal[at(1, 2)] != in_wal[at(2, 2)]) ->
        in_wal[at(2, 1)] = in_wal[at(1, 1)];
        in_wal[at(2, 2)] = in_wal[at(1, 2)]
       }
    :: env_done && over -> break
    od
}

proctype cluster()
{
    byte i;
    do
    :: atomic { cuts > 0 -> cuts--; session = 0; connected[1] = false; connected[2] = false }
    :: atomic { crashes > 0 && role[1] == PRIMARY -> crashes--; start_over(1) }
    :: atomic { crashes > 0 && role[2] == PRIMARY -> crashes--; start_over(2) }
    :: atomic { pauses > 0 && role[1] == PRIMARY -> pauses--; role[1] = PAUSED }
    :: atomic { role[1] == PAUSED && role[2] == STANDBY ->
        role[2] = PRIMARY;
        timeline[2] = 2;
        start_over(2)
       }
    :: atomic { role[1] == PAUSED -> role[1] = PRIMARY }
    :: atomic { /* after a crash or promotion an id that was lost is given to another */
        generation[1] > 0 && !in_wal[at(1, 1)] && server[1] == 1 && backend[1] == ENDED &&
            !reused[at(1, 1)] -> reused[at(1, 1)] = true }
    :: atomic {
        generation[2] > 0 && !in_wal[at(2, 1)] && backend[1] != NO_BACKEND && server[1] == 1 &&
            !reused[at(2, 1)] -> reused[at(2, 1)] = true }
    :: break
    od;
    if /* it ends with one primary, and not with a paused one */
    :: atomic { role[2] == PRIMARY -> role[1] = DOWN }
    :: atomic { role[2] != PRIMARY && role[1] == PAUSED -> role[1] = PRIMARY }
    :: atomic { role[2] != PRIMARY && role[1] != PAUSED }
    fi;
    env_done = true
}

/* A connection to some server that takes it for the primary; refuse_stale. */
inline connect(to)
{
    if
#ifdef ASK_OLD_PRIMARY
    :: atomic { role[1] == PRIMARY -> to = 1 }
    :: atomic { role[2] == PRIMARY -> to = 2 }
#else
    :: atomic { role[1] == PRIMARY && timeline[1] >= seen -> to = 1; seen = timeline[1] }
    :: atomic { role[2] == PRIMARY && timeline[2] >= seen -> to = 2; seen = timeline[2] }
#endif
    fi
}

#define breaks (session == 0 || role[session] != PRIMARY)

/* Waits for the standby with a commit of its own. */
inline confirm()
{
#ifdef TRUST_UNREPLICATED
    outcome = COMMITTED
#else
    if
    :: atomic { session == 2 || (session == 1 && is_replicated(a)) -> outcome = COMMITTED }
    :: atomic { breaks -> session = 0 }
    :: atomic { session == 1 && cancels > 0 -> cancels--; outcome = IN_DOUBT }
    :: atomic { session == 1 && role[2] != STANDBY -> outcome = IN_DOUBT } /* the deadline */
    fi
#endif
}

inline by_marker()
{
    was_gone = false;
    do
    :: outcome == UNKNOWN ->
        if
        :: session == 0 -> connect(session)
        :: else
        fi;
        if
        :: atomic { breaks -> session = 0 }
        :: atomic { !breaks -> is_marked = visible[at(session, a)] } /* the query's snapshot */
            if
            :: atomic { breaks -> session = 0 }
            :: atomic {
                !breaks ->
                alive = server[a] == session &&
                        (backend[a] == CLIENT_READ || backend[a] == SYNC_REP)
               }
#ifdef ASK_AT_ONCE
                alive = false; was_gone = true;
#endif
#ifdef LOOK_ONCE
                was_gone = was_gone || !alive;
#endif
                if
                :: is_marked -> confirm()
                :: !is_marked && was_gone -> outcome = NOT_COMMITTED
                :: !is_marked && !was_gone && !alive -> was_gone = true
                :: !is_marked && !was_gone && alive ->
                    if /* end_if_forgotten */
                    :: atomic { server[a] == session && backend[a] == CLIENT_READ ->
                        terminated[a] = true }
                    :: else
                    fi
                :: !is_marked && !was_gone && alive -> outcome = IN_DOUBT /* the deadline */
                fi
            fi
        fi
    :: else -> break
    od
}

inline by_id()
{
    do
    :: outcome == UNKNOWN ->
        if
        :: session == 0 -> connect(session)
        :: else
        fi;
        if
        :: atomic { breaks -> session = 0 }
        :: atomic { !breaks -> /* tx_status: the state and the generation in one breath */
            same = server[a] == session && generation[session] == began_in;
            is_marked = in_wal[at(session, a)] || reused[at(session, a)];
            alive = server[a] == session && (backend[a] == CLIENT_READ || backend[a] == SYNC_REP)
           }
            if
            :: alive -> /* in progress */
                if
                :: atomic { server[a] == session && backend[a] == CLIENT_READ ->
                    terminated[a] = true }
                :: else
                fi
            :: alive -> outcome = IN_DOUBT
            :: !alive && !is_marked -> outcome = NOT_COMMITTED /* aborted, or in the future */
#ifdef ID_WITHOUT_GENERATION
            :: !alive && is_marked -> confirm()
#else
            :: !alive && is_marked && same -> confirm()
            :: !alive && is_marked && !same -> outcome = IN_DOUBT
#endif
            fi
        fi
    :: else -> break
    od
}

proctype client()
{
    byte a = 1, began_in;
    bool is_marked, alive, was_gone, same;
    mtype outcome = UNKNOWN;

    if
    :: marked = true
    :: skip
    fi;
attempt:
    connect(server[a]);
    atomic { backend[a] = CLIENT_READ; connected[a] = true; began_in = generation[server[a]] }
    if /* COMMIT, which may get lost on its way */
    :: atomic { connected[a] && backend[a] == CLIENT_READ -> commit_arrives[a] = true }
    :: connected[a] = false
    :: !connected[a]
    fi;
    if
    :: atomic { connected[a] && answered[a] ->
#ifdef IGNORE_WARNING
        told = COMMITTED;
#else
        told = (unreplicated[a] -> IN_DOUBT : COMMITTED);
#endif
        goto done
       }
    :: !connected[a]
    :: atomic { role[server[a]] != PRIMARY -> connected[a] = false }
    fi;
    if
    :: marked -> by_marker()
    :: else -> by_id()
    fi;
    atomic {
        session = 0;
        if
        :: outcome == NOT_COMMITTED && a < ATTEMPTS ->
            a++;
            outcome = UNKNOWN;
            is_marked = false; alive = false; was_gone = false; same = false;
            goto attempt
        :: else -> told = outcome
        fi
    }
done:
    over = true
}

/* When everything has come to its end. */
proctype judge()
{
    byte truth, count;
    atomic {
        env_done && over && _nr_pr == 2 ->
        truth = (role[2] == PRIMARY -> 2 : 1);
        count = in_wal[at(truth, 1)] + in_wal[at(truth, 2)];
        assert(told != COMMITTED || count == 1);
        assert(told != NOT_COMMITTED || count == 0);
        assert(count <= 1)
    }
}

init
{
    atomic {
        role[1] = PRIMARY; role[2] = STANDBY;
        timeline[1] = 1; timeline[2] = 1;
        backend[1] = NO_BACKEND; backend[2] = NO_BACKEND;
        run judge();
        run backend_of(1);
        run backend_of(2);
        run replication();
        run cluster();
        run client()
    }
}

/*
 * Fencing tokens over crashes and promotions: src/lib/postgres/schema_002.sql (current_epoch,
 * lift_token, fence) and hf__pg_token and lift_token in connect.c. Two servers of one system, with
 * asynchronous replication. What was given last may be lost in a crash or a promotion; a server
 * that was replaced may come back and be promoted to the same timeline as the other; one that was
 * only paused may go on beside its successor.
 *
 * Holds: no token is given twice, and a token of the server whose tokens began last, at the first
 * session after its start, is greater than all that were given before. SKEWED: one server's clock
 * is behind. Then the tokens of one process still grow, and whoever is refused by a fence gets a
 * token above that fence the next time.
 *
 * check: safety
 * check: safety with SKEWED
 * wrong: PLAIN_SEQUENCE, safety
 * wrong: EPOCH_IS_TIMELINE, safety
 * wrong: NO_LIFT, safety
 */
#ifdef NO_LIFT
#define SKEWED
#endif
#define MOST_TOKENS 2 /* of one start: less than the clock moves on meanwhile */
#define GAP 3         /* more than a crash or a promotion can lose */
#define SPAN 6        /* by which the clock moves on from one first session to the next */
#ifdef SKEWED
#define MOST_STARTS 3
#define clock_of(s) ((s) == 2 -> clock - 2 * SPAN : clock)
#else
#define MOST_STARTS 4
#define clock_of(s) (clock)
#endif

mtype = { DOWN, PAUSED, STANDBY, PRIMARY };
mtype role[3];
#ifdef EPOCH_IS_TIMELINE
byte timeline[3]; /* nothing else depends on it */
#endif
byte sequence[3], flushed[3]; /* holdfast.token, and how much of it is on disk */
bool boot[3];                 /* the unlogged row */
byte count[3];                /* given since its start */
byte refused_by, refused_on;  /* the client's last write: by which fence, on which server */

byte clock = 2 * SPAN;
byte starts;
byte latest; /* the server whose tokens began last */

/* The unlogged row is empty after a crash and after a promotion. */
inline start(s)
{
    starts++;
    if
    :: refused_on == s -> refused_on = 0; refused_by = 0
    :: else
    fi;
    count[s] = 0;
    boot[s] = false;
    role[s] = PRIMARY
}

/* holdfast.current_epoch: the first session since a server's start sets its tokens to the clock. */
inline open_session(s)
{
    if
    :: !boot[s] ->
        clock = clock + SPAN;
        latest = s;
#ifdef PLAIN_SEQUENCE
        skip;
#else
#ifdef EPOCH_IS_TIMELINE
        sequence[s] = sequence[s] + GAP;
#else
        sequence[s] = (clock_of(s) > sequence[s] + GAP -> clock_of(s) : sequence[s] + GAP);
#endif
#endif
        flushed[s] = sequence[s]; /* a synchronous commit */
        boot[s] = true
    :: else
    fi
}

#ifdef EPOCH_IS_TIMELINE
#define token_of(s) (timeline[s] * 32 + sequence[s])
#else
#define token_of(s) (sequence[s])
#endif

inline lift_token(s, above)
{
#ifdef NO_LIFT
    skip
#else
    if
    :: above > token_of(s) -> sequence[s] = above + GAP; flushed[s] = sequence[s]
    :: else
    fi
#endif
}

#define may_give(s) (role[s] == PRIMARY && count[s] < MOST_TOKENS)

inline next_token(s)
{
    open_session(s);
    lift_token(s, newest_token);
    sequence[s]++;
#ifdef SKEWED
    flushed[s] = sequence[s]; /* to have fewer states: promotions still lose some */
#endif
    count[s]++;
    token = token_of(s)
}

#ifndef SKEWED
byte greatest;
int given[6]; /* a bit for each */
#define bit(token) (1 << (token & 31))

/* Tokens in the order in which they are given, to whomever. */
proctype client()
{
    byte s, token, newest_token;
end:
    do
    :: atomic {
        if
        :: may_give(1) -> s = 1
        :: may_give(2) -> s = 2
        fi;
        next_token(s);
        assert((given[token >> 5] & bit(token)) == 0 && (s != latest || token > greatest));
        given[token >> 5] = given[token >> 5] | bit(token);
        greatest = (token > greatest -> token : greatest);
        s = 0; token = 0
       }
    od
}
#else
byte fences[3]; /* one resource, on each server */

/* holdfast.fence */
inline fence(s, token)
{
    if
    :: token >= fences[s] -> fences[s] = token; lift_token(s, token)
    :: else -> lift_token(s, fences[s])
    fi
}

/* A process that acquires a lock and writes with its token, on whatever server is there then. */
proctype client()
{
    byte s, token, newest_token;
end:
    do
    :: atomic {
        if
        :: may_give(1) -> s = 1
        :: may_give(2) -> s = 2
        fi;
        next_token(s);
        assert(token > newest_token);
        assert(refused_on != s || token > refused_by);
        newest_token = token;
        refused_on = 0; refused_by = 0;
        s = 0; token = 0
       }
       if
       :: skip
       :: atomic {
        if
        :: role[1] == PRIMARY -> s = 1
        :: role[2] == PRIMARY -> s = 2
        fi;
        if
        :: newest_token < fences[s] -> refused_by = fences[s]; refused_on = s
        :: else
        fi;
        fence(s, newest_token);
        s = 0
       }
       fi
    od
}

/* Processes that do so once, and know no other token. */
proctype others()
{
    byte s, token, newest_token;
end:
    do
    :: atomic {
        if
        :: may_give(1) -> s = 1
        :: may_give(2) -> s = 2
        fi;
        next_token(s);
        if
        :: role[3 - s] == PRIMARY -> s = 3 - s
        :: skip
        fi;
        fence(s, token);
        s = 0; token = 0
       }
    od
}
#endif

#define may_start (starts < MOST_STARTS)
#ifdef SKEWED
#define replicate_fences(to, from) fences[to] = fences[from]
#else
#define replicate_fences(to, from) skip
#endif

/* The server s may crash, be replaced by the other, and come back. */
proctype happens_to(byte s, other)
{
end:
    do
    :: atomic { role[s] == PRIMARY && flushed[s] < sequence[s] -> flushed[s] = sequence[s] }
    :: atomic { /* the other gets all that is on disk so far */
        role[s] == PRIMARY && role[other] == STANDBY && flushed[other] < flushed[s] ->
        flushed[other] = flushed[s];
        sequence[other] = flushed[s];
        replicate_fences(other, s)
       }
    :: atomic { /* it crashes and starts again */
        role[s] == PRIMARY && may_start ->
        sequence[s] = flushed[s];
        start(s)
       }
    :: atomic { role[s] == PRIMARY -> role[s] = DOWN; sequence[s] = flushed[s] }
    :: atomic { role[s] == PRIMARY -> role[s] = PAUSED }
    :: atomic { role[s] == PAUSED -> role[s] = PRIMARY } /* whoever was promoted meanwhile */
    :: atomic { /* the standby is promoted; or one that was replaced, while its successor is down */
        (role[s] == STANDBY || role[s] == DOWN) && role[other] != PRIMARY && may_start ->
#ifdef EPOCH_IS_TIMELINE
        timeline[s]++;
#endif
        start(s)
       }
    :: atomic { /* or it comes back as a standby */
        role[s] == DOWN && role[other] == PRIMARY ->
        role[s] = STANDBY;
#ifdef EPOCH_IS_TIMELINE
        timeline[s] = timeline[other];
#endif
        sequence[s] = flushed[other];
        flushed[s] = flushed[other];
        replicate_fences(s, other)
       }
    od
}

init
{
    atomic {
        role[1] = PRIMARY; role[2] = STANDBY;
#ifdef EPOCH_IS_TIMELINE
        timeline[1] = 1; timeline[2] = 1;
#endif
        starts = 1; latest = 1;
        run client();
#ifdef SKEWED
        run others();
#endif
        run happens_to(1, 2);
        run happens_to(2, 1)
    }
}

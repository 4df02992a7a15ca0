/*
 * A staged append and its settling, beside others who write to the table:
 * src/programs/append/staged.c, attach.c, plan.c, proof.c and leftovers.c. An append of two parts
 * stages them, writes a plan under the table's lock, sends ATTACH and saves that it is done. It may
 * be killed anywhere; what it sent goes on. A repeat with its id, or whoever of ours takes the lock
 * next, settles it: ends what still runs, renames the staging table, so that what is still on its
 * way fails, and judges part by part, by the log of queries and by what is in the table. Strangers
 * add parts of as many rows at any time, with the lock and without it. The server is killed, also
 * between the two parts, and merges parts until nobody can tell what they were made of.
 *
 * Holds: no part is there twice; and where the append is told or saved as done, both are there.
 * What cannot be proven is told as doubtful. A stranger's part may be the very same as ours,
 * provided that the log tells what became of the ATTACH: without it they cannot be told from each
 * other, as the manual says, and EQUAL_WITHOUT_LOG shows.
 *
 * check: safety
 * wrong: ROW_ARITHMETIC, safety
 * wrong: COUNT_INACTIVE, safety
 * wrong: NO_RENAME, safety
 * wrong: EQUAL_WITHOUT_LOG, safety
 */
#define BLOCKS 5
#define RUNS 3
mtype = { STAGED, ATTACHING, DONE, DOUBTFUL };            /* hf__append_state */
mtype = { SUCCESS, FAILURE };                             /* the answer to the ATTACH */
mtype = { ABSENT, THERE, MAYBE };                         /* hf__found */
mtype = { EMPTY, ACTIVE, INACTIVE, HIDDEN, ROLLED_BACK }; /* a part; INACTIVE: it was merged */

/* Whose files a part has: those of our first or second one, the same of a stranger, or others. */
#define OURS 1 /* and 2 */
#define EQUAL 3 /* and 4 */
#define OTHER 5
#define files_are(b, p) (files[b] == p || files[b] == p + 2)

/* The server. */
mtype part[BLOCKS + 1];
byte files[BLOCKS + 1];
byte last_block;
byte server_run = 1; /* counts restarts */
byte on_its_way;     /* an ATTACH that names the staging table as it is called now */
bool running;
bool has_log;        /* system.query_log is kept */
bool began, ended;   /* what it has of the ATTACH that the plan is about */
mtype answer;

/* The store: the lock of the table, and the row of the append with its plan. */
bool table_lock;
mtype state = STAGED;
bool planned[3]; /* which of the two parts are to be attached */
byte plan_last_block, plan_run;
#ifdef ROW_ARITHMETIC
byte plan_rows_before;
#endif

bool log_tells; /* nothing happens that the log does not tell: no restart, no ATTACH that fails */
byte restarts = 1;

#define is_there(b) (part[b] == ACTIVE || part[b] == INACTIVE || part[b] == HIDDEN)
#define one_if(what) ((what) -> 1 : 0)
#define rows \
    (one_if(is_there(1)) + one_if(is_there(2)) + one_if(is_there(3)) + one_if(is_there(4)) + \
     one_if(is_there(5)))
#define ours(b, p) one_if(is_there(b) && files[b] == p)
#define times_there(p) (ours(1, p) + ours(2, p) + ours(3, p) + ours(4, p) + ours(5, p))

inline add_part(whose, how)
{
    last_block++;
    part[last_block] = how;
    files[last_block] = whose;
    assert(times_there(1) <= 1 && times_there(2) <= 1)
}

/* The parts of the plan, in their order. */
inline add_planned()
{
    if
    :: planned[1] -> add_part(OURS, ACTIVE)
    :: else
    fi;
    if
    :: planned[2] -> add_part(OURS + 1, ACTIVE)
    :: else
    fi
}

/* ---- the server ----------------------------------------------------------------------------- */

proctype server()
{
end:
    do
    :: atomic {
        on_its_way > 0 && !running && last_block + 2 <= BLOCKS ->
        on_its_way--;
        running = true;
        began = has_log
       }
    :: atomic {
        running ->
        if
        :: add_planned(); ended = has_log; answer = SUCCESS
        :: !log_tells && planned[1] -> add_part(OURS, ROLLED_BACK); answer = FAILURE
        :: !log_tells -> answer = FAILURE
        fi;
        running = false
       }
    :: atomic { /* it is killed and started again */
        restarts > 0 && !log_tells ->
        restarts--;
        server_run++;
        if
        :: running -> add_planned()
        :: running && planned[1] && planned[2] -> add_part(OURS, ACTIVE)
        :: skip
        fi;
        running = false;
        on_its_way = 0;
        if /* what the log had in memory is gone */
        :: began = false; ended = false
        :: skip
        fi
       }
    od
}

/* Merges all that is active; later nothing is left of the parts that were merged. */
proctype merges()
{
    byte i;
    if
    :: d_step {
        for (i : 1 .. last_block) {
            if
            :: part[i] == ACTIVE -> part[i] = INACTIVE
            :: part[i] == ROLLED_BACK -> part[i] = EMPTY
            :: else
            fi
        }
        i = 0
       }
    :: skip
    fi;
    d_step {
        for (i : 1 .. last_block) {
            if
            :: part[i] == INACTIVE -> part[i] = HIDDEN
            :: else
            fi
        }
        i = 0
    }
}

/* Adds parts, under the table's lock or whenever it likes. */
proctype stranger()
{
    byte count;
    do
    :: atomic {
        count < 2 ->
        if
        :: !table_lock
        :: skip
        fi;
        if
        :: last_block + 2 < BLOCKS -> add_part(OTHER, ACTIVE)
#ifdef EQUAL_WITHOUT_LOG
        :: last_block + 2 < BLOCKS -> add_part(EQUAL, ACTIVE)
        :: last_block + 2 < BLOCKS -> add_part(EQUAL + 1, ACTIVE)
#else
        :: last_block + 2 < BLOCKS && log_tells -> add_part(EQUAL, ACTIVE)
        :: last_block + 2 < BLOCKS && log_tells -> add_part(EQUAL + 1, ACTIVE)
#endif
        :: else
        fi;
        count++
       }
    :: break
    od
}

/* ---- ours ----------------------------------------------------------------------------------- */

inline may_die()
{
    if
    :: goto gone
    :: skip
    fi
}

#define any_is(what, p) (what(1, p) || what(2, p) || what(3, p) || what(4, p) || what(5, p))
#define is_in(b) (b > plan_last_block)
#define is_alike(b, p) \
    (is_in(b) && files_are(b, p) && \
     (part[b] == ACTIVE || part[b] == INACTIVE || part[b] == ROLLED_BACK))
#define is_alive(b, p) (is_alike(b, p) && part[b] != ROLLED_BACK)
#define is_hidden(b, p) (is_in(b) && part[b] == HIDDEN)

/* hf__plan_judge, for one part */
inline look_for(p)
{
    if
    :: !planned[p] -> found[p] = THERE
    :: planned[p] && any_is(is_alive, p) -> found[p] = THERE
#ifdef COUNT_INACTIVE
    :: planned[p] && !any_is(is_alive, p) && any_is(is_alike, p) -> found[p] = THERE
#else
    :: planned[p] && !any_is(is_alive, p) && any_is(is_alike, p) -> found[p] = MAYBE
#endif
    :: planned[p] && !any_is(is_alike, p) && any_is(is_hidden, p) -> found[p] = MAYBE
    :: planned[p] && !any_is(is_alike, p) && !any_is(is_hidden, p) -> found[p] = ABSENT
    fi
}

inline all_are(what)
{
    found[1] = (planned[1] -> what : THERE);
    found[2] = (planned[2] -> what : THERE)
}

/* judge_one in proof.c */
inline judge()
{
    atomic {
#ifdef ROW_ARITHMETIC
        if
        :: rows == plan_rows_before -> all_are(ABSENT)
        :: rows == plan_rows_before + one_if(planned[1]) + one_if(planned[2]) -> all_are(THERE)
        :: else -> all_are(MAYBE)
        fi
#else
        if
        :: ended -> all_are(THERE)
        :: !ended && !began && has_log && server_run == plan_run -> all_are(ABSENT)
        :: else -> look_for(1); look_for(2) /* the log is silent */
        fi
#endif
    }
}

/* Told, or written down. */
inline save_done()
{
    atomic { assert(times_there(1) == 1 && times_there(2) == 1); state = DONE }
}

/* Under the table's lock: writes the plan, attaches, and looks what came of it. */
inline attach(first, second)
{
    atomic {
        state = ATTACHING;
        planned[1] = first;
        planned[2] = second;
        plan_last_block = last_block;
#ifdef ROW_ARITHMETIC
        plan_rows_before = rows;
#endif
        plan_run = server_run;
        began = false;
        ended = false;
        answer = 0
    }
    may_die();
    on_its_way++;
    may_die();
    if
    :: answer == SUCCESS
    :: answer == FAILURE -> goto gone
    :: goto gone /* no answer within its time */
    fi;
    may_die();
    save_done()
}

/* hf__leftover_finish */
inline settle()
{
    !running; /* hf__orphan_end */
#ifndef NO_RENAME
    /* It waits for a statement that uses the table; one that comes later finds no such table. */
    atomic { !running -> on_its_way = 0 }
#endif
    may_die();
    judge();
    if
    :: found[1] == MAYBE || found[2] == MAYBE -> state = DOUBTFUL
    :: found[1] == THERE && found[2] == THERE -> save_done()
    :: else -> attach(found[1] == ABSENT, found[2] == ABSENT)
    fi
}

/* The append, and after it its repeats, or others of ours: whoever has the lock settles alike. */
proctype append()
{
    mtype found[3];
    byte runs;

again:
    atomic { !table_lock -> table_lock = true }
    if
    :: state == STAGED -> attach(true, true)
    :: state == ATTACHING -> settle()
    fi;
gone:
    atomic { /* the store frees the lock of the dead, too */
        table_lock = false;
        found[1] = 0;
        found[2] = 0;
        runs++;
        if
        :: runs < RUNS && state == ATTACHING -> goto again
        :: else
        fi
    }
}

init
{
    atomic {
        if
        :: has_log = true
        :: has_log = true; log_tells = true
        :: skip
        fi;
        run server();
        run merges();
        run stranger();
        run append()
    }
}

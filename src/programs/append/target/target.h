/*
 * A ClickHouse that rows are appended to, behind one vtable: a server over HTTP, or chdb inside
 * this process. This folder knows how to send a statement and how to read its answer. It knows
 * nothing about appends, locks and staging tables.
 */
#ifndef HF_APPEND_TARGET_H
#define HF_APPEND_TARGET_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/stop.h"
#include "programs/append/input/rows_input.h"

/* ---- Answers --------------------------------------------------------------------------------- */

/* A small answer in memory: ClickHouse's TabSeparated text, cut into cells and unescaped. */
typedef struct hf__grid {
    char *text;   /* the cells, each ended by NUL */
    char **cells; /* row by row */
    size_t rows, columns;
} hf__grid;

/*
 * Cuts text into cells. It takes text over and the caller frees the grid, also after a failure.
 * HF_BAD_DATA: the rows differ in their number of cells.
 */
HF_MUST_CHECK hf_status hf__grid_read(char *text, size_t size, hf__grid *grid, hf_error *err);
void hf__grid_free(hf__grid *grid);

/* The text of a cell, which the grid owns; "" outside of the grid. */
const char *hf__grid_at(const hf__grid *grid, size_t row, size_t column);
/* The same as a number; 0 when the cell is not one. */
int64_t hf__grid_number(const hf__grid *grid, size_t row, size_t column);

/* ---- Statements ------------------------------------------------------------------------------ */

typedef struct hf__target hf__target;

/* What ClickHouse said about the last statement that failed. */
typedef struct hf__fault {
    int code;       /* ClickHouse's own number; 0: it said nothing */
    bool was_sent;  /* the statement, or a part of it, may have reached the server */
    int64_t row;    /* the row of the stream that does not parse, from 1; 0: not said */
    bool was_ended; /* we ended it, by an invalid row or a kill, and the server confirmed that */
} hf__fault;

enum {
    HF__CODE_NOT_IMPLEMENTED = 48,
    HF__CODE_SYNTAX_ERROR = 62,
    HF__CODE_UNKNOWN_TABLE = 60,
    HF__CODE_TABLE_EXISTS = 57,
    HF__CODE_CANNOT_OPEN_FILE = 76,
    HF__CODE_NO_SUCH_FILE = 107,
    HF__CODE_UNKNOWN_DATABASE = 81,
    HF__CODE_READONLY = 164,
    HF__CODE_ID_IN_USE = 216,
    HF__CODE_CANNOT_KILL = 380,
    HF__CODE_CANCELLED = 394,
    HF__CODE_ACCESS_DENIED = 497,
    HF__CODE_ZOOKEEPER = 999,
    HF__CODE_POCO = 1000, /* of a library that ClickHouse uses: a file is not found, and others */
};

typedef struct hf__statement {
    const char *sql;
    const char *what;     /* completes "cannot …" in a message: "create the staging table" */
    const char *query_id; /* NULL: the server picks one */
    int64_t limit_ms;     /* for the answer; 0: silent_ms; -1: no limit, but a stop kills it */
    const char *settings; /* "name=value&…", URL-encoded, or NULL */
    bool is_sealed;       /* a stream: when it is cut, the server must not take it as whole */
    bool is_list;         /* cut short it would still be valid SQL: it must arrive whole */
    bool is_once;         /* must not reach the server twice */
    bool is_users;        /* writes the user's rows: its answer is not read as a table */
    bool gives_way;       /* its answer does not matter: a request to stop does not wait for it */
} hf__statement;

/* Hears about the progress while rows flow. */
typedef struct hf__flow {
    void (*tell)(void *arg, const hf__rows_input *input);
    void *arg;
    int64_t told_ms; /* when tell was called last */
} hf__flow;

/* Calls flow->tell, at most every 100 ms. flow may be NULL. */
void hf__flow_tell(hf__flow *flow, const hf__rows_input *input);

/* ---- Targets --------------------------------------------------------------------------------- */

typedef struct hf__target_ops {
    /* The answer is TabSeparated. */
    hf_status (*query)(hf__target *target, const hf__statement *statement, hf__buf *answer,
                       hf_error *err);
    /*
     * Streams the rows of input. statement->sql ends where FORMAT would follow. flow may be NULL.
     */
    hf_status (*insert)(hf__target *target, const hf__statement *statement,
                        const hf__format *format, hf__rows_input *input, hf__flow *flow,
                        hf_error *err);
    /* The next statement opens a new connection. */
    void (*reconnect)(hf__target *target);
    /*
     * A second target for the caller to close: the server `host`, at the same port and with the
     * same user, or with host NULL the same server for another thread. NULL where there is no such
     * thing.
     */
    hf_status (*open_sibling)(hf__target *target, const char *host, hf__target **sibling,
                              hf_error *err);
    void (*close)(hf__target *target);
} hf__target_ops;

/* One thread at a time may use a target. */
struct hf__target {
    const hf__target_ops *ops;
    const char *name;     /* for messages, never with a password */
    const char *database; /* as in the URL, or "" */
    const char *user;     /* "" when there is none */
    const hf__stop *stop; /* of the append that is running */
    hf__fault fault;
    int64_t silent_ms; /* a server that says nothing for so long is gone */
    bool is_here;      /* on this host, by its address */
    bool is_embedded;  /* nobody else uses it, and its statements end with this process */
};

typedef struct hf__target_options {
    const char *url;
    const char *password_file; /* NULL: the URL has the password, or there is none */
    const hf__stop *stop;      /* must outlive the target */
    const char *library;       /* libchdb.so; NULL: look in the usual places */
    int64_t wait_ms;           /* for a chdb folder that another process has open; -1: for ever */
    int64_t silent_ms;         /* after which a server is taken for gone; 0: 60 s */
    void (*note)(void *arg, const char *text);
    void *arg;
} hf__target_options;

/*
 * The caller closes *target. A server is not contacted before the first statement; chdb opens here.
 */
HF_MUST_CHECK hf_status hf__target_open(const hf__target_options *options, hf__target **target,
                                        hf_error *err);
void hf__target_close(hf__target *target); /* NULL is fine */

/* The kinds of target, for hf__target_open alone. */
HF_MUST_CHECK hf_status hf__http_open(const hf__target_options *options, hf__target **target,
                                      hf_error *err);
HF_MUST_CHECK hf_status hf__chdb_open(const hf__target_options *options, hf__target **target,
                                      hf_error *err);

/*
 * Runs a statement; the caller frees rows, also after a failure. With rows NULL an answer that is
 * not empty is HF_DATABASE. After a failure target->fault says what ClickHouse said.
 */
HF_MUST_CHECK hf_status hf__target_query(hf__target *target, const hf__statement *statement,
                                         hf__grid *rows, hf_error *err);

/* The same for a statement whose text is in sql. It frees sql. */
HF_MUST_CHECK hf_status hf__target_ask(hf__target *target, const hf__statement *statement,
                                       hf__buf *sql, hf__grid *rows, hf_error *err);

/* Kills the statement with this id and waits until it has ended, for 10 s at most. */
HF_MUST_CHECK hf_status hf__target_kill(hf__target *target, const char *query_id, const char *what,
                                        hf_error *err);

/*
 * Turns ClickHouse's own words into target->fault and err; returns the status. during_rows: the
 * statement was a stream of rows, so the rows may be to blame.
 */
hf_status hf__target_refused(hf__target *target, const hf__statement *statement, const char *text,
                             size_t size, bool during_rows, hf_error *err);
/* The code, when the text begins as exceptions of ClickHouse, or of its libraries, do; else 0. */
int hf__exception_code(const char *text);

/* ---- Names and texts in ClickHouse's SQL ----------------------------------------------------- */

/* `a\`b` */
void hf__quote_name(hf__buf *out, const char *name);
/* `database`.`table` */
void hf__quote_table(hf__buf *out, const char *database, const char *table);
/* 'o\'brien' */
void hf__quote_text(hf__buf *out, const char *text);
/* database = 'database' AND table = 'table' */
void hf__put_table_condition(hf__buf *out, const char *database, const char *table);

#endif

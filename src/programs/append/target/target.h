#ifndef HF_APPEND_TARGET_H
#define HF_APPEND_TARGET_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/stop.h"
#include "programs/append/rows_input.h"

/* A small answer of ClickHouse in memory: TabSeparated, unescaped. */

typedef struct hf__grid {
    char *text;   /* the cells, each ended by NUL */
    char **cells; /* by row */
    size_t rows, columns;
} hf__grid;

/* text is taken over, also on failure. Rows of different width are HF_BAD_DATA. */
HF_MUST_CHECK hf_status hf__grid_read(char *text, size_t size, hf__grid *grid, hf_error *err);
void hf__grid_free(hf__grid *grid);

const char *hf__grid_at(const hf__grid *grid, size_t row, size_t column);
/* 0 where it is no number: ClickHouse writes what the column's type says. */
int64_t hf__grid_number(const hf__grid *grid, size_t row, size_t column);

/*
 * A ClickHouse that rows are appended to, behind one vtable: a server over HTTP, or chdb in this
 * process. Used by one thread.
 */

typedef struct hf__target hf__target;

/* What ClickHouse said of the statement that failed last. */
typedef struct hf__fault {
    int code;       /* ClickHouse's own, or 0: it said nothing */
    bool was_sent;  /* the statement, or a byte of it, may have reached it */
    int64_t row;    /* of the stream, from 1, that does not parse; 0: not said */
    bool was_ended; /* by an invalid row or a kill of ours, and it has confirmed that */
} hf__fault;

enum {
    HF__CODE_NOT_IMPLEMENTED = 48,
    HF__CODE_SYNTAX_ERROR = 62,
    HF__CODE_UNKNOWN_TABLE = 60,
    HF__CODE_TABLE_EXISTS = 57,
    HF__CODE_UNKNOWN_DATABASE = 81,
    HF__CODE_READONLY = 164,
    HF__CODE_ID_IN_USE = 216,
    HF__CODE_CANNOT_KILL = 380,
    HF__CODE_ACCESS_DENIED = 497,
};

typedef struct hf__statement {
    const char *sql;
    const char *what;     /* "create the staging table": for messages */
    const char *query_id; /* NULL: the server's own choice */
    int64_t limit_ms;     /* 0: 60 s; -1: none, and a wish to stop kills it */
    const char *settings; /* "name=value", encoded, or NULL */
    bool is_sealed;       /* of a stream: one that is cut must not count as whole */
    bool is_list;         /* its first half would be a statement too: it must arrive whole */
    bool is_once;         /* sent twice it would be done twice */
    bool gives_way;       /* it only asks: who is told to stop does not wait for the answer */
} hf__statement;

/* Called about every 100 ms while rows flow. */
typedef struct hf__flow {
    void (*tell)(void *arg, const hf__rows_input *input);
    void *arg;
} hf__flow;

typedef struct hf__target_ops {
    /* answer is TabSeparated. */
    hf_status (*query)(hf__target *target, const hf__statement *statement, hf__buf *answer,
                       hf_error *err);
    /* statement->sql ends where FORMAT would stand. */
    hf_status (*insert)(hf__target *target, const hf__statement *statement,
                        const hf__format *format, hf__rows_input *input, const hf__flow *flow,
                        hf_error *err);
    /* The next statement goes over a connection of its own. */
    void (*reconnect)(hf__target *target);
    /* Another server at the same port, with the same user; host NULL: the same server, for another thread.
     * NULL: there are none. */
    hf_status (*open_sibling)(hf__target *target, const char *host, hf__target **sibling,
                              hf_error *err);
    void (*close)(hf__target *target);
} hf__target_ops;

struct hf__target {
    const hf__target_ops *ops;
    const char *name;     /* for messages, never with a password */
    const char *database; /* "" or what the URL says */
    const char *user;     /* "" when there is none */
    const hf__stop *stop; /* of the append that runs */
    hf__fault fault;
    bool is_embedded; /* nobody else is in it, and what it runs ends with this process */
};

typedef struct hf__target_options {
    const char *url;
    const char *password_file; /* NULL: the URL has it */
    const hf__stop *stop;
    const char *library; /* of chdb; NULL: the usual places */
    int64_t wait_ms;     /* for a folder that another process has open; -1: for ever */
    void (*note)(void *arg, const char *text);
    void *arg;
} hf__target_options;

/* Opens nothing but chdb: a server is reached by the first statement. */
HF_MUST_CHECK hf_status hf__target_open(const hf__target_options *options, hf__target **target,
                                        hf_error *err);
void hf__target_close(hf__target *target);

/* rows may be NULL: then an answer other than nothing is HF_DATABASE. */
HF_MUST_CHECK hf_status hf__target_query(hf__target *target, const hf__statement *statement,
                                         hf__grid *rows, hf_error *err);

HF_MUST_CHECK hf_status hf__http_open(const hf__target_options *options, hf__target **target,
                                      hf_error *err);
HF_MUST_CHECK hf_status hf__chdb_open(const hf__target_options *options, hf__target **target,
                                      hf_error *err);

/* Fills target->fault.code and row and err from ClickHouse's own words. during_rows: of a stream. */
hf_status hf__target_refused(hf__target *target, const hf__statement *statement, const char *text,
                             size_t size, bool during_rows, hf_error *err);
/* Does the text begin as ClickHouse's exceptions do? Its code, or 0. */
int hf__exception_code(const char *text);

/* Names and texts in ClickHouse's SQL. */

/* `a\`b` */
void hf__quote_name(hf__buf *out, const char *name);
/* `database`.`table` */
void hf__quote_table(hf__buf *out, const char *database, const char *table);
/* 'o\'brien' */
void hf__quote_text(hf__buf *out, const char *text);

#endif

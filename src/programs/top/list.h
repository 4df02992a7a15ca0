/* What the tabs list, and in which columns: one table per tab drives layout, order, filter and JSON. */
#ifndef HF_TOP_LIST_H
#define HF_TOP_LIST_H

#include "programs/top/top.h"

typedef enum hf__kind {
    HF__TEXT,
    HF__COUNT,  /* negative: unknown */
    HF__AGE,    /* milliseconds; negative: unknown */
    HF__MOMENT, /* Unix time in milliseconds; 0: unknown */
    HF__KEY,    /* of a lock */
    HF__RATE,   /* thousandths of one a second; negative: unknown */
} hf__kind;

typedef struct hf__value {
    const char *text; /* of HF__TEXT; never NULL there */
    int64_t number;
    hf_space space; /* of HF__KEY */
    bool bound;     /* of HF__AGE: at most */
    bool urgent;    /* stands before all others in either order */
    hf__ink ink;
} hf__value;

typedef struct hf__list_column {
    const char *title;
    const char *word; /* of --sort and of JSON, where ages end in "_ms" */
    hf__kind kind;
    unsigned least;   /* cells */
    bool stretches;   /* it takes what is left over */
    unsigned rank;    /* > 0: left out where there is no room, the greatest first */
    bool is_extra;    /* joins only when the others have all the room they want */
    bool of_registry; /* says nothing without one */
    bool descending;  /* the order that is asked for most */
    hf__value (*value)(const hf__top *top, size_t row);
    /* Where the cell shows more than its value. */
    void (*show)(const hf__top *top, size_t row, hf__buf *out);
} hf__list_column;

typedef struct hf__list {
    const char *word, *title;
    const hf__list_column *columns; /* ended by one without a title */
    size_t sort;                    /* column, to begin with */
    const char *empty;              /* what is said when there is nothing */
    size_t (*count)(const hf__top *top);
    size_t (*figure)(const hf__top *top);           /* beside the tab's title */
    size_t (*span)(const hf__top *top, size_t row); /* rows that stay together; NULL: each alone */
    bool (*matches)(const hf__top *top, size_t row, const char *needle);
    hf__row_id (*id)(const hf__top *top, size_t row);
    void (*copy)(const hf__top *top, size_t row, hf__buf *out); /* what `y` takes */
} hf__list;

extern const hf__list hf__list_locks, hf__list_waits, hf__list_ingest, hf__list_events;

const hf__list *hf__list_at(hf__tab tab);
const hf__list *hf__list_of(const hf__top *top);
size_t hf__list_columns(const hf__list *list);

/* Filters, sorts, and finds the chosen row again. */
void hf__list_rebuild(hf__top *top);
void hf__list_choose(hf__top *top, size_t index);

bool hf__same_row(const hf__row_id *a, const hf__row_id *b);
bool hf__has(const char *text, const char *needle); /* in any case of letters; NULL has nothing */

/* One cell as it is shown. */
void hf__list_show(const hf__top *top, const hf__list_column *column, size_t row, hf__buf *out);

/* layout.c: the cells of each column, 0 where it is left out. */
void hf__layout(const hf__top *top, size_t width, size_t cells[HF__COLUMNS_MAX]);

#endif

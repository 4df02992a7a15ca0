/*
 * What the tabs show, and in which columns. There is one hf__list per tab: layout, order, filter
 * and JSON follow from it.
 */
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
    bool urgent;    /* comes before all others in either order */
    hf__ink ink;
} hf__value;

typedef struct hf__list_column {
    const char *title;
    const char *word; /* for --sort and JSON, where "_ms" is added to ages */
    hf__kind kind;
    unsigned least;   /* cells */
    bool stretches;   /* it gets the room that is left over */
    bool is_label;    /* it is cut in the middle */
    unsigned rank;    /* > 0: may be left out, the greatest first */
    bool is_extra;    /* shown only when the others have all the room they want */
    bool of_registry; /* empty without a registry */
    bool descending;  /* its usual order */
    hf__value (*value)(const hf__top *top, size_t row);
    /* Writes the cell when it shows more than its value; NULL: by its kind. */
    void (*show)(const hf__top *top, size_t row, hf__buf *out);
} hf__list_column;

typedef struct hf__list {
    const char *word, *title;
    const hf__list_column *columns; /* the last one has no title */
    size_t sort;                    /* the first column to sort by */
    const char *empty;              /* shown when there are no rows */
    size_t (*count)(const hf__top *top);
    size_t (*figure)(const hf__top *top);           /* the number after the tab's title */
    size_t (*span)(const hf__top *top, size_t row); /* how many rows stay together; NULL: 1 */
    bool (*matches)(const hf__top *top, size_t row, const char *needle);
    hf__row_id (*id)(const hf__top *top, size_t row);
    void (*copy)(const hf__top *top, size_t row, hf__buf *out); /* what `y` copies */
} hf__list;

extern const hf__list hf__list_locks, hf__list_waits, hf__list_ingest, hf__list_events;

const hf__list *hf__list_at(hf__tab tab);
const hf__list *hf__list_of(const hf__top *top);
size_t hf__list_columns(const hf__list *list);

/* Filters and sorts the rows again, and finds the chosen one. */
void hf__list_rebuild(hf__top *top);
void hf__list_choose(hf__top *top, size_t index);

bool hf__same_row(const hf__row_id *a, const hf__row_id *b);
bool hf__has(const char *text, const char *needle); /* ignores case; text may be NULL */

/* One cell as it is shown. */
void hf__list_show(const hf__top *top, const hf__list_column *column, size_t row, hf__buf *out);

/* How many cells each column gets; 0: it is left out. */
void hf__layout(const hf__top *top, size_t width, size_t cells[HF__COLUMNS_MAX]);

#endif

/*
 * The parts of the page, which page.c puts together. Each writes one <section>, and depends on
 * nothing but its argument. Nothing fails: without memory page->out is broken.
 */
#ifndef HF_SERVE_PARTS_H
#define HF_SERVE_PARTS_H

#include "programs/serve/page/html.h"
#include "programs/serve/page/page.h"

typedef struct hf__page {
    const hf__snapshot *seen;
    const hf__page_request *request; /* no string is NULL */
    hf__buf *out;
} hf__page;

/* The server tells times in UTC; the page's script shows them, and this, in the viewer's zone. */
#define HF__PAGE_ZONE " <abbr class=\"zone\" title=\"Coordinated Universal Time\">UTC</abbr>"

/* Of all stores: how they stand, those in trouble first, and what needs attention in any. */
void hf__page_stores(const hf__page *page);
/* Links to all stores; nothing where there is but one. */
void hf__page_switch(const hf__page *page);
/* One sentence; store is named in front of it, "": none is. */
void hf__page_attention_item(const hf__page *page, const hf__attention *item, const char *store);

void hf__page_locks(const hf__page *page);
void hf__page_waits(const hf__page *page);
void hf__page_contention(const hf__page *page);
void hf__page_ingest(const hf__page *page);
void hf__page_tables(const hf__page *page);
void hf__page_events(const hf__page *page);
void hf__page_registry(const hf__page *page);

/* What an open row shows: the index of a lock of the snapshot. */
void hf__page_lock(const hf__page *page, size_t lock);
/* The last events of a lock; ref is as in the URL. */
void hf__page_history(const hf__page *page, const char *ref);

/* One row of a table of events; with_lock: it also says which lock the event is about. */
void hf__page_event_row(const hf__page *page, const hf__seen_event *event, bool with_lock);

/* ---- links, and what all parts write alike ---- */

/* href="/?…#fragment" with the filters of the request. */
void hf__page_href(hf__buf *out, const hf__page_request *request, const char *fragment);
/* The filters of the request as hidden fields of a form, except those in the list: " q page ". */
void hf__page_hidden(hf__buf *out, const hf__page_request *request, const char *except);
/* The page that was asked for, from 0, of so many rows each; the last one if there are fewer. */
size_t hf__page_index(const char *asked, size_t rows, size_t count);
/* Links to the pages before and after; what: "locks" or "events". */
void hf__page_pages(const hf__page *page, const char *what, size_t rows, size_t at, size_t count);
/* href that opens the row of a lock. */
void hf__page_lock_href(const hf__page *page, hf_space space, int64_t key);

/* "ingest on db1, pid 4711", or "psql, backend 815" without a pid. 0: not known. */
void hf__page_who(hf__buf *out, const char *application, const char *host, int pid, int backend);
/*
 * Opens a <td> with the title of its column, for narrow screens, which show no line for a blank
 * one.
 */
void hf__page_cell(hf__buf *out, const char *title, bool is_number, bool is_blank);
/* "1 lock", "2 locks" */
void hf__page_count(hf__buf *out, size_t count, const char *one, const char *many);

#endif

/* The parts of the page; each writes one <section> and is a pure function of what it is given. */
#ifndef HF_SERVE_PAGE_H
#define HF_SERVE_PAGE_H

#include "programs/serve/html.h"
#include "programs/serve/render.h"

typedef struct hf__page {
    const hf__snapshot *seen;
    const hf__page_request *request; /* no string is NULL */
    hf__buf *out;
} hf__page;

void hf__page_locks(const hf__page *page);      /* page_locks.c */
void hf__page_waits(const hf__page *page);      /* page_waits.c */
void hf__page_contention(const hf__page *page); /* page_heat.c */
void hf__page_ingest(const hf__page *page);     /* page_ingest.c */
void hf__page_tables(const hf__page *page);     /* page_more.c */
void hf__page_events(const hf__page *page);     /* page_events.c */
void hf__page_registry(const hf__page *page);   /* page_more.c */

/* page_lock.c: what an open row shows. */
void hf__page_lock(const hf__page *page, size_t lock);
/* The last events of a lock, which is named as in the URL. */
void hf__page_history(const hf__page *page, const char *ref);

/* page_events.c: one row of the events' table; with_lock: also which lock it is about. */
void hf__page_event_row(const hf__page *page, const hf__seen_event *event, bool with_lock);

/* page_link.c: href="/?…#fragment" for a request with other filters. */
void hf__page_href(hf__buf *out, const hf__page_request *request, const char *fragment);
/* The filters of the request as hidden fields, without those whose names are listed: " q page ". */
void hf__page_hidden(hf__buf *out, const hf__page_request *request, const char *except);
/* href of the open row of a lock. */
void hf__page_lock_href(const hf__page *page, hf_space space, int64_t key);

/* "ingest on db1, pid 4711"; "psql, backend 815", of whom nothing else is known. 0: not known. */
void hf__page_who(hf__buf *out, const char *application, const char *host, int pid, int backend);
/* <td> with the title of its column, for narrow screens; is_blank: such a screen needs no line for it. */
void hf__page_cell(hf__buf *out, const char *title, bool is_number, bool is_blank);
/* 1 lock, 2 locks */
void hf__page_count(hf__buf *out, size_t count, const char *one, const char *many);

#endif

#include "shim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "_cgo_export.h"

enum { LINE_MAX_BYTES = 2048 }; /* below PIPE_BUF: a write is whole or not at all */

static void lost(hf_lock *lock, const hf_error *why, void *arg)
{
    (void)lock;
    holdfastLost((uintptr_t)arg, (hf_error *)why);
}

static void asked(hf_lock *lock, const hf_error *who, void *arg)
{
    (void)lock;
    holdfastAsked((uintptr_t)arg, (hf_error *)who);
}

static void wait_begins(const hf_error *why, void *arg)
{
    holdfastWaits((uintptr_t)arg, (hf_error *)why);
}

void hfgo_watch(hf_lock_spec *spec, uintptr_t id, bool tell_waits, bool tell_asks)
{
    spec->on_lost = lost;
    spec->on_wait = tell_waits ? wait_begins : NULL;
    spec->on_yield = tell_asks ? asked : NULL;
    spec->arg = (void *)id;
}

static void count(const hf_tx_stats *stats, void *arg)
{
    holdfastStats((uintptr_t)arg, (hf_tx_stats *)stats);
}

void hfgo_count(hf_tx_options *options, uintptr_t id)
{
    options->on_stats = count;
    options->stats_arg = (void *)id;
}

static void tell_span(const hf_span *span, void *arg)
{
    holdfastSpan((uintptr_t)arg, (hf_span *)span);
}

void hfgo_trace(hf_store_options *options, uintptr_t id)
{
    options->on_span = tell_span;
    options->span_arg = (void *)id;
}

static void write_line(void *arg, hf_log_level level, const char *message)
{
    char line[LINE_MAX_BYTES];
    int size = snprintf(line, sizeof line, "%d%s", (int)level, message);
    if (size < 0)
        return;
    if ((size_t)size >= sizeof line)
        size = sizeof line - 1;
    for (char *at = line; (at = memchr(at, '\n', (size_t)(line + size - at)));)
        *at = ' ';
    line[size] = '\n';
    (void)!write((int)(intptr_t)arg, line, (size_t)size + 1);
}

void hfgo_log_to(hf_store_options *options, int fd)
{
    options->log = write_line;
    options->log_arg = (void *)(intptr_t)fd;
}

static void add_cursor(void *arg, const char *name, int64_t value)
{
    holdfastCursor((uintptr_t)arg, (char *)name, value);
}

hf_status hfgo_cursors(hf_network *network, uintptr_t id, hf_error *err)
{
    return hf_cursor_list(network, add_cursor, (void *)id, err);
}

static void add_context(void *arg, const char *context_id)
{
    holdfastContext((uintptr_t)arg, (char *)context_id);
}

hf_status hfgo_contexts(hf_store *store, const hf_table_name *name, uintptr_t id, hf_error *err)
{
    return hf_table_refs(store, name, add_context, (void *)id, err);
}

static void add_finding(void *arg, hf_level level, const char *topic, const char *text,
                        const char *remedy)
{
    holdfastFinding((uintptr_t)arg, (int)level, (char *)topic, (char *)text, (char *)remedy);
}

hf_status hfgo_examine(hf_store *store, uintptr_t id, hf_error *err)
{
    return hf_store_examine(store, add_finding, (void *)id, err);
}

void hfgo_values(const hf_rows *rows, const char **values, size_t *sizes)
{
    size_t columns = hf_rows_columns(rows), at = 0;
    for (size_t row = 0; row < hf_rows_count(rows); row++)
        for (size_t column = 0; column < columns; column++, at++)
            values[at] = hf_rows_value(rows, row, column, &sizes[at]);
}

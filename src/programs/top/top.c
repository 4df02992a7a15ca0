#include "programs/top/top.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/top/list.h"

void hf__top_init(hf__top *top)
{
    *top = (hf__top){.refresh_ms = 2000};
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++)
        top->standings[tab].sort = hf__list_at(tab)->sort;
}

void hf__top_free(hf__top *top)
{
    hf__tree_free(&top->tree);
    free(top->rows);
    free(top->victims);
    *top = (hf__top){0};
}

bool hf__top_choose_tab(hf__top *top, const char *word)
{
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++)
        if (strcmp(hf__list_at(tab)->word, word) == 0) {
            top->tab = tab;
            return true;
        }
    return false;
}

bool hf__top_choose_sort(hf__top *top, const char *word)
{
    const hf__column *columns = hf__list_of(top)->columns;
    bool reversed = word[0] == '-';

    for (size_t i = 0; columns[i].title != NULL; i++)
        if (strcmp(columns[i].word, word + reversed) == 0) {
            top->standings[top->tab].sort = i;
            top->standings[top->tab].reversed = reversed;
            return true;
        }
    return false;
}

void hf__top_choose_filter(hf__top *top, const char *text)
{
    hf__entry_set(&top->filter, text);
}

void hf__top_list_tabs(hf__buf *out)
{
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++)
        hf__buf_printf(out, "%s%s", tab > 0 ? ", " : "", hf__list_at(tab)->word);
}

void hf__top_list_columns(const hf__top *top, hf__buf *out)
{
    const hf__column *columns = hf__list_of(top)->columns;

    for (size_t i = 0; columns[i].title != NULL; i++)
        hf__buf_printf(out, "%s%s", i > 0 ? ", " : "", columns[i].word);
}

void hf__top_see(hf__top *top, const hf__snapshot *snapshot)
{
    top->snapshot = snapshot;
    hf__list_rebuild(top);
}

void hf__top_say(hf__top *top, hf__ink ink, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(top->message, sizeof top->message, format, args);
    va_end(args);
    top->message_ink = ink;
}

const char *hf__top_copied(const hf__top *top, hf__buf *out)
{
    const hf__standing *standing = &top->standings[top->tab];

    hf__buf_clear(out);
    hf__buf_puts(out, "");
    if (standing->index < top->row_count)
        hf__list_of(top)->copy(top, top->rows[standing->index], out);
    return out->broken ? "" : out->data;
}

#include "programs/top/list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "programs/top/cell.h"

const hf__list *hf__list_at(hf__tab tab)
{
    static const hf__list *const lists[HF__TAB_COUNT] = {
        [HF__TAB_LOCKS] = &hf__list_locks,
        [HF__TAB_WAITS] = &hf__list_waits,
        [HF__TAB_INGEST] = &hf__list_ingest,
        [HF__TAB_EVENTS] = &hf__list_events,
    };

    return lists[tab];
}

const hf__list *hf__list_of(const hf__top *top)
{
    return hf__list_at(top->tab);
}

size_t hf__list_columns(const hf__list *list)
{
    size_t count = 0;

    while (list->columns[count].title != NULL)
        count++;
    return count;
}

bool hf__same_row(const hf__row_id *a, const hf__row_id *b)
{
    return a->a == b->a && a->b == b->b && a->c == b->c;
}

bool hf__has(const char *text, const char *needle)
{
    return text != NULL && strcasestr(text, needle) != NULL;
}

/* ---- cells ---- */

void hf__list_show(const hf__top *top, const hf__list_column *column, size_t row, hf__buf *out)
{
    hf__buf_clear(out);
    hf__buf_puts(out, "");
    if (column->show != NULL) {
        column->show(top, row, out);
        return;
    }
    hf__value value = column->value(top, row);
    switch (column->kind) {
    case HF__TEXT: hf__buf_puts(out, value.text); break;
    case HF__COUNT:
        if (value.number >= 0)
            hf__buf_printf(out, "%" PRId64, value.number);
        break;
    case HF__AGE: hf__put_age(out, value.number, value.bound); break;
    case HF__MOMENT: hf__put_moment(out, value.number, top->snapshot->taken_ms); break;
    case HF__KEY: hf__cell_key(out, value.number, value.space); break;
    case HF__RATE:
        if (value.number >= 0)
            hf__buf_printf(out, "%" PRId64 ".%" PRId64 "/s", value.number / 1000,
                           value.number % 1000 / 100);
        break;
    }
}

/* Most cells are shorter than the title, and need no measuring. */
static void measure(hf__top *top, const hf__list *list)
{
    hf__buf text = {0};

    for (size_t i = 0; i < hf__list_columns(list); i++) {
        const hf__list_column *column = &list->columns[i];
        size_t widest = strlen(column->title) + 2; /* the sign of the order */
        top->blanks[i] = true;
        for (size_t row = 0; row < top->row_count; row++) {
            hf__list_show(top, column, top->rows[row], &text);
            if (text.broken)
                break;
            top->blanks[i] = top->blanks[i] && text.length == 0;
            size_t cells =
                text.length > widest ? hf__text_cells(text.data, SIZE_MAX, top->ascii) : 0;
            if (cells > widest)
                widest = cells;
        }
        top->naturals[i] = widest > column->least ? widest : column->least;
        top->broken |= text.broken;
    }
    hf__buf_free(&text);
}

/* ---- order ---- */

static int compare_values(const hf__list_column *column, const hf__value *a, const hf__value *b)
{
    if (column->kind != HF__TEXT)
        return a->number < b->number ? -1 : a->number > b->number;
    return strcmp(a->text, b->text);
}

/* Unknown values come last in either order; equal ones stay in the order of the snapshot. */
static int compare_rows(const void *left, const void *right, void *arg)
{
    const hf__top *top = arg;
    const hf__standing *standing = &top->standings[top->tab];
    const hf__list_column *column = &hf__list_of(top)->columns[standing->sort];
    size_t row_a = *(const size_t *)left, row_b = *(const size_t *)right;
    hf__value a = column->value(top, row_a), b = column->value(top, row_b);

    if (a.urgent != b.urgent)
        return a.urgent ? -1 : 1;
    if (column->kind == HF__TEXT && (a.text[0] == '\0') != (b.text[0] == '\0'))
        return a.text[0] == '\0' ? 1 : -1;
    int order = compare_values(column, &a, &b);
    if (order == 0)
        return row_a < row_b ? -1 : row_a > row_b;
    return column->descending != standing->reversed ? -order : order;
}

/* ---- rows ---- */

static size_t span_of(const hf__top *top, const hf__list *list, size_t row)
{
    return list->span != NULL ? list->span(top, row) : 1;
}

static bool group_matches(const hf__top *top, const hf__list *list, size_t row, size_t span)
{
    if (top->filter.size == 0)
        return true;
    for (size_t i = 0; i < span; i++)
        if (list->matches(top, row + i, top->filter.text))
            return true;
    return false;
}

/* The first row of each group that passes the filter, sorted. The caller frees them. */
static size_t *sorted_heads(hf__top *top, const hf__list *list, size_t total, size_t *count)
{
    size_t *heads = calloc(total + 1, sizeof *heads);

    *count = 0;
    if (heads == NULL)
        return NULL;
    for (size_t row = 0; row < total;) {
        size_t span = span_of(top, list, row);
        if (group_matches(top, list, row, span))
            heads[(*count)++] = row;
        row += span;
    }
    qsort_r(heads, *count, sizeof *heads, compare_rows, top);
    return heads;
}

static void fill_rows(hf__top *top, const hf__list *list)
{
    size_t total = list->count(top), count = 0;
    size_t *heads = sorted_heads(top, list, total, &count);

    top->row_count = 0;
    if (heads == NULL || !hf__grow(&top->rows, &top->row_room, total, sizeof *top->rows)) {
        top->broken = true;
        count = 0;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < span_of(top, list, heads[i]); j++)
            top->rows[top->row_count++] = heads[i] + j;
    free(heads);
}

void hf__list_choose(hf__top *top, size_t index)
{
    hf__standing *standing = &top->standings[top->tab];

    if (index >= top->row_count)
        index = top->row_count > 0 ? top->row_count - 1 : 0;
    standing->index = index;
    standing->has_chosen = top->row_count > 0;
    if (standing->has_chosen)
        standing->chosen = hf__list_of(top)->id(top, top->rows[index]);
}

/* Finds the chosen row again. If it is gone, the row in its place becomes the chosen one. */
static void find_chosen(hf__top *top, const hf__list *list)
{
    const hf__standing *standing = &top->standings[top->tab];

    for (size_t i = 0; standing->has_chosen && i < top->row_count; i++) {
        hf__row_id id = list->id(top, top->rows[i]);
        if (hf__same_row(&id, &standing->chosen)) {
            hf__list_choose(top, i);
            return;
        }
    }
    hf__list_choose(top, standing->index);
}

void hf__list_rebuild(hf__top *top)
{
    const hf__list *list = hf__list_of(top);

    top->broken = false;
    if (top->snapshot == NULL)
        return;
    if (top->tab == HF__TAB_WAITS)
        top->broken = !hf__tree_build(&top->tree, top->snapshot);
    fill_rows(top, list);
    find_chosen(top, list);
    measure(top, list);
}

/* ---- how wide each column is ---- */

enum { BETWEEN = 2, STEP = 8, ENOUGH = 40 };

static size_t needed(size_t count, const size_t cells[HF__COLUMNS_MAX])
{
    size_t sum = 0;

    for (size_t i = 0; i < count; i++)
        if (cells[i] > 0)
            sum += cells[i] + (sum > 0 ? BETWEEN : 0);
    return sum;
}

/* The column to leave out next, among the extra ones or all. Returns count if there is none. */
static size_t least_wanted(const hf__list *list, size_t count, const size_t cells[HF__COLUMNS_MAX],
                           bool extra)
{
    size_t found = count;

    for (size_t i = 0; i < count; i++)
        if (cells[i] > 0 && list->columns[i].rank > 0 && (!extra || list->columns[i].is_extra) &&
            (found == count || list->columns[i].rank > list->columns[found].rank))
            found = i;
    return found;
}

/* In steps, so that columns do not change their width with every label. */
static size_t wanted(const hf__top *top, const hf__list_column *column, size_t index, bool stretch)
{
    size_t natural = top->naturals[index];

    return column->stretches && stretch ? (natural + STEP - 1) / STEP * STEP : natural;
}

/* One round: a cell for each column that wants more, three for those that stretch. */
static size_t give_round(const hf__top *top, const hf__list *list, size_t left, bool stretch,
                         size_t cells[HF__COLUMNS_MAX])
{
    size_t given = 0;

    for (size_t i = 0; list->columns[i].title != NULL; i++) {
        size_t share = list->columns[i].stretches ? 3 : 1;
        for (; share > 0 && given < left && cells[i] > 0 &&
               cells[i] < wanted(top, &list->columns[i], i, stretch);
             share--, given++)
            cells[i]++;
    }
    return given;
}

static void give(const hf__top *top, const hf__list *list, size_t width, bool stretch,
                 size_t cells[HF__COLUMNS_MAX])
{
    size_t count = hf__list_columns(list), need, given;

    do {
        need = needed(count, cells);
        given = need < width ? give_round(top, list, width - need, stretch, cells) : 0;
    } while (given > 0);
}

static bool is_number(const hf__list_column *column)
{
    return column->kind != HF__TEXT && column->show == NULL;
}

/* Numbers get their room first: a number that is cut looks like another one. */
static void give_numbers(const hf__top *top, const hf__list *list, size_t count, size_t left,
                         size_t cells[HF__COLUMNS_MAX])
{
    for (size_t i = 0; i < count; i++)
        for (; is_number(&list->columns[i]) && left > 0 && cells[i] > 0 &&
               cells[i] < top->naturals[i];
             left--)
            cells[i]++;
}

/* Each column starts with what it wants, up to what is enough to tell labels apart. */
static void take_wanted(const hf__top *top, const hf__list *list, size_t count,
                        size_t cells[HF__COLUMNS_MAX])
{
    for (size_t i = 0; i < count; i++) {
        size_t most = list->columns[i].least > ENOUGH ? list->columns[i].least : ENOUGH;
        cells[i] = top->naturals[i] < most ? top->naturals[i] : most;
        if (list->columns[i].of_registry && top->snapshot->registry == NULL)
            cells[i] = 0;
    }
}

static void leave_out(const hf__list *list, size_t count, size_t width, bool extra,
                      size_t cells[HF__COLUMNS_MAX])
{
    size_t column;

    while (needed(count, cells) > width &&
           (column = least_wanted(list, count, cells, extra)) < count)
        cells[column] = 0;
}

void hf__layout(const hf__top *top, size_t width, size_t cells[HF__COLUMNS_MAX])
{
    const hf__list *list = hf__list_of(top);
    size_t count = hf__list_columns(list);

    take_wanted(top, list, count, cells);
    for (size_t i = 0; i < count; i++)
        if (needed(count, cells) > width && top->row_count > 0 && top->blanks[i] &&
            list->columns[i].rank > 0)
            cells[i] = 0;
    leave_out(list, count, width, true, cells);
    for (size_t i = 0; i < count; i++)
        if (cells[i] > 0)
            cells[i] = width == SIZE_MAX ? top->naturals[i] : list->columns[i].least;
    leave_out(list, count, width, false, cells);
    size_t need = needed(count, cells);
    if (need >= width || width == SIZE_MAX)
        return;
    give_numbers(top, list, count, width - need, cells);
    give(top, list, width, false, cells);
    give(top, list, width, true, cells);
}

#include "programs/top/list.h"

enum { BETWEEN = 2, STEP = 8, ENOUGH = 40 };

static size_t needed(size_t count, const size_t cells[HF__COLUMNS_MAX])
{
    size_t sum = 0;

    for (size_t i = 0; i < count; i++)
        if (cells[i] > 0)
            sum += cells[i] + (sum > 0 ? BETWEEN : 0);
    return sum;
}

/* The column that can be done without best, among the extra ones or all; count: none. */
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

/* At last in steps, so that columns do not jump with every label that comes and goes. */
static size_t wanted(const hf__top *top, const hf__column *column, size_t index, bool stretch)
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

static bool is_number(const hf__column *column)
{
    return column->kind != HF__TEXT && column->show == NULL;
}

/* A number that is cut would be another one, so numbers come first. */
static void give_numbers(const hf__top *top, const hf__list *list, size_t count, size_t left,
                         size_t cells[HF__COLUMNS_MAX])
{
    for (size_t i = 0; i < count; i++)
        for (; is_number(&list->columns[i]) && left > 0 && cells[i] > 0 &&
               cells[i] < top->naturals[i];
             left--)
            cells[i]++;
}

/* What each column wants, but no more than anybody needs to tell one label from another. */
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

#include "programs/append/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parts of a table ------------------------------------------------------------------------ */

void hf__parts_free(hf__parts *parts)
{
    free(parts->items);
    *parts = (hf__parts){0};
}

static void add_source(hf__buf *sql, const char *database, const char *table)
{
    hf__buf_puts(sql, " FROM system.parts WHERE ");
    hf__put_table_condition(sql, database, table);
}

static hf_status read_parts(const hf__grid *grid, hf__parts *parts, hf_error *err)
{
    *parts = (hf__parts){0};
    parts->items = calloc(grid->rows > 0 ? grid->rows : 1, sizeof *parts->items);
    if (parts->items == NULL)
        return hf__no_memory(err);
    for (size_t i = 0; i < grid->rows; i++) {
        hf__plan_part *part = &parts->items[parts->count++];
        (void)snprintf(part->partition, sizeof part->partition, "%s", hf__grid_at(grid, i, 0));
        part->min_block = hf__grid_number(grid, i, 1);
        part->max_block = hf__grid_number(grid, i, 2);
        part->rows = hf__grid_number(grid, i, 3);
        part->bytes = hf__grid_number(grid, i, 4);
        part->is_active = hf__grid_number(grid, i, 5) != 0;
        part->level = hf__grid_number(grid, i, 6);
    }
    return HF_OK;
}

hf_status hf__parts_read(hf__target *target, const char *database, const char *table, int64_t above,
                         hf__parts *parts, hf_error *err)
{
    hf__buf sql = {0};
    hf__grid grid = {0};

    hf__buf_puts(&sql,
                 "SELECT partition_id, min_block_number, max_block_number, rows, bytes_on_disk, "
                 "active, level");
    add_source(&sql, database, table);
    if (above >= 0)
        hf__buf_printf(&sql, " AND max_block_number > %" PRId64, above);
    hf__buf_puts(&sql, " ORDER BY partition_id, min_block_number, max_block_number");
    const hf__statement read = {.what = "read system.parts"};
    hf_status status = hf__target_ask(target, &read, &sql, &grid, err);
    if (status == HF_OK)
        status = read_parts(&grid, parts, err);
    hf__grid_free(&grid);
    return status;
}

/* ---- Making a plan --------------------------------------------------------------------------- */

void hf__plan_free(hf__plan *plan)
{
    free(plan->partitions);
    free(plan->parts);
    *plan = (hf__plan){0};
}

static hf__plan_partition *add_partition(hf__plan *plan, const char *id)
{
    hf__plan_partition *more =
        reallocarray(plan->partitions, plan->partition_count + 1, sizeof *more);

    if (more == NULL)
        return NULL;
    plan->partitions = more;
    hf__plan_partition *added = &more[plan->partition_count++];
    *added = (hf__plan_partition){.first = plan->part_count};
    (void)snprintf(added->id, sizeof added->id, "%s", id);
    return added;
}

static bool add_part(hf__plan *plan, hf__plan_partition *partition, const hf__plan_part *part)
{
    hf__plan_part *more = reallocarray(plan->parts, plan->part_count + 1, sizeof *more);

    if (more == NULL)
        return false;
    plan->parts = more;
    more[plan->part_count++] = *part;
    partition->count++;
    partition->rows += part->rows;
    plan->rows += part->rows;
    return true;
}

hf_status hf__plan_make(const hf__parts *staged, hf__plan *plan, hf_error *err)
{
    hf__plan_partition *last = NULL;

    *plan = (hf__plan){0};
    for (size_t i = 0; i < staged->count; i++) {
        const hf__plan_part *part = &staged->items[i];
        if (!part->is_active || part->rows == 0)
            continue;
        if (last == NULL || strcmp(last->id, part->partition) != 0)
            last = add_partition(plan, part->partition);
        if (last == NULL || !add_part(plan, last, part)) {
            hf__plan_free(plan);
            return hf__no_memory(err);
        }
    }
    return HF_OK;
}

static void fill_in(hf__plan *plan, const hf__grid *grid)
{
    for (size_t i = 0; i < plan->partition_count; i++) {
        hf__plan_partition *partition = &plan->partitions[i];
        partition->last_block = 0;
        partition->rows_before = 0;
        for (size_t row = 0; row < grid->rows; row++) {
            if (strcmp(hf__grid_at(grid, row, 0), partition->id) != 0)
                continue;
            partition->last_block = hf__grid_number(grid, row, 1);
            partition->rows_before = hf__grid_number(grid, row, 2);
        }
    }
}

hf_status hf__plan_look(hf__plan *plan, hf__target *target, const char *database, const char *table,
                        hf_error *err)
{
    hf__buf sql = {0};
    hf__grid grid = {0};

    hf__buf_puts(&sql, "SELECT partition_id, max(max_block_number), sum(rows * active)");
    add_source(&sql, database, table);
    hf__buf_puts(&sql, " GROUP BY partition_id");
    const hf__statement look = {.what = "read system.parts"};
    hf_status status = hf__target_ask(target, &look, &sql, &grid, err);
    if (status == HF_OK)
        fill_in(plan, &grid);
    hf__grid_free(&grid);
    return status;
}

int64_t hf__plan_least_block(const hf__plan *plan)
{
    int64_t least = plan->partition_count > 0 ? plan->partitions[0].last_block : 0;

    for (size_t i = 1; i < plan->partition_count; i++)
        if (plan->partitions[i].last_block < least)
            least = plan->partitions[i].last_block;
    return least;
}

/*
 * A plan as text has a line for each partition:
 *     PARTITION LAST_BLOCK ROWS_BEFORE ROWS:BYTES,ROWS:BYTES,…
 */

void hf__plan_write(const hf__plan *plan, hf__buf *text)
{
    for (size_t i = 0; i < plan->partition_count; i++) {
        const hf__plan_partition *partition = &plan->partitions[i];
        hf__buf_printf(text, "%s %" PRId64 " %" PRId64 " ", partition->id, partition->last_block,
                       partition->rows_before);
        for (size_t p = 0; p < partition->count; p++)
            hf__buf_printf(text, "%s%" PRId64 ":%" PRId64, p > 0 ? "," : "",
                           plan->parts[partition->first + p].rows,
                           plan->parts[partition->first + p].bytes);
        hf__buf_puts(text, "\n");
    }
}

static bool take_number(const char **text, int64_t *number)
{
    char *end = NULL;

    errno = 0;
    *number = strtoll(*text, &end, 10);
    bool is_one = errno == 0 && end != *text && **text >= '0' && **text <= '9';
    *text = end;
    return is_one;
}

static bool take(const char **text, char wanted)
{
    bool is_there = **text == wanted;

    *text += is_there ? 1 : 0;
    return is_there;
}

static bool take_parts(const char **text, hf__plan *plan, hf__plan_partition *partition)
{
    hf__plan_part part = {.is_active = true};

    memcpy(part.partition, partition->id, sizeof part.partition);
    do
        if (!take_number(text, &part.rows) || !take(text, ':') || !take_number(text, &part.bytes) ||
            !add_part(plan, partition, &part))
            return false;
    while (take(text, ','));
    return take(text, '\n');
}

static bool take_line(const char **text, hf__plan *plan)
{
    char id[HF__PARTITION_MAX];
    size_t size = strcspn(*text, " \n");

    if (size == 0 || size >= sizeof id)
        return false;
    memcpy(id, *text, size);
    id[size] = '\0';
    *text += size;
    hf__plan_partition *partition = add_partition(plan, id);
    return partition != NULL && take(text, ' ') && take_number(text, &partition->last_block) &&
           take(text, ' ') && take_number(text, &partition->rows_before) && take(text, ' ') &&
           take_parts(text, plan, partition);
}

hf_status hf__plan_parse(const char *text, hf__plan *plan, hf_error *err)
{
    *plan = (hf__plan){0};
    while (*text != '\0')
        if (!take_line(&text, plan)) {
            hf__plan_free(plan);
            return hf__fail(err, HF_BAD_DATA, "the plan of the append is damaged in the store");
        }
    return HF_OK;
}

/* ---- Was it attached? ------------------------------------------------------------------------ */

static bool is_in(const hf__plan_part *part, const hf__plan_partition *partition)
{
    return part->max_block > partition->last_block && strcmp(part->partition, partition->id) == 0;
}

/*
 * How many of the partition's parts are in the table, in their order? ATTACH gives a part new block
 * numbers and keeps its files. same_files false: also count parts with as many rows but other
 * files, which may be ours after the server has rewritten them.
 */
static size_t count_there(const hf__plan *plan, const hf__plan_partition *partition,
                          const hf__parts *now, bool same_files)
{
    size_t found = 0;

    for (size_t i = 0; i < now->count && found < partition->count; i++) {
        const hf__plan_part *part = &now->items[i];
        const hf__plan_part *wanted = &plan->parts[partition->first + found];
        if (is_in(part, partition) && part->min_block == part->max_block &&
            part->rows == wanted->rows && (!same_files || part->bytes == wanted->bytes))
            found++;
    }
    return found;
}

/* OPTIMIZE or a TTL merges even a single part: it may be ours, with other rows. */
static bool is_merged(const hf__plan_partition *partition, const hf__parts *now)
{
    bool merged = false;

    for (size_t i = 0; i < now->count; i++)
        merged = merged ||
                 (is_in(&now->items[i], partition) &&
                  (now->items[i].min_block != now->items[i].max_block || now->items[i].level > 0));
    return merged;
}

hf__verdict hf__plan_judge(const hf__plan *plan, const hf__plan_partition *partition,
                           const hf__parts *now, int64_t rows_now, bool collapses)
{
    int64_t more = rows_now - partition->rows_before;
    size_t alike = count_there(plan, partition, now, false);

    if (count_there(plan, partition, now, true) == partition->count)
        return HF__ATTACHED;
    if (alike == 0 && !is_merged(partition, now)) /* newer parts, if any, are not ours */
        return HF__NOT_ATTACHED;
    if (collapses)
        return HF__UNSURE;
    return more == partition->rows ? HF__ATTACHED : more == 0 ? HF__NOT_ATTACHED : HF__UNSURE;
}

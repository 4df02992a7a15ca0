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

static hf_status read_parts(const hf__grid *grid, hf__parts *parts, hf_error *err)
{
    *parts = (hf__parts){0};
    parts->items = calloc(grid->rows > 0 ? grid->rows : 1, sizeof *parts->items);
    if (parts->items == NULL)
        return hf__no_memory(err);
    for (size_t i = 0; i < grid->rows; i++) {
        hf__plan_part *part = &parts->items[parts->count++];
        (void)snprintf(part->partition, sizeof part->partition, "%s", hf__grid_at(grid, i, 0));
        (void)snprintf(part->name, sizeof part->name, "%s", hf__grid_at(grid, i, 1));
        part->min_block = hf__grid_number(grid, i, 2);
        part->max_block = hf__grid_number(grid, i, 3);
        part->rows = hf__grid_number(grid, i, 4);
        part->is_active = hf__grid_number(grid, i, 5) != 0;
        part->level = hf__grid_number(grid, i, 6);
        part->is_mutated = hf__grid_number(grid, i, 7) != part->min_block;
        (void)snprintf(part->files, sizeof part->files, "%s", hf__grid_at(grid, i, 8));
        part->modified = hf__grid_number(grid, i, 9);
    }
    return HF_OK;
}

hf_status hf__parts_read(hf__target *target, const char *database, const char *table,
                         bool with_checksums, int64_t above, hf__parts *parts, hf_error *err)
{
    hf__buf sql = {0};
    hf__grid grid = {0};

    hf__buf_printf(&sql,
                   "SELECT partition_id, name, min_block_number, max_block_number, rows, active, "
                   "level, data_version, concat(toString(bytes_on_disk), '/', "
                   "toString(data_uncompressed_bytes), '/', toString(marks)%s), "
                   "toInt64(toUnixTimestamp(modification_time)) FROM system.parts WHERE ",
                   with_checksums ? ", '/', hash_of_all_files" : "");
    hf__put_table_condition(&sql, database, table);
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

int64_t hf__plan_least_block(const hf__plan *plan)
{
    int64_t least = plan->partition_count > 0 ? plan->partitions[0].last_block : 0;

    for (size_t i = 1; i < plan->partition_count; i++)
        if (plan->partitions[i].last_block < least)
            least = plan->partitions[i].last_block;
    return least;
}

/*
 * A plan as text begins with what it was made for, and has a line for each partition:
 *     2 AT STARTED TABLE_MARK
 *     PARTITION LAST_BLOCK ROWS:FILES:BLOCK_ID,ROWS:FILES:BLOCK_ID,…
 */
enum { VERSION = 2 };

void hf__plan_write(const hf__plan *plan, hf__buf *text)
{
    hf__buf_printf(text, "%d %" PRId64 " %" PRId64 " %s\n", VERSION, plan->at, plan->started,
                   plan->table_mark);
    for (size_t i = 0; i < plan->partition_count; i++) {
        const hf__plan_partition *partition = &plan->partitions[i];
        hf__buf_printf(text, "%s %" PRId64 " ", partition->id, partition->last_block);
        for (size_t p = 0; p < partition->count; p++) {
            const hf__plan_part *part = &plan->parts[partition->first + p];
            hf__buf_printf(text, "%s%" PRId64 ":%s:%s", p > 0 ? "," : "", part->rows, part->files,
                           part->block_id);
        }
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

/* A word up to one of the characters in ends. */
static bool take_word(const char **text, const char *ends, char *out, size_t size)
{
    size_t length = strcspn(*text, ends);

    if (length >= size)
        return false;
    memcpy(out, *text, length);
    out[length] = '\0';
    *text += length;
    return true;
}

static bool take_parts(const char **text, hf__plan *plan, hf__plan_partition *partition)
{
    hf__plan_part part = {.is_active = true};

    memcpy(part.partition, partition->id, sizeof part.partition);
    do
        if (!take_number(text, &part.rows) || !take(text, ':') ||
            !take_word(text, ":,\n", part.files, sizeof part.files) || !take(text, ':') ||
            !take_word(text, ":,\n", part.block_id, sizeof part.block_id) ||
            !add_part(plan, partition, &part))
            return false;
    while (take(text, ','));
    return take(text, '\n');
}

static bool take_line(const char **text, hf__plan *plan)
{
    char id[HF__PARTITION_MAX];

    if (!take_word(text, " \n", id, sizeof id) || id[0] == '\0')
        return false;
    hf__plan_partition *partition = add_partition(plan, id);
    return partition != NULL && take(text, ' ') && take_number(text, &partition->last_block) &&
           take(text, ' ') && take_parts(text, plan, partition);
}

static bool take_head(const char **text, hf__plan *plan)
{
    int64_t version = 0;

    return take_number(text, &version) && version == VERSION && take(text, ' ') &&
           take_number(text, &plan->at) && take(text, ' ') && take_number(text, &plan->started) &&
           take(text, ' ') && take_word(text, " \n", plan->table_mark, sizeof plan->table_mark) &&
           take(text, '\n');
}

hf_status hf__plan_parse(const char *text, hf__plan *plan, hf_error *err)
{
    *plan = (hf__plan){0};
    bool is_one = take_head(&text, plan);
    while (is_one && *text != '\0')
        is_one = take_line(&text, plan);
    if (is_one)
        return HF_OK;
    hf__plan_free(plan);
    return hf__fail(err, HF_BAD_DATA, "the plan of the append is damaged in the store");
}

/*
 * Was it attached? ATTACH gives a part a new block number and keeps its files and its level. Row
 * counts prove nothing, since others write to the table as well.
 */

static bool is_in(const hf__plan_part *part, const hf__plan_partition *partition)
{
    return part->max_block > partition->last_block && strcmp(part->partition, partition->id) == 0;
}

bool hf__plan_is_alike(const hf__plan_part *planned, const hf__plan_partition *partition,
                       const hf__plan_part *part)
{
    return is_in(part, partition) && part->min_block == part->max_block && !part->is_mutated &&
           part->rows == planned->rows && strcmp(part->files, planned->files) == 0 &&
           (!part->has_sum || !planned->has_sum || part->sum == planned->sum);
}

/* Its rows are in the table: by itself, or inside of a part that merges or mutations made of it. */
static bool is_alive(const hf__plan_part *part, const hf__parts *now)
{
    bool is = part->is_active;

    for (size_t i = 0; i < now->count && !is; i++) {
        const hf__plan_part *other = &now->items[i];
        is = other->is_active && strcmp(other->partition, part->partition) == 0 &&
             other->min_block <= part->min_block && other->max_block >= part->max_block;
    }
    return is;
}

static bool is_original(const hf__plan_part *part)
{
    return part->min_block == part->max_block && part->level == 0 && !part->is_mutated;
}

/* Servers keep the parts that they have merged or mutated for minutes: are all of these there? */
static bool is_explained(const hf__plan_part *part, const hf__plan_partition *partition,
                         const hf__parts *now)
{
    int64_t first =
        part->min_block > partition->last_block ? part->min_block : partition->last_block + 1;
    int64_t wanted = part->max_block - first + 1;

    for (size_t i = 0; i < now->count && wanted > 0; i++) {
        const hf__plan_part *other = &now->items[i];
        if (is_original(other) && strcmp(other->partition, part->partition) == 0 &&
            other->min_block >= first && other->max_block <= part->max_block)
            wanted--;
    }
    return wanted == 0;
}

/* Does some later part show no longer what it was made of? It may hide one of ours. */
static bool is_hidden(const hf__plan *plan, const hf__plan_partition *partition,
                      const hf__parts *now)
{
    for (size_t i = 0; i < now->count; i++) {
        const hf__plan_part *part = &now->items[i];
        bool is_alike = false;
        for (size_t p = 0; p < partition->count && !is_alike; p++)
            is_alike = hf__plan_is_alike(&plan->parts[partition->first + p], partition, part);
        if (is_in(part, partition) && !is_alike && !is_explained(part, partition, now))
            return true;
    }
    return false;
}

static hf__found look_at(const hf__plan_part *planned, const hf__plan_part *part,
                         const hf__parts *now, const hf__evidence *evidence)
{
    bool is_same =
        evidence->is_answered || evidence->has_checksums || (planned->has_sum && part->has_sum);

    return is_same && is_alive(part, now) ? HF__THERE : HF__MAYBE;
}

hf__verdict hf__plan_sum_up(const hf__plan *plan, const hf__plan_partition *partition)
{
    size_t count[HF__MAYBE + 1] = {0};

    for (size_t p = 0; p < partition->count; p++)
        count[plan->parts[partition->first + p].found]++;
    if (count[HF__MAYBE] > 0)
        return HF__UNSURE;
    return count[HF__ABSENT] == 0  ? HF__ATTACHED
           : count[HF__THERE] == 0 ? HF__NOT_ATTACHED
                                   : HF__PARTLY;
}

/*
 * Was the part made before the look at the table? Times count seconds, here and for the start of
 * the server, so in the second of the look it was only if no server has started before that second
 * was over.
 */
static bool is_older(const hf__plan *plan, const hf__plan_part *part, const hf__evidence *evidence)
{
    enum { SLACK_S = 1 };
    bool is_over = evidence->started > plan->at + SLACK_S;

    return !evidence->is_clock_back &&
           (part->modified < plan->at || (part->modified == plan->at && is_over));
}

/*
 * DROP and DETACH PARTITION, TRUNCATE and their like take all parts of a partition away, and those
 * that come later have later blocks. Where one that was there before is still there, or one of this
 * append's, nobody did that. A server that is restarted counts blocks from the greatest that it
 * finds, so there the part must be older as well.
 */
bool hf__plan_is_kept(const hf__plan *plan, const hf__plan_partition *partition,
                      const hf__parts *now, const hf__evidence *evidence)
{
    bool is = evidence->is_answered || evidence->is_at_once;

    for (size_t p = 0; p < partition->count && !is; p++)
        is = plan->parts[partition->first + p].found == HF__THERE;
    for (size_t i = 0; i < now->count && !is; i++) {
        const hf__plan_part *part = &now->items[i];
        is = strcmp(part->partition, partition->id) == 0 && partition->last_block > 0 &&
             part->min_block <= partition->last_block &&
             (evidence->is_same_run || is_older(plan, part, evidence)) && is_alive(part, now);
    }
    return is;
}

hf__verdict hf__plan_judge(hf__plan *plan, const hf__plan_partition *partition,
                           const hf__parts *now, const hf__evidence *evidence)
{
    bool is_hiding = evidence->is_altered || is_hidden(plan, partition, now);
    size_t at = 0;

    for (size_t p = 0; p < partition->count; p++) {
        hf__plan_part *planned = &plan->parts[partition->first + p];
        size_t next = at;
        while (next < now->count && !hf__plan_is_alike(planned, partition, &now->items[next]))
            next++;
        if (next < now->count)
            planned->found = look_at(planned, &now->items[next], now, evidence);
        else
            planned->found = HF__ABSENT;
        at = next < now->count ? next + 1 : at; /* they are attached in their order */
    }
    is_hiding = is_hiding || !hf__plan_is_kept(plan, partition, now, evidence);
    for (size_t p = 0; p < partition->count && is_hiding; p++)
        if (plan->parts[partition->first + p].found == HF__ABSENT)
            plan->parts[partition->first + p].found = HF__MAYBE;
    return hf__plan_sum_up(plan, partition);
}

/*
 * Replicated tables. ATTACH leaves out a part, without a word, when one with equal files was
 * attached before: ZooKeeper has a list of those, by a checksum that no system table shows. So the
 * staged parts are attached to an empty replicated table first, which tells their checksums. Files
 * are linked for that, not copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/append/proof.h"
#include "programs/append/staging.h"

static const char infix[] = "_replace_from_"; /* PARTITION_replace_from_CHECKSUM */

static hf_status ask_for_path(hf__work *work, hf_error *err)
{
    const hf__statement read = {.what = "read system.replicas"};
    hf__buf sql = {0};
    hf__grid grid = {0};

    hf__buf_puts(&sql, "SELECT zookeeper_path FROM system.replicas WHERE ");
    hf__put_table_condition(&sql, work->name.database, work->name.table);
    hf_status status = hf__target_ask(work->target, &read, &sql, &grid, err);
    if (status == HF_OK)
        (void)snprintf(work->zookeeper_path, sizeof work->zookeeper_path, "%s",
                       hf__grid_at(&grid, 0, 0));
    hf__grid_free(&grid);
    return status;
}

/* The same path in another ZooKeeper, or of a table that was made anew, has another. */
static void ask_for_mark(hf__work *work)
{
    const hf__statement read = {.what = "read system.zookeeper"};
    char parent[HF__SERVER_MAX];
    hf__buf sql = {0};
    hf__grid grid = {0};

    memcpy(parent, work->zookeeper_path, sizeof parent);
    char *slash = strrchr(parent, '/');
    if (slash == NULL)
        return;
    *slash = '\0';
    hf__buf_puts(&sql, "SELECT concat(toString(czxid), '-', toString(toUnixTimestamp(ctime))) FROM "
                       "system.zookeeper WHERE path = ");
    hf__quote_text(&sql, parent[0] != '\0' ? parent : "/");
    hf__buf_puts(&sql, " AND name = ");
    hf__quote_text(&sql, slash + 1);
    if (hf__target_ask(work->target, &read, &sql, &grid, NULL) == HF_OK && grid.rows == 1)
        (void)snprintf(work->zookeeper_mark, sizeof work->zookeeper_mark, "%s",
                       hf__grid_at(&grid, 0, 0));
    hf__grid_free(&grid);
}

hf_status hf__replicated_find(hf__work *work, hf_error *err)
{
    hf_status status = ask_for_path(work, err);

    if (status != HF_OK || work->zookeeper_path[0] == '\0')
        return status;
    ask_for_mark(work);
    (void)snprintf(work->server, sizeof work->server, "zookeeper:%.180s#%s", work->zookeeper_path,
                   work->zookeeper_mark);
    return HF_OK;
}

static hf_status read_block_ids(hf__work *work, const char *path, hf__grid *grid, hf_error *err)
{
    const hf__statement read = {.what = "read system.zookeeper"};
    hf__buf sql = {0}, blocks = {0};

    hf__buf_printf(&blocks, "%s/blocks", path);
    hf__buf_puts(&sql, "SELECT name, value FROM system.zookeeper WHERE path = ");
    hf__quote_text(&sql, blocks.broken ? "" : blocks.data);
    hf__buf_free(&blocks);
    return hf__target_ask(work->target, &read, &sql, grid, err);
}

hf_status hf__block_ids_read(hf__work *work, hf__grid *grid, hf_error *err)
{
    return read_block_ids(work, work->zookeeper_path, grid, err);
}

/* The checksum in the name of a node, if that is one of the partition; else NULL. */
static const char *checksum_in(const char *node, const char *partition)
{
    size_t size = strlen(partition);

    if (strncmp(node, partition, size) != 0 || strncmp(node + size, infix, sizeof infix - 1) != 0)
        return NULL;
    return node + size + sizeof infix - 1;
}

bool hf__block_id_is_among(const hf__grid *grid, const char *partition, const char *block_id)
{
    for (size_t i = 0; i < grid->rows; i++) {
        const char *checksum = checksum_in(hf__grid_at(grid, i, 0), partition);
        if (checksum != NULL && strcmp(checksum, block_id) == 0)
            return true;
    }
    return false;
}

hf_status hf__replicated_check(hf__work *work, const hf__plan *plan, hf_error *err)
{
    hf__grid known = {0};
    hf_status status = hf__block_ids_read(work, &known, NULL);

    work->is_equal_to_known = false;
    for (size_t i = 0; i < plan->partition_count && status == HF_OK; i++)
        for (size_t p = 0; p < plan->partitions[i].count && status == HF_OK; p++) {
            const hf__plan_part *part = &plan->parts[plan->partitions[i].first + p];
            if (part->block_id[0] != '\0' &&
                hf__block_id_is_among(&known, plan->partitions[i].id, part->block_id)) {
                status = hf__refuse_equal(work, part, err);
                work->is_equal_to_known = true;
            }
        }
    hf__grid_free(&known);
    return work->is_equal_to_known ? status : HF_OK; /* what cannot be read is verified later */
}

/* ---- The empty table ------------------------------------------------------------------------- */

static hf_status create_probe(hf__work *work, const char *probe, const char *path, hf_error *err)
{
    static const char begin[] = " ENGINE = ";
    hf__buf sql = {0}, plain = {0};

    hf__staging_engine(work->engine_full.data, &plain);
    if (plain.broken || plain.length < sizeof begin) {
        hf__buf_free(&plain);
        return hf__no_memory(err);
    }
    const char *engine = plain.data + sizeof begin - 1;
    size_t name = strcspn(engine, "( ");
    hf__buf_puts(&sql, "CREATE TABLE ");
    hf__quote_table(&sql, work->name.database, probe);
    hf__buf_printf(&sql, " AS %s%sReplicated", work->dest.data, begin);
    hf__buf_add(&sql, engine, name);
    hf__buf_puts(&sql, "(");
    hf__quote_text(&sql, path);
    hf__buf_puts(&sql, ", 'holdfast'");
    if (engine[name] == '(')
        hf__buf_printf(&sql, "%s%s", engine[name + 1] == ')' ? "" : ", ", engine + name + 1);
    else
        hf__buf_printf(&sql, ")%s", engine + name);
    hf__buf_free(&plain);
    return hf__work_do(work, "create a table that tells checksums", &sql, err);
}

struct node {
    int64_t block;
    const char *checksum;
};

static int by_block(const void *a, const void *b)
{
    const struct node *left = a, *right = b;

    return left->block < right->block ? -1 : left->block > right->block ? 1 : 0;
}

/* ATTACH keeps the order of parts. False: there are fewer than were attached. */
static bool take_block_ids(const hf__grid *grid, hf__plan *plan, struct node *nodes)
{
    bool are_all = true;

    for (size_t i = 0; i < plan->partition_count; i++) {
        const hf__plan_partition *partition = &plan->partitions[i];
        size_t count = 0;
        for (size_t row = 0; row < grid->rows; row++) {
            const char *checksum = checksum_in(hf__grid_at(grid, row, 0), partition->id);
            const char *part = hf__grid_at(grid, row, 1);
            if (checksum != NULL && strlen(part) > strlen(partition->id))
                nodes[count++] =
                    (struct node){.block = strtoll(part + strlen(partition->id) + 1, NULL, 10),
                                  .checksum = checksum};
        }
        are_all = are_all && count == partition->count;
        if (count != partition->count)
            continue;
        qsort(nodes, count, sizeof *nodes, by_block);
        for (size_t p = 0; p < count; p++)
            (void)snprintf(plan->parts[partition->first + p].block_id, HF__BLOCK_ID_MAX, "%s",
                           nodes[p].checksum);
    }
    return are_all;
}

static hf_status learn_block_ids(hf__work *work, const char *path, hf__plan *plan, bool *are_equal,
                                 hf_error *err)
{
    hf__grid grid = {0};
    struct node *nodes = NULL;
    hf_status status = read_block_ids(work, path, &grid, err);

    if (status == HF_OK && (nodes = calloc(grid.rows + 1, sizeof *nodes)) == NULL)
        status = hf__no_memory(err);
    if (status == HF_OK)
        *are_equal = !take_block_ids(&grid, plan, nodes);
    free(nodes);
    hf__grid_free(&grid);
    return status;
}

hf_status hf__replicated_identify(hf__work *work, const char *staging, hf__plan *plan,
                                  bool *are_equal, hf_error *err)
{
    char probe[128];
    hf__buf path = {0}, drop = {0};
    hf_error why = {0};

    *are_equal = false;
    if (!hf__engine_is_replicated(work->engine) || plan->part_count == 0)
        return HF_OK;
    hf__staging_name(probe, false, work->result->id, work->store_id, work->name.text);
    hf__buf_printf(&path, "%s_%s", work->zookeeper_path, probe);
    hf_status status =
        path.broken ? hf__no_memory(&why) : create_probe(work, probe, path.data, &why);
    if (status == HF_OK) {
        status = hf__attach_private(work, probe, plan, NULL, staging, &why);
        *are_equal = status != HF_OK && work->target->fault.code == HF__CODE_ZOOKEEPER;
        if (status == HF_OK)
            status = learn_block_ids(work, path.data, plan, are_equal, &why);
        hf__buf_puts(&drop, "DROP TABLE IF EXISTS ");
        hf__quote_table(&drop, work->name.database, probe);
        (void)!hf__work_do(work, "drop a table", &drop, NULL); /* else a sweep does it */
    }
    hf__buf_free(&path);
    if (status != HF_OK && !*are_equal) { /* what arrives is looked at part by part anyway */
        hf__work_note(work, "equal rows cannot be found beforehand: %s", why.message);
        status = hf__work_check(work, err);
    }
    return *are_equal ? HF_OK : status;
}

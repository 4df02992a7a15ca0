#include "programs/append/settings.h"

#include <string.h>

static const char question[] =
    "SELECT name, value, changed FROM system.settings WHERE name IN ("
    "'insert_deduplicate', 'insert_deduplication_token', 'format_csv_delimiter', "
    "'async_insert', 'max_insert_block_size', 'min_insert_block_size_rows', "
    "'min_insert_block_size_bytes', 'input_format_parallel_parsing') UNION ALL "
    "SELECT name, value, changed FROM system.merge_tree_settings WHERE name IN ("
    "'replicated_deduplication_window', 'non_replicated_deduplication_window')";

hf_status hf__settings_read(hf__work *work, hf_error *err)
{
    const hf__statement read = {.sql = question, .what = "read system.settings"};

    if (work->target->is_embedded || work->settings.rows > 0)
        return HF_OK;
    return hf__target_query(work->target, &read, &work->settings, err);
}

static bool find(const hf__grid *settings, const char *name, size_t *row)
{
    for (*row = 0; *row < settings->rows; ++*row)
        if (strcmp(hf__grid_at(settings, *row, 0), name) == 0)
            return true;
    return false;
}

const char *hf__settings_value(const hf__grid *settings, const char *name)
{
    size_t row = 0;

    return find(settings, name, &row) ? hf__grid_at(settings, row, 1) : NULL;
}

static bool is_default(const hf__grid *settings, const char *name)
{
    size_t row = 0;

    return find(settings, name, &row) && hf__grid_number(settings, row, 2) == 0;
}

/*
 * A server that parses a stream in one thread is faster by a tenth when the rows that it parses at a time stay
 * in its caches. What it writes stays as large: blocks are put together until they have the least size. Where
 * somebody has set one of these it stays.
 */
static bool wants_less_at_a_time(const hf__grid *settings)
{
    return hf__settings_value(settings, "input_format_parallel_parsing") == NULL &&
           is_default(settings, "max_insert_block_size") &&
           is_default(settings, "min_insert_block_size_rows") &&
           is_default(settings, "min_insert_block_size_bytes");
}

const char *hf__settings_for_rows(const hf__grid *settings)
{
    if (hf__settings_value(settings, "async_insert") != NULL)
        return "async_insert=0"; /* rows would be written later, by somebody else */
    return wants_less_at_a_time(settings) ? "max_insert_block_size=65536" : "";
}

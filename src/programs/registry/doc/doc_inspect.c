/* The section of the page that tells how to look at the locks in a database. */
#include <inttypes.h>
#include <string.h>

#include "programs/registry/doc/doc.h"

static bool has_fixed(const hf_registry *registry)
{
    for (size_t i = 0; i < registry->count; i++)
        if (hf__doc_is_fixed(&registry->entries[i]))
            return true;
    return false;
}

/* A key as pg_locks shows it: both halves unsigned. */
struct shown {
    uint32_t classid, objid;
    int objsubid;
};

static struct shown show_key(const hf__lock_entry *entry)
{
    struct shown shown = {(uint32_t)entry->view.pair[0], (uint32_t)entry->view.pair[1], 2};

    if (entry->view.space != HF_PAIR) {
        hf_key_split(entry->view.key, &shown.classid, &shown.objid);
        shown.objsubid = 1;
    }
    return shown;
}

static void put_sql_string(hf__buf *out, const char *text)
{
    hf__buf_puts(out, "'");
    for (; *text != '\0'; text++)
        hf__buf_printf(out, *text == '\'' ? "''" : "%c", *text);
    hf__buf_puts(out, "'");
}

static void write_fixed_table(const hf_registry *registry, hf__buf *out)
{
    hf__buf_puts(out, "\n`pg_locks` shows the fixed ids as\n\n"
                      "| Name | Shown as classid | Shown as objid | Shown as objsubid |\n"
                      "|---|---:|---:|---:|\n");
    for (size_t i = 0; i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        struct shown shown = show_key(entry);
        if (!hf__doc_is_fixed(entry))
            continue;
        hf__buf_puts(out, "| ");
        hf__doc_code(out, entry->view.name);
        hf__buf_printf(out, " | %" PRIu32 " | %" PRIu32 " | %d |\n", shown.classid, shown.objid,
                       shown.objsubid);
    }
}

static void write_fixed_query(const hf_registry *registry, hf__buf *out)
{
    bool is_first = true;

    hf__buf_puts(out, "\nWho holds and who waits for them:\n\n```sql\n"
                      "SELECT lock.name, held.pid, held.mode, held.granted,\n"
                      "       activity.application_name, activity.state, activity.query\n"
                      "FROM (VALUES\n");
    for (size_t i = 0; i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        struct shown shown = show_key(entry);
        if (!hf__doc_is_fixed(entry))
            continue;
        hf__buf_puts(out, is_first ? "    (" : ",\n    (");
        put_sql_string(out, entry->view.name);
        hf__buf_printf(out, ", %" PRIu32 ", %" PRIu32 ", %d)", shown.classid, shown.objid,
                       shown.objsubid);
        is_first = false;
    }
    hf__buf_puts(out, "\n) AS lock (name, classid, objid, objsubid)\n"
                      "JOIN pg_locks AS held\n"
                      "  ON held.locktype = 'advisory' AND held.objsubid = lock.objsubid\n"
                      " AND held.classid = lock.classid::bigint::oid\n"
                      " AND held.objid = lock.objid::bigint::oid\n"
                      "JOIN pg_database AS base\n"
                      "  ON base.oid = held.database AND base.datname = current_database()\n"
                      "LEFT JOIN pg_stat_activity AS activity ON activity.pid = held.pid\n"
                      "ORDER BY lock.name, held.granted DESC, held.pid;\n```\n");
}

/* How a database computes the key of a label. NULL: it cannot. */
static const struct {
    hf_derivation derivation;
    const char *how;
} computed[] = {
    {HF_SHA256, "SELECT ('x' || left(encode(sha256(convert_to('LABEL', 'UTF8')), 'hex'), "
                "16))::bit(64)::bigint;"},
    {HF_HASHTEXT, "SELECT hashtext('LABEL')::bigint;"},
    {HF_HASHTEXTEXTENDED, "SELECT hashtextextended('LABEL', 0);"},
    {HF_FNV1A64, NULL},
    {HF_FNV1A32, NULL},
    {HF_FNV1A32_JS, NULL},
    {HF_CRC32, NULL},
    {HF_CRC32_SQLX, NULL},
    {HF_MD5, "SELECT ('x' || left(md5('LABEL'), 16))::bit(64)::bigint;"},
    {HF_JAVA_HASHCODE, NULL},
    {HF_WITH_ADVISORY_LOCK, NULL},
    {HF_DISTRIBUTEDLOCK_ASCII, NULL},
    {HF_DISTRIBUTEDLOCK_HASH, NULL},
};

static bool uses(const hf_registry *registry, hf_derivation derivation)
{
    for (size_t i = 0; i < registry->count; i++)
        if (!hf__doc_is_fixed(&registry->entries[i]) &&
            registry->entries[i].view.derivation == derivation)
            return true;
    return false;
}

static void write_computed(const hf_registry *registry, hf__buf *out)
{
    bool any = false;

    for (size_t i = 0; i < sizeof computed / sizeof computed[0]; i++) {
        const char *name = hf_derivation_name(computed[i].derivation);
        if (!uses(registry, computed[i].derivation))
            continue;
        if (!any)
            hf__buf_puts(out, "\nThe key of a label, by derivation:\n");
        any = true;
        hf__buf_printf(out, "\n- `%s`: `holdfast key --as %s LABEL`", name, name);
        if (computed[i].how != NULL)
            hf__buf_printf(out, ", or in a UTF-8 database\n\n  ```sql\n  %s\n  ```\n",
                           computed[i].how);
        else
            hf__buf_puts(out, "\n");
    }
    if (uses(registry, HF_MINTED))
        hf__buf_puts(out, "\n- `minted`: given out by the store, not computed\n");
}

void hf__doc_write_inspection(const hf_registry *registry, hf__buf *out)
{
    hf__buf_puts(out, "\n## How to inspect\n\n"
                      "- `holdfast locks` shows every advisory lock of the database by its name.\n"
                      "- `holdfast key --decode CLASSID OBJID` gives the key that `pg_locks` shows "
                      "in two halves.\n");
    if (has_fixed(registry)) {
        write_fixed_table(registry, out);
        write_fixed_query(registry, out);
    }
    write_computed(registry, out);
}

/*
 * Keys that well-known programs lock, most of them to migrate a database one at a time. Each was
 * read from the program's source; what has a name of its own in a deployment (another schema,
 * another table) is not recognised. A key proves nothing: others may use the same number.
 */
#include <string.h>

#include "base/buf.h"
#include "lib/keys/keys.h"

static const struct {
    int64_t key;
    const char *program;
} numbers[] = {
    {72707369, "Prisma Migrate"},
    {4097083626, "goose"},
    {7241865325823964, "node-pg-migrate"},
    {9628173550095224, "tern"},
    {3853314791062309107, "Kysely migrations"},
};

/* Labels that are locked as hashtext(label); the program is the label itself. */
static const char *const partman[] = {
    "pg_partman run_maintenance",   "pg_partman run_maintenance procedure",
    "pg_partman run_analyze",       "pg_partman reapply_constraints",
    "pg_partman drop_partition_id", "pg_partman drop_partition_time",
    "pg_partman undo_partition",
};

/* The same in the first of two numbers; the second is the hash of the table's name. */
static const char *const partman_pairs[] = {
    "pg_partman partition_data_proc",
    "pg_partman undo_partition_proc",
};

static int64_t hashtext(const char *label)
{
    return (int32_t)hf__pg_hash((const unsigned char *)label, strlen(label));
}

static uint32_t crc_of(const void *bytes, size_t size)
{
    return hf__crc32(bytes, size);
}

static bool is_rails(int64_t key, const char *database)
{
    return key == INT64_C(2053462845) * (int64_t)crc_of(database, strlen(database));
}

static bool is_sqlx(int64_t key, const char *database)
{
    int64_t theirs = 0;

    return hf_key_derive(HF_CRC32_SQLX, database, strlen(database), &theirs, NULL) == HF_OK &&
           key == theirs;
}

/* Over schema, table and database with NULs between them; the product of 32 bits is unsigned. */
static bool is_golang_migrate(int64_t key, const char *database)
{
    static const char before[] = "public\0schema_migrations"; /* and the NUL that ends it */
    hf__buf text = {0};

    hf__buf_add(&text, before, sizeof before);
    hf__buf_puts(&text, database);
    uint32_t product = text.broken ? 0 : crc_of(text.data, text.length) * UINT32_C(1486364155);
    bool same = !text.broken && key == (int64_t)product;
    hf__buf_free(&text);
    return same;
}

/* "Flyway" as six bytes, plus Java's hash of the quoted name of the history table. */
static bool is_flyway(int64_t key)
{
    const int64_t magic = INT64_C(0x466C79776179);

    return key >= magic + INT32_MIN && key <= magic + INT32_MAX;
}

/* liquibase-sessionlock; Liquibase itself locks a row. The second number is of the schema. */
static bool is_liquibase(int64_t key)
{
    static const unsigned char table[] = "databasechangeloglock";
    uint32_t hash = 0;

    return hf__java_hash(table, sizeof table - 1, &hash, NULL) == HF_OK &&
           (uint32_t)((uint64_t)key >> 32) == hash;
}

static const char *name_pair(int64_t key)
{
    for (size_t i = 0; i < sizeof partman_pairs / sizeof *partman_pairs; i++)
        if ((int32_t)(key >> 32) == hashtext(partman_pairs[i]))
            return partman_pairs[i];
    return is_liquibase(key) ? "Liquibase (sessionlock)" : "";
}

const char *hf__well_known(hf_space space, int64_t key, const char *database)
{
    if (space == HF_PAIR)
        return name_pair(key);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].key == key)
            return numbers[i].program;
    for (size_t i = 0; i < sizeof partman / sizeof *partman; i++)
        if (key == hashtext(partman[i]))
            return partman[i];
    if (is_rails(key, database))
        return "Rails migrations";
    if (is_sqlx(key, database))
        return "sqlx migrations";
    if (is_golang_migrate(key, database))
        return "golang-migrate";
    return is_flyway(key) ? "Flyway" : "";
}

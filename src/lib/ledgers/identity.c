/*
 * Which network a schema holds, and what its cursors are called. A schema that is called
 * ingest_NAME and has cursors with the usual names says it by itself; for any other, those who set
 * a network up write it into rows of ingest_store, so that whoever lists a store's networks knows,
 * and nobody uses it under another name.
 */
#include "lib/ledgers/ledgers.h"

#include <stdio.h>
#include <string.h>

#include "lib/ledgers/sql.h"

enum { ROWS = 3 };

static const char *const row_names[ROWS] = {"holdfast.network", "holdfast.latestCursor",
                                            "holdfast.oldestCursor"};

/* What holds of a schema without such rows. */
static hf__identity presumed(const char *schema)
{
    hf__identity identity = {.latest = HF__LATEST_CURSOR, .oldest = HF__OLDEST_CURSOR};
    size_t prefix = strlen(HF__SCHEMA_PREFIX);
    if (strncmp(schema, HF__SCHEMA_PREFIX, prefix) == 0)
        (void)snprintf(identity.network, sizeof identity.network, "%s", schema + prefix);
    return identity;
}

/* Somebody may have made a local network's file and nothing in it yet. */
static hf_status has_store(hf_tx *tx, bool *there, hf_error *err)
{
    hf_value schema = HF_TEXT("main");
    hf_rows *rows = NULL;
    hf_status status = hf__tx_query_sql(tx, &hf__sql_ledgers_tables, NULL, 1, &schema, &rows, err);
    *there = false;
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++)
        *there = *there || strcmp(hf__row_text(rows, i, 0), "ingest_store") == 0;
    hf_rows_free(rows);
    return status;
}

hf_status hf__identity_read(hf_tx *tx, bool local, const char *schema, hf__identity *identity,
                            hf_error *err)
{
    char prefix[140] = "";
    const hf__sql_part parts[] = {{"prefix", prefix}, {0}};
    hf_value values[ROWS];
    hf_rows *rows = NULL;
    hf_status status = HF_OK;
    bool there = true;
    *identity = presumed(schema);
    char *const texts[ROWS] = {identity->network, identity->latest, identity->oldest};
    const size_t sizes[ROWS] = {sizeof identity->network, sizeof identity->latest,
                                sizeof identity->oldest};
    for (size_t i = 0; i < ROWS; i++)
        values[i] = HF_TEXT(row_names[i]);
    if (!local)
        (void)snprintf(prefix, sizeof prefix, "\"%s\".", schema);
    else
        status = has_store(tx, &there, err);
    if (status == HF_OK && there)
        status =
            hf__tx_query_sql(tx, &hf__sql_ledgers_store_identity, parts, ROWS, values, &rows, err);
    for (size_t i = 0; rows != NULL && i < hf_rows_count(rows); i++)
        for (size_t k = 0; k < ROWS; k++)
            if (strcmp(hf__row_text(rows, i, 0), row_names[k]) == 0)
                (void)snprintf(texts[k], sizes[k], "%s", hf__row_text(rows, i, 1));
    hf_rows_free(rows);
    return status;
}

bool hf__identity_is(const hf__identity *identity, const hf_network *network)
{
    return strcmp(identity->network, network->name) == 0 &&
           strcmp(identity->latest, network->latest) == 0 &&
           strcmp(identity->oldest, network->oldest) == 0;
}

hf_status hf__identity_write(hf_tx *tx, const hf_network *network, hf_error *err)
{
    const char *const texts[ROWS] = {network->name, network->latest, network->oldest};
    hf__identity identity = {0};
    const char *const there[ROWS] = {identity.network, identity.latest, identity.oldest};
    hf_status status = hf__identity_read(tx, network->local, network->schema, &identity, err);
    for (size_t i = 0; status == HF_OK && i < ROWS; i++)
        if (strcmp(there[i], texts[i]) != 0)
            status = hf__text_write(tx, network, row_names[i], texts[i], err);
    return status;
}

hf_status hf__network_find(hf_store *store, hf_tx *tx, const char *schema, hf_network **out,
                           hf_error *err)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf__identity identity = {0};
    hf_error why = {0};
    hf_status status = hf__identity_read(tx, hf_store_is_local(store), schema, &identity, err);
    if (status != HF_OK)
        return status;
    options.name = identity.network;
    options.schema = schema;
    options.latest_cursor = identity.latest;
    options.oldest_cursor = identity.oldest;
    status = hf_network_open(store, &options, out, &why);
    if (status == HF_INVALID) {
        status = hf__fail(err, HF_CONFIG, "nobody has written down which network it is");
        hf__hint(err, "start its ingester, or adopt it again, and it is written down");
    } else if (status != HF_OK && err) {
        *err = why;
    }
    return status;
}

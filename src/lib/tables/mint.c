/*
 * Minting. A machine number is leased for a second at a time, from the store and by the store's
 * clock, just before it is needed: nobody has to give one back, and a process that dies takes none
 * with it. Numbers that are given again start above every time that was given before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fibers/fiber.h"
#include "lib/tables/ids.h"
#include "lib/tables/sql.h"

enum { LEASES_TRIED = 30, PAUSE_MS = 100, LEASES_PER_ID = 3 };

struct lease {
    hf_store *store;
    int64_t last_ms; /* of the ids so far, which may be ahead of the clock */
    bool granted;
    int64_t machine, until_ms, now_ms;
};

static hf_status take_lease(hf_tx *tx, void *arg, hf_error *err)
{
    struct lease *lease = arg;
    hf_rows *rows = NULL;
    char last[24], now[24], holder[300];
    (void)snprintf(holder, sizeof holder, "%s:%d", hf__store_host(lease->store), (int)getpid());
    const hf_value values[] = {hf__number_value(last, lease->last_ms), HF_TEXT(holder),
                               hf__number_value(now, hf__wall_ms())};
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_tables_lease_machine, NULL, 3, values, &rows, err);
    if (status == HF_OK && (lease->granted = hf_rows_count(rows) > 0)) {
        status = hf__row_number(rows, 0, 0, "the machine number", &lease->machine, err);
        if (status == HF_OK)
            status = hf__row_number(rows, 0, 1, "the end of the lease", &lease->until_ms, err);
        if (status == HF_OK)
            status = hf__row_number(rows, 0, 2, "the store's clock", &lease->now_ms, err);
    }
    hf_rows_free(rows);
    return status;
}

static hf_status all_leased(const hf_store *store, hf_error *err)
{
    hf_status status = hf__fail(err, HF_QUOTA, "all %d machine numbers of %s are in use",
                                HF__MACHINE_MAX, hf_store_name(store));
    hf__hint(err, "they are leased for a second each: try again, or give long-running processes a "
                  "number of their own (hf_store_options.machine, HOLDFAST_MACHINE)");
    return status;
}

static hf_status lease_machine(hf_store *store, hf_error *err)
{
    struct lease lease = {.store = store};
    hf_status status = HF_OK;
    hf__table_ids *ids = hf__table_ids_of(store);
    pthread_mutex_lock(&ids->mutex);
    lease.last_ms = ids->mint.last_ms;
    if (ids->machine)
        hf__snowflake_lease(&ids->mint, ids->machine, INT64_MAX);
    pthread_mutex_unlock(&ids->mutex);
    if (ids->machine)
        return HF_OK;
    for (int i = 0; status == HF_OK && !lease.granted && i < LEASES_TRIED; i++) {
        if (i > 0)
            (void)hf__poll(NULL, 0, PAUSE_MS);
        status = hf__table_transact(store, false, take_lease, &lease, err);
        if (status == HF_IN_DOUBT) /* a number more or less is no matter */
            status = HF_OK;
    }
    if (status == HF_OK && !lease.granted)
        status = all_leased(store, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&ids->mutex);
    hf__snowflake_lease(&ids->mint, (int)lease.machine, lease.until_ms);
    ids->mint_offset = lease.now_ms - hf__now_ms();
    pthread_mutex_unlock(&ids->mutex);
    return HF_OK;
}

/* Mutex held. */
static int64_t mint_clock(const hf__table_ids *ids)
{
    return ids->machine ? hf__wall_ms() : hf__now_ms() + ids->mint_offset;
}

static hf_status mint_one(hf_store *store, int64_t *id, hf_error *err)
{
    hf__table_ids *ids = hf__table_ids_of(store);
    int64_t now = 0;
    for (int i = 0; i <= LEASES_PER_ID; i++) {
        pthread_mutex_lock(&ids->mutex);
        now = mint_clock(ids);
        bool minted = hf__snowflake_next(&ids->mint, now, id);
        pthread_mutex_unlock(&ids->mutex);
        if (minted)
            return HF_OK;
        hf_status status = i < LEASES_PER_ID ? lease_machine(store, err) : HF_OK;
        if (status != HF_OK)
            return status;
    }
    hf_status status = hf__fail(
        err, HF_CONFIG, "no id can be minted: the clock says %" PRId64 " ms of Unix time", now);
    hf__hint(err, "ids hold times from 1970 to September 2039: check the clock");
    return status;
}

hf_status hf__table_mint(hf_store *store, size_t count, int64_t *ids, hf_error *err)
{
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < count; i++)
        status = mint_one(store, &ids[i], err);
    return status;
}

/* ---- ids of time, machine and sequence ---------------------------------------------------- */

bool hf__snowflake_next(hf__snowflake *flake, int64_t now_ms, int64_t *id)
{
    int64_t ms = now_ms;
    int sequence = 0;
    if (ms <= flake->last_ms) {
        ms = flake->last_ms;
        sequence = flake->sequence + 1;
    }
    if (sequence > HF__SEQUENCE_MAX) {
        ms++;
        sequence = 0;
    }
    if (flake->last_ms == 0 && now_ms <= 0)
        return false;
    if (ms > flake->until_ms || ms > HF__SNOWFLAKE_LAST_MS)
        return false;
    flake->last_ms = ms;
    flake->sequence = sequence;
    *id = ms << (HF__MACHINE_BITS + HF__SEQUENCE_BITS) |
          (int64_t)flake->machine << HF__SEQUENCE_BITS | sequence;
    return true;
}

void hf__snowflake_lease(hf__snowflake *flake, int machine, int64_t until_ms)
{
    /* A smaller machine number in the same millisecond would be a step back. */
    if (machine != flake->machine)
        flake->sequence = HF__SEQUENCE_MAX;
    flake->machine = machine;
    flake->until_ms = until_ms;
}

hf__snowflake_parts hf__snowflake_split(int64_t id)
{
    return (hf__snowflake_parts){
        .ms = id >> (HF__MACHINE_BITS + HF__SEQUENCE_BITS),
        .machine = (int)(id >> HF__SEQUENCE_BITS & HF__MACHINE_MAX),
        .sequence = (int)(id & HF__SEQUENCE_MAX),
    };
}

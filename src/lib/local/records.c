/* What is recorded about locks: labels, tokens, holders, waiters, schedules. */
#include "lib/local/local.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

#define DAY_MS INT64_C(86400000)

/* ---- labels ---------------------------------------------------------------------------------- */

/*
 * A label that was checked within the last day is not looked up in the table again. The cache keeps
 * whole labels, not hashes of them: a collision of hashes is what the check is to find.
 */

enum { KNOWN = 512, KNOWN_SIZE_MAX = 256 };

typedef struct known_label {
    int64_t key;
    hf_space space;
    char *label;
    size_t size;
    int64_t checked_at; /* hf__now_ms() */
} known_label;

struct hf__local_known {
    known_label entry[KNOWN];
};

static known_label *known_slot(hf__local *local, const hf__claim *claim)
{
    uint64_t hash = hf__hash_int((uint64_t)claim->key ^ claim->space);

    if (local->known == NULL)
        local->known = calloc(1, sizeof *local->known);
    return local->known != NULL ? &local->known->entry[hash % KNOWN] : NULL;
}

static bool is_known(hf__local *local, const hf__claim *claim)
{
    const known_label *known = known_slot(local, claim);

    return known != NULL && known->label != NULL && known->key == claim->key &&
           known->space == claim->space && known->size == claim->label_size &&
           memcmp(known->label, claim->label, claim->label_size) == 0 &&
           hf__now_ms() - known->checked_at < DAY_MS;
}

static void remember(hf__local *local, const hf__claim *claim)
{
    known_label *known = known_slot(local, claim);

    if (known == NULL || claim->label_size > KNOWN_SIZE_MAX)
        return;
    char *label = malloc(claim->label_size + 1);
    if (label == NULL)
        return; /* it is only a cache */
    memcpy(label, claim->label, claim->label_size);
    free(known->label);
    *known = (known_label){
        .key = claim->key,
        .space = claim->space,
        .label = label,
        .size = claim->label_size,
        .checked_at = hf__now_ms(),
    };
}

void hf__local_known_free(hf__local *local)
{
    if (local->known == NULL)
        return;
    for (int i = 0; i < KNOWN; i++)
        free(local->known->entry[i].label);
    free(local->known);
    local->known = NULL;
}

static hf_status collision(const hf__claim *claim, const void *other, size_t other_size,
                           hf_error *err)
{
    const hf__claim number = {.key = claim->key, .space = claim->space};
    char wanted[256];
    char recorded[256];
    char key[64];

    hf_status status = hf__fail(err, HF_COLLISION, "'%s' and '%s' share %s",
                                hf__show(wanted, sizeof wanted, claim->label, claim->label_size),
                                hf__show(recorded, sizeof recorded, other, other_size),
                                hf__claim_name(key, sizeof key, &number));
    hf__hint(err, "rename one of them, or derive keys with sha256, which does not collide");
    return status;
}

typedef struct label_row {
    bool found;
    int64_t seen_ms;
} label_row;

static hf_status find_label(hf__local *local, const hf__claim *claim, label_row *row, hf_error *err)
{
    sqlite3_stmt *rows = NULL;

    hf_status status = hf__local_query(local, &hf__sql_local_find_label, &rows, err, "ii",
                                       (int64_t)claim->space, claim->key);
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &row->found, err);
    if (status != HF_OK)
        return status;
    if (row->found) {
        const void *label = sqlite3_column_blob(rows, 0);
        size_t size = (size_t)sqlite3_column_bytes(rows, 0);
        row->seen_ms = sqlite3_column_int64(rows, 1);
        if (size != claim->label_size || memcmp(label, claim->label, size) != 0)
            status = collision(claim, label, size, err);
    }
    sqlite3_reset(rows);
    return status;
}

static hf_status note_label(hf__local *local, const hf__claim *claim, int64_t now_ms, hf_error *err)
{
    label_row row = {0};

    if (claim->label == NULL || claim->label_size == 0 || is_known(local, claim))
        return HF_OK;
    hf_status status = find_label(local, claim, &row, err);
    if (status != HF_OK)
        return status;
    if (!row.found) {
        const char *derivation = hf_derivation_name(claim->derivation);
        status = hf__local_run(local, &hf__sql_local_add_label, err, "iibti", (int64_t)claim->space,
                               claim->key, (const void *)claim->label, claim->label_size,
                               derivation != NULL ? derivation : "", now_ms);
    } else if (row.seen_ms < now_ms - DAY_MS) {
        status = hf__local_run(local, &hf__sql_local_touch_label, err, "iii", (int64_t)claim->space,
                               claim->key, now_ms);
    }
    return status;
}

hf_status hf__local_check_label(hf__local *local, const hf__request *request, hf_error *err)
{
    const hf__local_patience patience = hf__local_patience_of(local, request);
    const hf__claim *claim = &request->claims[request->blocked];
    label_row row = {0};

    if (claim->label == NULL || claim->label_size == 0)
        return HF_OK;
    hf_status status = hf__local_db_enter(local, &patience, err);
    if (status != HF_OK)
        return status;
    if (!is_known(local, claim))
        status = find_label(local, claim, &row, err);
    hf__local_db_leave(local);
    return status;
}

/* ---- holders --------------------------------------------------------------------------------- */

static hf_status next_token(hf__local *local, int64_t *token, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = false;

    hf_status status = hf__local_query(local, &hf__sql_local_next_token, &rows, err, "");
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &more, err);
    if (status != HF_OK)
        return status;
    *token = more ? sqlite3_column_int64(rows, 0) : 0;
    sqlite3_reset(rows);
    if (*token <= 0)
        return hf__fail(err, HF_CONFIG, "%s/holdfast.db has lost its token row", local->folder);
    return HF_OK;
}

static hf_status put_holder(hf__local *local, int64_t session_id, const hf__claim *claim,
                            hf_lifetime lifetime, int64_t token, int64_t now_ms, hf_error *err)
{
    const hf__local_process *self = &local->self;
    int64_t space = claim->space;
    hf_status status = HF_OK;

    if (claim->mode == HF_EXCLUSIVE)
        status = hf__local_run(local, &hf__sql_local_end_rival_leases, err, "iii", space,
                               claim->key, session_id);
    if (status == HF_OK && claim->mode == HF_EXCLUSIVE)
        status = hf__local_run(local, &hf__sql_local_drop_rivals, err, "iii", space, claim->key,
                               session_id);
    if (status == HF_OK)
        status = hf__local_run(local, &hf__sql_local_put_holder, err, "iiiiiiiiiiiittt", space,
                               claim->key, session_id, (int64_t)(claim->mode == HF_SHARED),
                               (int64_t)claim->slot, (int64_t)lifetime, token, now_ms,
                               (int64_t)self->pid, hf__me(), self->started, self->pid_space,
                               self->host, local->application, claim->traceparent);
    return status;
}

static hf_status put_all(hf__local *local, int64_t session_id, hf__request *request, hf_error *err)
{
    const hf__claim *claims = request->claims;
    int64_t now_ms = hf__wall_ms();

    hf_status status = hf__local_refuse_leased(local, request, err);
    if (status == HF_OK)
        status = next_token(local, &request->token, err);
    for (size_t i = 0; i < request->count && status == HF_OK; i++) {
        status = note_label(local, &claims[i], now_ms, err);
        if (status == HF_OK)
            status = put_holder(local, session_id, &claims[i], request->lifetime, request->token,
                                now_ms, err);
    }
    return status;
}

/* The rows of what the calling thread waits for, or waited for before. */
static hf_status drop_waits(hf__local *local, hf_error *err)
{
    const hf__local_process *self = &local->self;

    return hf__local_run(local, &hf__sql_local_drop_waits, err, "iiiit", (int64_t)self->pid,
                         hf__me(), self->started, self->pid_space, self->host);
}

hf_status hf__local_put_holders(hf__local_session *session, hf__request *request, hf_error *err)
{
    hf__local *local = (hf__local *)session->head.backend;
    const hf__claim *claims = request->claims;
    bool is_lease = request->lifetime == HF_LEASE;
    int64_t until_ms = 0;

    hf_status status = hf__local_begin(local, err);
    if (status != HF_OK)
        return status;
    status = put_all(local, session->id, request, err);
    if (status == HF_OK && is_lease)
        status = hf__local_lease(local, session, request->lease_ms, &until_ms, err);
    if (status == HF_OK)
        status = drop_waits(local, err);
    status = hf__local_end(local, status, err);
    /* Only after the commit: the cache must not know a label that the table does not have. */
    for (size_t i = 0; i < request->count && status == HF_OK; i++)
        if (claims[i].label != NULL && !is_known(local, &claims[i]))
            remember(local, &claims[i]);
    if (status != HF_OK)
        request->token = 0;
    else if (is_lease)
        hf__local_leased(session, request->lease_ms, until_ms);
    return status;
}

hf_status hf__local_drop_holders(hf__local *local, int64_t session_id, const hf__claim *claims,
                                 size_t count, hf_error *err)
{
    bool one = count == 1; /* a single statement needs no explicit transaction */

    hf_status status = one ? HF_OK : hf__local_begin(local, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < count && status == HF_OK; i++)
        status = hf__local_run(local, &hf__sql_local_drop_holder, err, "iii",
                               (int64_t)claims[i].space, claims[i].key, session_id);
    return one ? status : hf__local_end(local, status, err);
}

/* ---- waiters --------------------------------------------------------------------------------- */

static hf_status new_wait_id(hf__local_wait *wait, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = false;

    hf_status status = hf__local_query(wait->local, &hf__sql_local_next_wait, &rows, err, "");
    if (status == HF_OK)
        status = hf__local_fetch(wait->local, rows, &more, err);
    if (status == HF_OK) {
        wait->id = sqlite3_column_int64(rows, 0);
        sqlite3_reset(rows);
    }
    return status;
}

static hf_status add_waiter(const hf__local_wait *wait, const hf__claim *claim,
                            hf__local_standing standing, hf_error *err)
{
    hf__local *local = wait->local;
    const hf__local_process *self = &local->self;

    return hf__local_run(local, &hf__sql_local_add_waiter, err, "iiiiiiiiiitt", wait->id,
                         (int64_t)claim->space, claim->key, (int64_t)(claim->mode == HF_SHARED),
                         (int64_t)standing, wait->since_ms, (int64_t)self->pid, hf__me(),
                         self->started, self->pid_space, self->host, local->application);
}

static hf_status put_rows(hf__local_wait *wait, size_t position, bool at_head, hf_error *err)
{
    const hf__request *request = wait->request;

    hf_status status = drop_waits(wait->local, err);
    if (status == HF_OK && wait->id == 0)
        status = new_wait_id(wait, err);
    for (size_t i = 0; i < position && i < request->count && status == HF_OK; i++)
        status = add_waiter(wait, &request->claims[i], HF__LOCAL_TAKEN, err);
    if (position < request->count && status == HF_OK)
        status = add_waiter(wait, &request->claims[position],
                            at_head ? HF__LOCAL_AT_HEAD : HF__LOCAL_QUEUED, err);
    return status;
}

hf_status hf__local_put_wait(hf__local_wait *wait, size_t position, bool at_head, hf_error *err)
{
    bool is_new = wait->id == 0;

    if (!is_new && wait->recorded_position == position && wait->recorded_at_head == at_head)
        return HF_OK;
    hf_status status = hf__local_begin(wait->local, err);
    if (status == HF_OK)
        status = hf__local_end(wait->local, put_rows(wait, position, at_head, err), err);
    if (status != HF_OK) {
        if (is_new)
            wait->id = 0;
        return status;
    }
    wait->recorded_position = position;
    wait->recorded_at_head = at_head;
    return HF_OK;
}

hf_status hf__local_drop_wait(hf__local_wait *wait, hf_error *err)
{
    hf_status status = drop_waits(wait->local, err);
    wait->id = 0;
    return status;
}

/* ---- schedules ------------------------------------------------------------------------------- */

static hf_status last_start(hf__local *local, const char *label, bool *found, int64_t *last_ms,
                            hf_error *err)
{
    sqlite3_stmt *rows = NULL;

    hf_status status = hf__local_query(local, &hf__sql_local_get_schedule, &rows, err, "t", label);
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, found, err);
    if (status == HF_OK) {
        *last_ms = *found ? sqlite3_column_int64(rows, 0) : 0;
        sqlite3_reset(rows);
    }
    return status;
}

static hf_status claim_run(hf__local *local, const char *label, int64_t period_ms, bool *due,
                           int64_t *wait_ms, hf_error *err)
{
    int64_t now_ms = hf__wall_ms();
    int64_t last_ms = 0;
    bool found = false;

    hf_status status = last_start(local, label, &found, &last_ms, err);
    if (status != HF_OK)
        return status;
    int64_t passed = now_ms - last_ms;
    /* A start more than a period in the future was written while the clock was wrong. */
    *due = !found || passed >= period_ms || passed < -period_ms;
    *wait_ms = *due ? 0 : period_ms - passed;
    if (!*due)
        return HF_OK;
    return hf__local_run(local, &hf__sql_local_put_schedule, err, "ti", label, now_ms);
}

hf_status hf__local_claim_schedule(hf__backend *backend, const char *label, int64_t period_ms,
                                   bool *due, int64_t *wait_ms, hf_error *err)
{
    hf__local *local = (hf__local *)backend;

    hf_status status = hf__local_db_enter(local, NULL, err);
    if (status != HF_OK)
        return status;
    status = hf__local_begin(local, err);
    if (status == HF_OK)
        status = hf__local_end(local, claim_run(local, label, period_ms, due, wait_ms, err), err);
    hf__local_db_leave(local);
    return status;
}

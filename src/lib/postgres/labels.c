/* The table of labels: a key belongs to one label. Labels that were checked are cached here. */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

enum { CACHE_SLOTS = 16384, MOST_PATIENCE_MS = 2000 };

/*
 * A cache with one place per hash of a key: when two keys share a place, the table is asked once
 * more. A hash of the label is kept, so that another label with the same key is looked up.
 */
struct pg_labels {
    pthread_mutex_t mutex;
    struct {
        int64_t key;
        uint64_t fingerprint;
    } seen[CACHE_SLOTS];
};

struct pg_labels *hf__pg_labels_new(void)
{
    struct pg_labels *labels = calloc(1, sizeof *labels);
    if (labels)
        pthread_mutex_init(&labels->mutex, NULL);
    return labels;
}

void hf__pg_labels_free(struct pg_labels *labels)
{
    if (!labels)
        return;
    pthread_mutex_destroy(&labels->mutex);
    free(labels);
}

static uint64_t fingerprint(const hf__claim *claim)
{
    uint64_t label = hf__hash_bytes(claim->label, claim->label_size);
    return hf__hash_int(label ^ (uint64_t)claim->space) | 1; /* 0 marks an empty place */
}

static size_t place(int64_t key)
{
    return (size_t)(hf__hash_int((uint64_t)key) % CACHE_SLOTS);
}

bool hf__pg_label_is_confirmed(pg_backend *backend, const hf__claim *claim)
{
    struct pg_labels *labels = backend->labels;
    size_t at = place(claim->key);
    pthread_mutex_lock(&labels->mutex);
    bool known =
        labels->seen[at].key == claim->key && labels->seen[at].fingerprint == fingerprint(claim);
    pthread_mutex_unlock(&labels->mutex);
    return known;
}

void hf__pg_label_confirm(pg_backend *backend, const hf__claim *claim)
{
    struct pg_labels *labels = backend->labels;
    size_t at = place(claim->key);
    pthread_mutex_lock(&labels->mutex);
    labels->seen[at].key = claim->key;
    labels->seen[at].fingerprint = fingerprint(claim);
    pthread_mutex_unlock(&labels->mutex);
}

void hf__pg_label_patience(const pg_backend *backend, char out[16])
{
    int half = backend->ping_deadline_ms / 2;
    (void)snprintf(out, 16, "%d", half < MOST_PATIENCE_MS ? half : MOST_PATIENCE_MS);
}

static hf_status collision(const PGresult *noted, hf_error *err)
{
    char wanted[128], taken[128];
    const char *wanted_text = hf__pg_text(noted, 0, 0), *taken_text = hf__pg_text(noted, 0, 1);
    hf_status status = hf__fail(err, HF_COLLISION, "'%s' and '%s' are two labels for one key, %s",
                                hf__show(wanted, sizeof wanted, wanted_text, strlen(wanted_text)),
                                hf__show(taken, sizeof taken, taken_text, strlen(taken_text)),
                                hf__pg_text(noted, 0, 2));
    hf__hint(err, "use the sha256 derivation or another name for one of them; a label that is gone "
                  "for good can be deleted from holdfast.labels");
    return status;
}

/* Most labels are recorded already, and reading the table is much faster than writing to it. */
static hf_status look_up(pg_session *session, const pg_arrays *arrays, const char *patience,
                         bool *known, hf_error *err)
{
    PGresult *answer = NULL;
    const char *params[] = {arrays->keys.data, arrays->spaces.data, arrays->labels.data, patience};
    hf_status status =
        hf__pg_query(session, pg_sql(&hf__sql_postgres_knows_label), 4, params, &answer, err);
    if (status == HF_OK)
        *known = hf__pg_bool(answer, 0, 0);
    PQclear(answer);
    return status;
}

static hf_status note(pg_session *session, const hf__claim *claims, size_t count, hf_error *err)
{
    pg_arrays arrays = {0};
    PGresult *noted = NULL;
    char patience[16];
    bool known = false;
    hf__pg_label_patience(pg_backend_of(session->base.backend), patience);
    hf_status status = hf__pg_label_arrays(&arrays, claims, count, err);
    if (status == HF_OK && count == 1)
        status = look_up(session, &arrays, patience, &known, err);
    if (status == HF_OK && !known) {
        const char *params[] = {arrays.keys.data, arrays.spaces.data, arrays.labels.data,
                                arrays.derivations.data, patience};
        status = hf__pg_run(session, &hf__sql_postgres_note_labels, 5, params, &noted, err);
    }
    if (status == HF_OK && noted && !PQgetisnull(noted, 0, 1))
        status = collision(noted, err);
    PQclear(noted);
    hf__pg_arrays_free(&arrays);
    return status;
}

hf_status hf__pg_confirm_labels(pg_session *session, const hf__claim *claims, size_t count,
                                hf_error *err)
{
    return atomic_load(&session->base.backend->records) && session->token_epoch
               ? hf__pg_note_labels(session, claims, count, err)
               : HF_OK;
}

hf_status hf__pg_note_labels(pg_session *session, const hf__claim *claims, size_t count,
                             hf_error *err)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    hf_status status = HF_OK;
    size_t wanted = 0;
    hf__claim *unknown = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!claims[i].label || hf__pg_label_is_confirmed(backend, &claims[i]))
            continue;
        if (!unknown && !(unknown = calloc(count, sizeof *unknown)))
            return hf__no_memory(err);
        unknown[wanted++] = claims[i];
    }
    if (wanted > 0)
        status = note(session, unknown, wanted, err);
    for (size_t i = 0; status == HF_OK && i < wanted; i++)
        hf__pg_label_confirm(backend, &unknown[i]);
    free(unknown);
    return status;
}

/* Answers that were made of one snapshot, until the next one comes. */
#include <stdlib.h>
#include <string.h>

#include "programs/serve/http.h"

enum { ANSWERS_MAX = 256, BYTES_MAX = 64 << 20 };

struct kept {
    uint64_t hash;
    char *key;
    size_t size;
    hf__answer *answer;
};

struct hf__edition {
    atomic_uint references;
    hf__snapshot *snapshot;
    pthread_mutex_t guard;
    struct kept kept[ANSWERS_MAX];
    size_t count;
    size_t bytes;
};

hf__edition *hf__edition_make(hf__snapshot *snapshot)
{
    hf__edition *edition = calloc(1, sizeof *edition);

    if (edition == NULL)
        return NULL;
    atomic_init(&edition->references, 1);
    pthread_mutex_init(&edition->guard, NULL);
    edition->snapshot = hf__snapshot_hold(snapshot);
    return edition;
}

hf__edition *hf__edition_hold(hf__edition *edition)
{
    atomic_fetch_add(&edition->references, 1);
    return edition;
}

void hf__edition_release(hf__edition *edition)
{
    if (edition == NULL || atomic_fetch_sub(&edition->references, 1) > 1)
        return;
    for (size_t i = 0; i < edition->count; i++) {
        free(edition->kept[i].key);
        hf__answer_release(edition->kept[i].answer);
    }
    hf__snapshot_release(edition->snapshot);
    pthread_mutex_destroy(&edition->guard);
    free(edition);
}

const hf__snapshot *hf__edition_snapshot(const hf__edition *edition)
{
    return edition->snapshot;
}

/* FNV-1a: only to tell most keys apart without looking at them. */
static uint64_t hash_of(const char *key, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static struct kept *find(hf__edition *edition, uint64_t hash, const char *key, size_t size)
{
    for (size_t i = 0; i < edition->count; i++) {
        struct kept *kept = &edition->kept[i];
        if (kept->hash == hash && kept->size == size && memcmp(kept->key, key, size) == 0)
            return kept;
    }
    return NULL;
}

hf__answer *hf__edition_find(hf__edition *edition, const char *key, size_t size)
{
    uint64_t hash = hash_of(key, size);

    pthread_mutex_lock(&edition->guard);
    const struct kept *kept = find(edition, hash, key, size);
    hf__answer *answer = kept != NULL ? hf__answer_hold(kept->answer) : NULL;
    pthread_mutex_unlock(&edition->guard);
    return answer;
}

void hf__edition_keep(hf__edition *edition, const char *key, size_t size, hf__answer *answer)
{
    uint64_t hash = hash_of(key, size);

    pthread_mutex_lock(&edition->guard);
    if (edition->count < ANSWERS_MAX && answer->size < BYTES_MAX - edition->bytes &&
        find(edition, hash, key, size) == NULL) {
        char *copy = malloc(size + 1);
        if (copy != NULL) {
            memcpy(copy, key, size);
            edition->kept[edition->count++] = (struct kept){
                .hash = hash, .key = copy, .size = size, .answer = hf__answer_hold(answer)};
            edition->bytes += answer->size;
        }
    }
    pthread_mutex_unlock(&edition->guard);
}

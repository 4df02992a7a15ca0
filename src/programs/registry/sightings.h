/* What the store holds and has recorded, key by key, as the registry sees it. */
#ifndef HF_CLI_REGISTRY_SIGHTINGS_H
#define HF_CLI_REGISTRY_SIGHTINGS_H

#include "holdfast/holdfast.h"

/* A key, from all that is known of it. */
struct sighting {
    const hf_lock_view *view;       /* who it was: one who has it now, else the last one */
    const hf_registry_entry *entry; /* NULL: unregistered */
    const char *label;
    bool held; /* or waited for, now */
    int64_t times;
    int64_t seen_ms;     /* ago; 0 when it is held */
    bool wrong_lifetime; /* it was seen for sure with another one than the registry says */
};

/* Zero-initialise it. */
struct sightings {
    hf_lock_list *live;
    hf_lock_list *past; /* NULL: the store keeps no records */
    struct sighting *items;
    size_t count;
    bool *used; /* for each entry of the registry */
};

/* Of the last since_ms; -1: all that is recorded. The store was opened with the registry. */
HF_MUST_CHECK hf_status read_sightings(hf_store *store, const hf_registry *registry,
                                       int64_t since_ms, struct sightings *out, hf_error *err);
void sightings_free(struct sightings *sightings);

/* Is there a past to judge by which entries are in use? */
bool knows_the_past(const struct sightings *sightings);

#endif

#include "programs/view/snapshot.h"

#include <stdlib.h>

#include "programs/view/parts.h"

const double hf__histogram_bounds[HF__HISTOGRAM_BUCKETS] = {0.001, 0.005, 0.025, 0.1, 0.5,
                                                            2.5,   10,    60,    600};

hf__common *hf__common_new(void)
{
    hf__common *common = calloc(1, sizeof *common);
    if (common)
        atomic_init(&common->users, 1);
    return common;
}

void hf__common_release(hf__common *common)
{
    if (!common || atomic_fetch_sub(&common->users, 1) > 1)
        return;
    hf__findings_free(&common->findings);
    free(common);
}

hf__draft *hf__draft_new(hf__common *common)
{
    hf__draft *draft = calloc(1, sizeof *draft);
    if (!draft)
        return NULL;
    atomic_init(&draft->users, 1);
    atomic_fetch_add(&common->users, 1);
    draft->common = common;
    draft->seen.store = "";
    draft->seen.problem = "";
    return draft;
}

/* Of one that is such a repetition itself only what it repeats is kept. */
hf__draft *hf__draft_again(hf__snapshot *older, uint64_t number)
{
    hf__draft *source = (hf__draft *)older;
    if (source->older)
        source = source->older;
    hf__draft *draft = hf__draft_new(source->common);
    if (!draft)
        return NULL;
    draft->older = (hf__draft *)hf__snapshot_hold(&source->seen);
    draft->seen = source->seen;
    draft->seen.number = number;
    return draft;
}

hf__snapshot *hf__snapshot_hold(hf__snapshot *snapshot)
{
    atomic_fetch_add(&((hf__draft *)snapshot)->users, 1);
    return snapshot;
}

static void free_draft(hf__draft *draft)
{
    if (!draft->older)
        hf_lock_list_free(draft->seen.list);
    hf__arena_free(&draft->arena);
    hf__common_release(draft->common);
    free(draft);
}

void hf__snapshot_release(hf__snapshot *snapshot)
{
    hf__draft *draft = (hf__draft *)snapshot;
    while (draft && atomic_fetch_sub(&draft->users, 1) == 1) {
        hf__draft *older = draft->older;
        free_draft(draft);
        draft = older;
    }
}

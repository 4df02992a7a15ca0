/* What tells whether an ATTACH was done, and what a replicated table knows about parts. */
#ifndef HF_APPEND_PROOF_H
#define HF_APPEND_PROOF_H

#include "programs/append/work.h"

/*
 * Looks at the table under its lock, before anything is attached: fills in the blocks that it has,
 * and when and on what. staging: the table that parts will be attached from.
 */
HF_MUST_CHECK hf_status hf__proof_look(hf__work *work, hf__plan *plan, const char *staging,
                                       hf_error *err);

/*
 * The same for a plan that is made afterwards, because the store knows nothing of an append that
 * had begun to attach from this staging table. What the server's log does not tell is left open.
 */
HF_MUST_CHECK hf_status hf__proof_recall(hf__work *work, hf__plan *plan, const char *staging,
                                         hf_error *err);

typedef struct hf__proof_options {
    const char *attached_from; /* the staging table that the ATTACH named */
    const char *staging;       /* its name by now; "": it is gone */
    bool is_answered;          /* the server has just said that ATTACH was done */
    bool is_at_once;           /* it has just said that it failed */
    bool is_altered;           /* out: the table was altered, or made anew */
} hf__proof_options;

/*
 * Which partitions of the plan are in the table? verdicts has one for each; found of the plan's
 * parts says the same part by part. No statement of the append may be running any more.
 */
HF_MUST_CHECK hf_status hf__proof_judge(hf__work *work, hf__plan *plan, hf__proof_options *options,
                                        hf__verdict *verdicts, hf_error *err);

/* ---- replicated.c ---------------------------------------------------------------------------- */

/*
 * Fills in by what a replicated table will remember each part of the plan. *are_equal: some of them
 * are equal, and one ATTACH cannot take both.
 */
HF_MUST_CHECK hf_status hf__replicated_identify(hf__work *work, const char *staging, hf__plan *plan,
                                                bool *are_equal, hf_error *err);
/* Reads the path of the replicated table in ZooKeeper, and makes it work->server. */
HF_MUST_CHECK hf_status hf__replicated_find(hf__work *work, hf_error *err);
/* Everything that the table remembers: names and parts. The caller frees grid. */
HF_MUST_CHECK hf_status hf__block_ids_read(hf__work *work, hf__grid *grid, hf_error *err);
bool hf__block_id_is_among(const hf__grid *grid, const char *partition, const char *block_id);
/* HF_DATABASE: the table would leave some of these parts out, since it remembers equal ones. */
HF_MUST_CHECK hf_status hf__replicated_check(hf__work *work, const hf__plan *plan, hf_error *err);

#endif

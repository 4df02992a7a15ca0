/*
 * What an append adds, part by part, and what it found in the table before: enough to tell after a
 * crash, partition by partition, whether ATTACH had been done.
 */
#ifndef HF_APPEND_PLAN_H
#define HF_APPEND_PLAN_H

#include "programs/append/target/target.h"

enum { HF__PARTITION_MAX = 256 }; /* it is part of a file's name */

/* A row of system.parts. */
typedef struct hf__plan_part {
    char partition[HF__PARTITION_MAX];
    int64_t min_block, max_block;
    int64_t rows, bytes;
    int64_t level; /* 0: as it was inserted; else merges have made it */
    bool is_active;
} hf__plan_part;

typedef struct hf__parts {
    hf__plan_part *items;
    size_t count;
} hf__parts;

void hf__parts_free(hf__parts *parts);

/* In the order of partition and block. above: only parts with later blocks; -1: all. */
HF_MUST_CHECK hf_status hf__parts_read(hf__target *target, const char *database, const char *table,
                                       int64_t above, hf__parts *parts, hf_error *err);

typedef struct hf__plan_partition {
    char id[HF__PARTITION_MAX];
    int64_t last_block;  /* the greatest that the table had in it; 0: none */
    int64_t rows_before; /* that it had in it */
    size_t first, count; /* of the plan's parts */
    int64_t rows;        /* of these */
} hf__plan_partition;

typedef struct hf__plan {
    hf__plan_partition *partitions;
    size_t partition_count;
    hf__plan_part *parts; /* of the staging table: only rows and bytes are kept in the store */
    size_t part_count;
    int64_t rows;
} hf__plan;

/* Of the active parts of a staging table. */
HF_MUST_CHECK hf_status hf__plan_make(const hf__parts *staged, hf__plan *plan, hf_error *err);
void hf__plan_free(hf__plan *plan);

/* Fills in what the table has now; call it under the table's lock. */
HF_MUST_CHECK hf_status hf__plan_look(hf__plan *plan, hf__target *target, const char *database,
                                      const char *table, hf_error *err);
int64_t hf__plan_least_block(const hf__plan *plan);

void hf__plan_write(const hf__plan *plan, hf__buf *text);
HF_MUST_CHECK hf_status hf__plan_parse(const char *text, hf__plan *plan, hf_error *err);

typedef enum hf__verdict { HF__NOT_ATTACHED, HF__ATTACHED, HF__UNSURE } hf__verdict;

/*
 * now: parts of the table, inactive ones too, of at least all blocks above the least of the plan.
 * rows_now: active ones of the partition. collapses: merges of this engine change the number of rows.
 */
hf__verdict hf__plan_judge(const hf__plan *plan, const hf__plan_partition *partition,
                           const hf__parts *now, int64_t rows_now, bool collapses);

#endif

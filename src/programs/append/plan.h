/*
 * A plan says what an append adds to each partition, part by part, and what the table had there
 * before. It is kept in the store while parts are attached: after a crash it is enough to tell,
 * partition by partition, whether ATTACH was done.
 */
#ifndef HF_APPEND_PLAN_H
#define HF_APPEND_PLAN_H

#include "programs/append/target/target.h"

enum { HF__PARTITION_MAX = 256 }; /* a partition's id is part of a file name */

/* A row of system.parts. */
typedef struct hf__plan_part {
    char partition[HF__PARTITION_MAX];
    int64_t min_block, max_block;
    int64_t rows, bytes;
    int64_t level; /* 0: as it was inserted; else the result of merges */
    bool is_active;
} hf__plan_part;

typedef struct hf__parts {
    hf__plan_part *items;
    size_t count;
} hf__parts;

void hf__parts_free(hf__parts *parts);

/* Reads a table's parts, by partition and block. above: only parts with later blocks; -1: all. */
HF_MUST_CHECK hf_status hf__parts_read(hf__target *target, const char *database, const char *table,
                                       int64_t above, hf__parts *parts, hf_error *err);

typedef struct hf__plan_partition {
    char id[HF__PARTITION_MAX];
    int64_t last_block;  /* the greatest block that the table had in it; 0: none */
    int64_t rows_before; /* the rows that the table had in it */
    size_t first, count; /* which of the plan's parts belong to it */
    int64_t rows;        /* the rows of these parts */
} hf__plan_partition;

typedef struct hf__plan {
    hf__plan_partition *partitions;
    size_t partition_count;
    hf__plan_part *parts; /* of the staging table; the store keeps only rows and bytes of each */
    size_t part_count;
    int64_t rows;
} hf__plan;

/* Plans to attach the active parts of a staging table. The caller frees plan. */
HF_MUST_CHECK hf_status hf__plan_make(const hf__parts *staged, hf__plan *plan, hf_error *err);
void hf__plan_free(hf__plan *plan);

/* Fills in what the table has now. The caller holds the table's lock. */
HF_MUST_CHECK hf_status hf__plan_look(hf__plan *plan, hf__target *target, const char *database,
                                      const char *table, hf_error *err);
/* The least last_block of all partitions. */
int64_t hf__plan_least_block(const hf__plan *plan);

/* The plan as text, and back. HF_BAD_DATA: that is not the text of a plan. */
void hf__plan_write(const hf__plan *plan, hf__buf *text);
HF_MUST_CHECK hf_status hf__plan_parse(const char *text, hf__plan *plan, hf_error *err);

typedef enum hf__verdict { HF__NOT_ATTACHED, HF__ATTACHED, HF__UNSURE } hf__verdict;

/*
 * Was this partition attached? now: the table's parts, inactive ones too, at least those above
 * hf__plan_least_block. rows_now: the active rows of the partition. collapses: merges of this
 * engine change the number of rows.
 */
hf__verdict hf__plan_judge(const hf__plan *plan, const hf__plan_partition *partition,
                           const hf__parts *now, int64_t rows_now, bool collapses);

#endif

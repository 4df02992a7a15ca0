/*
 * A plan says what an append adds to each partition, part by part, and what the table had there
 * before. It is kept in the store while parts are attached: after a crash it is held against what
 * the server shows, part by part, to tell what was done.
 */
#ifndef HF_APPEND_PLAN_H
#define HF_APPEND_PLAN_H

#include "programs/append/target/target.h"

enum {
    HF__PARTITION_MAX = 256, /* a partition's id is part of a file name */
    HF__PART_NAME_MAX = 352,
    HF__FILES_MAX = 96,
    HF__BLOCK_ID_MAX = 40,
    HF__TABLE_MARK_MAX = 48,
};

/* What is known about a part of a plan. */
typedef enum hf__found { HF__ABSENT = 0, HF__THERE, HF__MAYBE } hf__found;

/* A part of a table (a row of system.parts), or of a plan. */
typedef struct hf__plan_part {
    char partition[HF__PARTITION_MAX];
    char name[HF__PART_NAME_MAX];
    int64_t min_block, max_block;
    int64_t rows;
    int64_t level; /* 0: as it was inserted; else the result of merges */
    bool is_active;
    bool is_mutated;
    char files[HF__FILES_MAX]; /* their sizes and, where the server tells it, their checksum */
    int64_t modified;          /* when it was made, by the server's clock */
    bool has_sum;              /* the rows were read, and this is a sum over all of them */
    uint64_t sum;

    /* Of a part of a plan: */
    char block_id[HF__BLOCK_ID_MAX]; /* by which a replicated table remembers it; "": not known */
    hf__found found;
} hf__plan_part;

typedef struct hf__parts {
    hf__plan_part *items;
    size_t count;
} hf__parts;

void hf__parts_free(hf__parts *parts);

/*
 * Reads a table's parts, by partition and block. above: only parts with later blocks; -1: all.
 * with_checksums: this server tells them.
 */
HF_MUST_CHECK hf_status hf__parts_read(hf__target *target, const char *database, const char *table,
                                       bool with_checksums, int64_t above, hf__parts *parts,
                                       hf_error *err);

typedef struct hf__plan_partition {
    char id[HF__PARTITION_MAX];
    int64_t last_block;  /* the greatest block that the table had in it; 0: none */
    size_t first, count; /* which of the plan's parts belong to it */
    int64_t rows;        /* the rows of these parts */
} hf__plan_partition;

typedef struct hf__plan {
    hf__plan_partition *partitions;
    size_t partition_count;
    hf__plan_part *parts; /* the store keeps only rows, files and block_id of each */
    size_t part_count;
    int64_t rows;

    /* When it was written, by the server's clock, and since when the server had been running. */
    int64_t at, started;
    char table_mark[HF__TABLE_MARK_MAX]; /* of the very table: one that is made anew has another */
} hf__plan;

/* Plans to attach the active parts of a staging table. The caller frees plan. */
HF_MUST_CHECK hf_status hf__plan_make(const hf__parts *staged, hf__plan *plan, hf_error *err);
void hf__plan_free(hf__plan *plan);

/* The least last_block of all partitions. */
int64_t hf__plan_least_block(const hf__plan *plan);

/* The plan as text, and back. HF_BAD_DATA: that is not the text of a plan. */
void hf__plan_write(const hf__plan *plan, hf__buf *text);
HF_MUST_CHECK hf_status hf__plan_parse(const char *text, hf__plan *plan, hf_error *err);

typedef enum hf__verdict { HF__NOT_ATTACHED = 0, HF__ATTACHED, HF__PARTLY, HF__UNSURE } hf__verdict;

/* What the parts of the table are judged by. */
typedef struct hf__evidence {
    bool is_answered;   /* the server has said that ATTACH was done: equal files are enough */
    bool has_checksums; /* equal files are proof, since files has their checksum */
    bool is_altered;    /* the table was altered: servers rewrite parts in place then */
    bool is_same_run;   /* the server was not restarted since the plan was written */
    bool is_clock_back; /* by the server's clock the plan is of the future: times prove nothing */
    int64_t started;    /* since when the server has been running now */
    bool is_at_once;    /* the server has just said that ATTACH failed: nobody dropped its parts */
} hf__evidence;

/*
 * Which parts of this partition are in the table? now: the table's parts, inactive ones too, at
 * least those above hf__plan_least_block. Sets found of the plan's parts. That a part is not shown
 * does not prove that it was never there: somebody may have dropped the partition since.
 */
hf__verdict hf__plan_judge(hf__plan *plan, const hf__plan_partition *partition,
                           const hf__parts *now, const hf__evidence *evidence);
/* Has nobody dropped this partition since the plan was written? now: all parts of the table. */
bool hf__plan_is_kept(const hf__plan *plan, const hf__plan_partition *partition,
                      const hf__parts *now, const hf__evidence *evidence);
/* The verdict from what was found. */
hf__verdict hf__plan_sum_up(const hf__plan *plan, const hf__plan_partition *partition);
/* May this part of the table be that one of the plan, by what is known without reading its rows? */
bool hf__plan_is_alike(const hf__plan_part *planned, const hf__plan_partition *partition,
                       const hf__plan_part *part);

#endif

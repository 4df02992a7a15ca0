#ifndef HF_KEY_TABLE_NAME_H
#define HF_KEY_TABLE_NAME_H

#include "base/error.h"

/* A shared table's name, checked. */
typedef struct hf__table_name {
    char cluster[HF_TABLE_PART_MAX + 1]; /* "": none */
    char database[HF_TABLE_PART_MAX + 1];
    char table[HF_TABLE_PART_MAX + 1];
    char text[HF_TABLE_TEXT_MAX]; /* "cluster/database.table": one text per table */
} hf__table_name;

HF_MUST_CHECK hf_status hf__table_name_check(const hf_table_name *given, hf__table_name *name,
                                             hf_error *err);

/* "table", "database.table" or "cluster/database.table"; defaults (may be NULL) has what is not stated. */
HF_MUST_CHECK hf_status hf__table_name_parse(const char *text, size_t size,
                                             const hf_table_name *defaults, hf__table_name *name,
                                             hf_error *err);

#endif

#ifndef HF_TABLES_NAME_H
#define HF_TABLES_NAME_H

#include "base/error.h"

/* The name of a shared table, after it was checked. */
typedef struct hf__table_name {
    char cluster[HF_TABLE_PART_MAX + 1]; /* "": none */
    char database[HF_TABLE_PART_MAX + 1];
    char table[HF_TABLE_PART_MAX + 1];
    char text[HF_TABLE_TEXT_MAX]; /* "cluster/database.table", or without a cluster */
} hf__table_name;

/* Checks the parts of a name and fills *name. HF_INVALID says what is wrong. */
HF_MUST_CHECK hf_status hf__table_name_check(const hf_table_name *given, hf__table_name *name,
                                             hf_error *err);

/*
 * Reads "table", "database.table" or "cluster/database.table". defaults, which may be NULL, has the
 * parts that the text does not name.
 */
HF_MUST_CHECK hf_status hf__table_name_parse(const char *text, size_t size,
                                             const hf_table_name *defaults, hf__table_name *name,
                                             hf_error *err);

#endif

#ifndef HF_CLI_PRINT_ROWS_H
#define HF_CLI_PRINT_ROWS_H

#include <stdbool.h>

#include "holdfast/holdfast.h"

/*
 * Rows with at least one column, to stdout. False when memory or the stream failed. A table without
 * rows is nothing at all. In JSON, all values are strings or null, and of columns with one name the
 * second is name_2.
 */
bool print_rows_as_table(const hf_rows *rows);
bool print_rows_as_json(const hf_rows *rows);

#endif

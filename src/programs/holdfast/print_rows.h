#ifndef HF_CLI_PRINT_ROWS_H
#define HF_CLI_PRINT_ROWS_H

#include <stdbool.h>

#include "holdfast/holdfast.h"

/*
 * Print rows, with at least one column, to stdout. False: memory is out, or the output failed.
 * Without rows the table prints nothing. In JSON every value is a string or null, and the second of
 * two columns with the same name is called name_2.
 */
bool print_rows_as_table(const hf_rows *rows);
bool print_rows_as_json(const hf_rows *rows);

#endif

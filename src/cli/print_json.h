#ifndef HF_CLI_PRINT_JSON_H
#define HF_CLI_PRINT_JSON_H

#include <stdio.h>

#include "base/json.h"

/* Writes the document and a newline, then frees it. False when memory or the stream failed. */
bool print_document(hf__json *json, FILE *out);

#endif

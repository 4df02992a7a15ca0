/* Names and texts in ClickHouse's SQL. */
#ifndef HF_APPEND_QUOTE_H
#define HF_APPEND_QUOTE_H

#include "base/buf.h"

/* `a\`b` */
void hf__quote_name(hf__buf *out, const char *name);
/* `database`.`table` */
void hf__quote_table(hf__buf *out, const char *database, const char *table);
/* 'o\'brien' */
void hf__quote_text(hf__buf *out, const char *text);

#endif

#include "programs/append/quote.h"

static void quote(hf__buf *out, const char *text, char mark)
{
    hf__buf_add(out, &mark, 1);
    for (; *text != '\0'; text++) {
        if (*text == mark || *text == '\\')
            hf__buf_add(out, "\\", 1);
        hf__buf_add(out, text, 1);
    }
    hf__buf_add(out, &mark, 1);
}

void hf__quote_name(hf__buf *out, const char *name)
{
    quote(out, name, '`');
}

void hf__quote_table(hf__buf *out, const char *database, const char *table)
{
    hf__quote_name(out, database);
    hf__buf_add(out, ".", 1);
    hf__quote_name(out, table);
}

void hf__quote_text(hf__buf *out, const char *text)
{
    quote(out, text, '\'');
}

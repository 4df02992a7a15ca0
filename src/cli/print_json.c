#include "cli/print_json.h"

bool print_document(hf__json *json, FILE *out)
{
    hf__buf_puts(&json->text, "\n");
    bool written = !json->text.broken &&
                   fwrite(json->text.data, 1, json->text.length, out) == json->text.length &&
                   fflush(out) == 0;
    hf__buf_free(&json->text);
    json->needs_comma = false;
    return written;
}

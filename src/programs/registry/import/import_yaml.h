/* Strings and comments as YAML takes them, whatever is in them. */
#ifndef HF_AUDIT_IMPORT_YAML_H
#define HF_AUDIT_IMPORT_YAML_H

#include "base/buf.h"

/* Plain where nobody can misread it, also inside of [] and {}; otherwise in double quotes. */
void hf__yaml_text(hf__buf *out, const char *text, size_t size);

/* The same text on the one line of a comment: control characters are blanks. */
void hf__yaml_comment_text(hf__buf *out, const char *text, size_t size);

#endif

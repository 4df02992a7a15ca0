#ifndef HF_SERVE_GZIP_H
#define HF_SERVE_GZIP_H

#include "base/buf.h"

/* Does the client's Accept-Encoding (may be NULL) allow gzip? */
bool hf__takes_gzip(const char *accepted);

/* Replaces the text by its gzip form; false, and nothing is changed: it is not worth it, or memory is out. */
bool hf__gzip(hf__buf *text);

#endif

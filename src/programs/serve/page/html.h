/* Writes HTML so that no text from outside can become markup. Pure functions, for any thread. */
#ifndef HF_SERVE_HTML_H
#define HF_SERVE_HTML_H

#include <stdint.h>

#include "base/buf.h"

/*
 * printf for HTML. Every %s goes through hf__show and is escaped, so that it may stand in text and
 * in quoted attributes; "%.80s" cuts it at 80 bytes, %s at 4 000. It also knows %c %d %u %zu %ld
 * %lu %.Nf and %%.
 */
void hf__html(hf__buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * A value that a form sends back: escaped, but not changed otherwise. Control characters and bytes
 * that are not UTF-8 become U+FFFD.
 */
void hf__html_value(hf__buf *out, const char *text);

/* Percent-encoded, for a query string; safe inside of a quoted attribute. */
void hf__html_url(hf__buf *out, const char *text);

/* <time>: 14:03:22, with the date before it when that is not the day of now_ms. UTC. */
void hf__html_time(hf__buf *out, int64_t unix_ms, int64_t now_ms);

/* "12 min", "≤ 12 min" for a bound, "–" when negative. */
void hf__html_duration(hf__buf *out, int64_t ms, bool is_bound);

/* With thin spaces between groups of three digits. */
void hf__html_number(hf__buf *out, int64_t number);

#endif

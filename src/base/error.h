#ifndef HF_BASE_ERROR_H
#define HF_BASE_ERROR_H

#include "holdfast/holdfast.h"

/* Every failure goes through here: fills err (may be NULL), clears its hint, returns code. */
HF_MUST_CHECK hf_status hf__fail(hf_error *err, hf_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with errno's text appended: "cannot open x: No such file or directory". */
HF_MUST_CHECK hf_status hf__fail_errno(hf_error *err, hf_status code, int error_number,
                                       const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds the remedy to the error that was just made; err may be NULL. */
void hf__hint(hf_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

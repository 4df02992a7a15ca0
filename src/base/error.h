#ifndef HF_BASE_ERROR_H
#define HF_BASE_ERROR_H

#include "holdfast/holdfast.h"

/*
 * Every failure goes through here: fills err (may be NULL), clears its hint, and is the code, so
 * that compilers and analysers see that it is not HF_OK.
 */
#define hf__fail(err, code, ...) (hf__set_error((err), (code), __VA_ARGS__), (hf_status)(code))

/* The same with errno's text appended: "cannot open x: No such file or directory". */
#define hf__fail_errno(err, code, error_number, ...)                                               \
    (hf__set_error_errno((err), (code), (error_number), __VA_ARGS__), (hf_status)(code))

/* The one message for malloc's refusal; it allocates nothing itself. */
#define hf__no_memory(err) hf__fail((err), HF_NO_MEMORY, "out of memory")

/* Begins the message of every HF_NOT_ACQUIRED that tells who has the lock. */
#define HF__NOT_ACQUIRED_PREFIX "not acquired: "

/* The message behind that prefix, for sentences that say in words of their own what failed. */
const char *hf__error_detail(const hf_error *err);

void hf__set_error(hf_error *err, hf_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hf__set_error_errno(hf_error *err, hf_status code, int error_number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Copies a caller's options, whose first member says how large they are: a program that was built
 * against an older header has fewer members, and those it does not know are 0. least: where the
 * size must reach at least. HF_INVALID: the size was never set; type and init name what to write.
 */
HF_MUST_CHECK hf_status hf__options_copy(void *out, size_t out_size, const void *given,
                                         size_t least, const char *type, const char *init,
                                         hf_error *err);

/* Adds the remedy to the error that was just made; err may be NULL. */
void hf__hint(hf_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

#ifndef HF_BASE_ERROR_H
#define HF_BASE_ERROR_H

#include "holdfast/holdfast.h"

/*
 * Every failure goes through hf__fail. It fills err (may be NULL), clears its hint and SQLSTATE,
 * and evaluates to the code. It is a macro so that compilers and analysers see that the result is
 * not HF_OK.
 */
#define hf__fail(err, code, ...) (hf__set_error((err), (code), __VA_ARGS__), (hf_status)(code))

/* The same, with the text of error_number appended: "cannot open x: No such file or directory". */
#define hf__fail_errno(err, code, error_number, ...)                                               \
    (hf__set_error_errno((err), (code), (error_number), __VA_ARGS__), (hf_status)(code))

/* For a failed allocation. It allocates nothing itself. */
#define hf__no_memory(err) hf__fail((err), HF_NO_MEMORY, "out of memory")

/* By hf_store_interrupt, or by the handle of the call. */
#define hf__interrupted(err) hf__fail((err), HF_INTERRUPTED, "the wait was interrupted")

/* How every HF_NOT_ACQUIRED message begins that names the holder. */
#define HF__NOT_ACQUIRED_PREFIX "not acquired: "

/* The message without that prefix, to be quoted in another sentence. It points into err. */
const char *hf__error_detail(const hf_error *err);

/*
 * Fill err, which may be NULL, for the macros above. The text is made one line and cut to fit. The
 * arguments may include err->message.
 */
void hf__set_error(hf_error *err, hf_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hf__set_error_errno(hf_error *err, hf_status code, int error_number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Copies a caller's options to out. Their first member is their size: a program that was built
 * against an older header has fewer members, and the missing ones become 0. HF_INVALID when the
 * size is below `least` or absurdly large, because then the caller never set it. type and init are
 * the names of the struct and its initialiser, for the message.
 */
HF_MUST_CHECK hf_status hf__options_copy(void *out, size_t out_size, const void *given,
                                         size_t least, const char *type, const char *init,
                                         hf_error *err);

/* Adds the remedy to an error that was just filled. err may be NULL. */
void hf__hint(hf_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

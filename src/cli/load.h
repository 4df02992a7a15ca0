/*
 * Libraries that are loaded only when they are needed. libpq brings twenty other libraries and
 * takes longer to load than a whole run on the local store; the more is loaded before it, the
 * longer it takes. The load_*.c files define functions with the names of the library's own, which
 * pass each call on. Programs that link the shared libholdfast have the libraries as usual.
 *
 * These functions are made from a list of every call that the program and libholdfast make. If one
 * is missing, the program does not link. The compiler checks each against the library's header.
 */
#ifndef HF_CLI_LOAD_H
#define HF_CLI_LOAD_H

#include <stddef.h>

#include "holdfast/holdfast.h"

/*
 * Each must have succeeded before the first call of its library. Calling it again is fine. Main
 * thread only. HF_UNREACHABLE, with a hint about the package, when the library cannot be loaded.
 */
HF_MUST_CHECK hf_status load_libpq(hf_error *err);
HF_MUST_CHECK hf_status load_sqlite(hf_error *err);
HF_MUST_CHECK hf_status load_libcrypto(hf_error *err); /* to derive keys */
HF_MUST_CHECK hf_status load_libyaml(hf_error *err);   /* to read a registry */

struct lazy_call {
    const char *name;
    void **address; /* of the pointer that load_library sets */
};

/*
 * Loads the library for good and sets every pointer. An entry without a name ends the calls.
 * package is its name on Debian, for the hint. HF_UNREACHABLE when it or a call cannot be found.
 */
HF_MUST_CHECK hf_status load_library(const char *file, const char *package,
                                     const struct lazy_call *calls, hf_error *err);

/*
 * A list consists of ASK(type, name, (parameters), (arguments)), or DO(name, (parameters),
 * (arguments)) for a function that returns nothing.
 */
#define LAZY_ASK_POINTER(type, name, parameters, arguments) type(*name) parameters;
#define LAZY_DO_POINTER(name, parameters, arguments) void(*name) parameters;

#define LAZY_ASK_ENTRY(type, name, parameters, arguments) {#name, (void **)&lazy.name},
#define LAZY_DO_ENTRY(name, parameters, arguments) {#name, (void **)&lazy.name},

#define LAZY_ASK_FUNCTION(type, name, parameters, arguments)                                       \
    type name parameters                                                                           \
    {                                                                                              \
        return lazy.name arguments;                                                                \
    }
#define LAZY_DO_FUNCTION(name, parameters, arguments)                                              \
    void name parameters                                                                           \
    {                                                                                              \
        lazy.name arguments;                                                                       \
    }

/* Defines the functions of a list, and lazy_calls for load_library. */
#define LAZY_LIBRARY(LIST)                                                                         \
    static struct {                                                                                \
        LIST(LAZY_ASK_POINTER, LAZY_DO_POINTER)                                                    \
    } lazy;                                                                                        \
    static const struct lazy_call lazy_calls[] = {LIST(LAZY_ASK_ENTRY, LAZY_DO_ENTRY){0}};         \
    LIST(LAZY_ASK_FUNCTION, LAZY_DO_FUNCTION)

#endif

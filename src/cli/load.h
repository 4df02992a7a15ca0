/*
 * Libraries that are loaded when they are wanted. libpq comes with twenty others and takes longer
 * to load than a whole run on the local store; the more is loaded before it, the longer it takes.
 * Calls reach them through functions of the same names, made from lists; whoever links the shared
 * libholdfast has them as usual.
 *
 * A list names every call that the command and libholdfast make. The linker misses one that is not
 * there, and the compiler compares each with its declaration in the library's own header.
 */
#ifndef HF_CLI_LOAD_H
#define HF_CLI_LOAD_H

#include <stddef.h>

#include "holdfast/holdfast.h"

/* Each must have succeeded before a call; more than once is fine. */
HF_MUST_CHECK hf_status load_libpq(hf_error *err);
HF_MUST_CHECK hf_status load_sqlite(hf_error *err);
HF_MUST_CHECK hf_status load_libcrypto(hf_error *err); /* for every key that is derived */
HF_MUST_CHECK hf_status load_libyaml(hf_error *err);   /* for a registry */

struct lazy_call {
    const char *name;
    void **address;
};

/* package: Debian's name for it, for the hint. The entries end with one without a name. */
HF_MUST_CHECK hf_status load_library(const char *file, const char *package,
                                     const struct lazy_call *calls, hf_error *err);

/*
 * A list has ASK(type, name, (parameters), (arguments)), or DO(name, …) where nothing is returned.
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

/* Defines the functions, and lazy_calls for load_library. */
#define LAZY_LIBRARY(LIST)                                                                         \
    static struct {                                                                                \
        LIST(LAZY_ASK_POINTER, LAZY_DO_POINTER)                                                    \
    } lazy;                                                                                        \
    static const struct lazy_call lazy_calls[] = {LIST(LAZY_ASK_ENTRY, LAZY_DO_ENTRY){0}};         \
    LIST(LAZY_ASK_FUNCTION, LAZY_DO_FUNCTION)

#endif

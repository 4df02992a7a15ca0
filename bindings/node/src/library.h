/* libholdfast, loaded when the addon is: a missing or old one is then an error with a remedy. */
#ifndef HOLDFAST_NODE_LIBRARY_H
#define HOLDFAST_NODE_LIBRARY_H

#include <holdfast/holdfast.h>

#define HFN_FUNCTIONS(X)                                                                           \
    X(version)                                                                                     \
    X(status_name)                                                                                 \
    X(derivation_name)                                                                             \
    X(derivation_space)                                                                            \
    X(key_derive)                                                                                  \
    X(registry_read)                                                                               \
    X(registry_free)                                                                               \
    X(registry_resolve)                                                                            \
    X(registry_find)                                                                               \
    X(registry_fill)                                                                               \
    X(store_registry)                                                                              \
    X(store_open)                                                                                  \
    X(store_close)                                                                                 \
    X(store_interrupt)                                                                             \
    X(store_name)                                                                                  \
    X(store_is_local)                                                                              \
    X(store_has_records)                                                                           \
    X(store_init)                                                                                  \
    X(store_examine)                                                                               \
    X(cancel_create)                                                                               \
    X(cancel_trigger)                                                                              \
    X(cancel_free)                                                                                 \
    X(lock_start)                                                                                  \
    X(lock_release)                                                                                \
    X(lock_free)                                                                                   \
    X(lock_token)                                                                                  \
    X(lock_note)                                                                                   \
    X(lock_key)                                                                                    \
    X(lock_slot)                                                                                   \
    X(lock_traceparent)                                                                            \
    X(schedule_claim)                                                                              \
    X(lock_list_read)                                                                              \
    X(lock_list_read_past)                                                                         \
    X(lock_list_count)                                                                             \
    X(lock_list_at)                                                                                \
    X(lock_list_free)                                                                              \
    X(tx_begin)                                                                                    \
    X(tx_begin_on)                                                                                 \
    X(tx_end)                                                                                      \
    X(tx_free)                                                                                     \
    X(tx_serialize)                                                                                \
    X(tx_query)                                                                                    \
    X(tx_queue)                                                                                    \
    X(tx_attempt)                                                                                  \
    X(tx_traceparent)                                                                              \
    X(rows_count)                                                                                  \
    X(rows_columns)                                                                                \
    X(rows_column)                                                                                 \
    X(rows_value)                                                                                  \
    X(rows_affected)                                                                               \
    X(rows_free)                                                                                   \
    X(table_name_parse)                                                                            \
    X(table_name_text)                                                                             \
    X(table_register)                                                                              \
    X(table_find)                                                                                  \
    X(table_lock_start)                                                                            \
    X(table_ref)                                                                                   \
    X(table_unref)                                                                                 \
    X(table_drop)                                                                                  \
    X(table_list_read)                                                                             \
    X(table_list_count)                                                                            \
    X(table_list_at)                                                                               \
    X(table_list_free)                                                                             \
    X(table_refs)                                                                                  \
    X(table_adopt)                                                                                 \
    X(table_leave)                                                                                 \
    X(network_open)                                                                                \
    X(network_free)                                                                                \
    X(network_gaps)                                                                                \
    X(cursor_get)                                                                                  \
    X(cursor_set)                                                                                  \
    X(cursor_set_min)                                                                              \
    X(cursor_advance)                                                                              \
    X(cursor_swap)                                                                                 \
    X(cursor_list)

/* hf.lock_start is hf_lock_start of the library that was loaded. */
struct hfn_library {
#define X(name) __typeof__(hf_##name) *name;
    HFN_FUNCTIONS(X)
#undef X
};

extern struct hfn_library hf;

/* Loads it once for the process, for ever. False: *why says what is missing and what to do. */
bool hfn_load_library(const char **why);

#endif

/* Many keys, each with the place that it comes from. */
#ifndef HF_AUDIT_KEYED_H
#define HF_AUDIT_KEYED_H

#include <stddef.h>
#include <stdint.h>

typedef struct hf__keyed {
    uint64_t key;
    uint64_t place;
} hf__keyed;

/* By key, in place and without further memory; of equal keys in any order. Fast for keys that spread
 * over the high bits. */
void hf__keyed_sort(hf__keyed *items, size_t count);

#endif

/* What the files that read locks.yaml share: read.c, read_value.c and read_pattern.c. */
#ifndef HF_REGISTRY_READ_H
#define HF_REGISTRY_READ_H

#include "lib/registry/document.h"
#include "lib/registry/finding.h"

/*
 * One file as it is read, on one thread. A reader that finds a fault complains and goes on; when
 * memory runs out it sets no_memory and returns.
 */
typedef struct hf__reading {
    hf_registry *registry;
    const char *path;
    hf__findings *findings;
    bool no_memory;
} hf__reading;

#define hf__complain(reading, rule, at, remedy, ...)                                               \
    ((void)hf__findings_add((reading)->findings, &hf__reading_rules[rule], (reading)->path,        \
                            (at).line, (at).column, (remedy), __VA_ARGS__))

/* One field of a mapping; the table ends with one without a name. */
typedef struct hf__field {
    const char *name;
    void (*read)(hf__reading *reading, const struct hf__field *field, const hf__node *value,
                 void *into);
    size_t offset; /* from what is read to what this field fills: into points there */
} hf__field;

/*
 * Calls the reader of each field. Complains about unknown fields, and when node is not a mapping.
 */
void hf__read_mapping(hf__reading *reading, const hf__node *node, const char *what,
                      const hf__field *fields, void *into);
const hf__node *hf__mapping_get(const hf__node *node, const char *name); /* NULL: not there */

/*
 * Each of these returns true and sets *out, or complains, leaves *out alone and returns false. A
 * text is a copy that the caller frees.
 */
bool hf__read_text(hf__reading *reading, const hf__node *node, const char *what, char **out);
bool hf__read_integer(hf__reading *reading, const hf__node *node, const char *what, int64_t low,
                      int64_t high, int64_t *out);
bool hf__read_boolean(hf__reading *reading, const hf__node *node, const char *what, bool *out);
bool hf__read_number(hf__reading *reading, const hf__node *node, const char *what, double low,
                     double high, double *out);

/*
 * The index of the word in a NULL-terminated list; complains and returns -1 when it is not there.
 */
int hf__read_word(hf__reading *reading, const hf__node *node, const char *what,
                  const char *const *words);

/*
 * Fills view.pattern, placeholders, language and literal_prefix from the entry's key and its
 * placeholders (NULL: none are given).
 */
void hf__read_pattern(hf__reading *reading, hf__lock_entry *entry, const hf__node *pattern,
                      const hf__node *placeholders);

/*
 * Makes the tables of names and of fixed keys, after all entries have been read. False: no memory.
 */
HF_MUST_CHECK bool hf__names_build(hf_registry *registry);

#endif

/* Shared by the files that read locks.yaml. */
#ifndef HF_REGISTRY_READ_H
#define HF_REGISTRY_READ_H

#include "lib/registry/document.h"
#include "lib/registry/finding.h"

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

/* Calls each field's reader, and complains about unknown ones and about what is no mapping. */
void hf__read_mapping(hf__reading *reading, const hf__node *node, const char *what,
                      const hf__field *fields, void *into);
const hf__node *hf__mapping_get(const hf__node *node, const char *name); /* NULL: not there */

/* Each complains and leaves *out alone when the value is not what it should be. */
bool hf__read_text(hf__reading *reading, const hf__node *node, const char *what, char **out);
bool hf__read_integer(hf__reading *reading, const hf__node *node, const char *what, int64_t low,
                      int64_t high, int64_t *out);
bool hf__read_boolean(hf__reading *reading, const hf__node *node, const char *what, bool *out);
bool hf__read_number(hf__reading *reading, const hf__node *node, const char *what, double low,
                     double high, double *out);

/* Which of the words, NULL-terminated; -1 and a complaint when none. */
int hf__read_word(hf__reading *reading, const hf__node *node, const char *what,
                  const char *const *words);

/* read_pattern.c: fills view.pattern, placeholders, language and prefix from the entry's key and
 * placeholders (NULL: none given). */
void hf__read_pattern(hf__reading *reading, hf__lock_entry *entry, const hf__node *pattern,
                      const hf__node *placeholders);

/* names.c: after all entries have been read */
HF_MUST_CHECK bool hf__names_build(hf_registry *registry);
void hf__names_free(struct hf__names *names);

#endif

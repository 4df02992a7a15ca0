/*
 * Makes entries of the tree of locks.yaml. Every fault is reported, and what can be read is kept.
 */
#include "lib/registry/read.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "base/time.h"
#include "base/vec.h"

enum { NAME_MAX_SIZE = 128, ENTRIES_MAX = 20000, WRAPPERS_MAX = 200, SHOWN = 80 };

static const int64_t default_min_fixed = 1000;

/* ---- the fields of a lock ---- */

static void read_text_field(hf__reading *reading, const hf__field *field, const hf__node *value,
                            void *into)
{
    (void)hf__read_text(reading, value, field->name, into);
}

static bool is_name(const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f || strchr("={}", text[i]))
            return false;
    return size > 0 && size <= NAME_MAX_SIZE && text[0] != '-';
}

static void read_name(hf__reading *reading, const hf__field *field, const hf__node *value,
                      void *into)
{
    hf__lock_entry *entry = into;
    char shown[SHOWN];
    char *name = NULL;
    entry->name_at = value->at;
    if (!hf__read_text(reading, value, field->name, &name))
        return;
    entry->view.name = name;
    if (!is_name(name))
        hf__complain(reading, HF__RULE_WRONG_VALUE, value->at,
                     "use letters, digits, '-', '_', '.', ':' and '/', at most 128 bytes",
                     "'%s' cannot be the name of a lock",
                     hf__show(shown, sizeof shown, name, strlen(name)));
}

static void read_lifetime(hf__reading *reading, const hf__field *field, const hf__node *value,
                          void *into)
{
    static const char *const words[] = {"session", "transaction", "lease", NULL};
    hf__lock_entry *entry = into;
    int word = hf__read_word(reading, value, field->name, words);
    entry->lifetime_at = value->at;
    entry->view.lifetime_given = word >= 0;
    if (word >= 0)
        entry->view.lifetime = (hf_lifetime)word; /* the words are in the order of the values */
}

static void read_lease(hf__reading *reading, const hf__field *field, const hf__node *value,
                       void *into)
{
    hf__lock_entry *entry = into;
    char shown[SHOWN];
    char *text = NULL;
    int64_t ms = 0;
    entry->lease_at = value->at;
    if (!hf__read_text(reading, value, field->name, &text))
        return;
    if (hf__parse_duration(text, &ms, NULL) != HF_OK || ms < HF_LEASE_MIN_MS ||
        ms > HF_LEASE_MAX_MS)
        hf__complain(reading, HF__RULE_WRONG_VALUE, value->at, "write it as 30s or 5m",
                     "'%s' is not a time from 1 second to 1 day",
                     hf__show(shown, sizeof shown, text, strlen(text)));
    else
        entry->view.lease_ms = (int)ms;
    free(text);
}

static void check_lease(hf__reading *reading, const hf__lock_entry *entry)
{
    if (entry->lease_at.line > 0 && entry->view.lifetime != HF_LEASE)
        hf__complain(reading, HF__RULE_WRONG_VALUE, entry->lease_at,
                     "say lifetime: lease, or remove it",
                     "lease is how long a lease lasts, and this lock is none");
}

static void read_mode(hf__reading *reading, const hf__field *field, const hf__node *value,
                      void *into)
{
    static const char *const words[] = {"exclusive", "shared", NULL};
    hf__lock_entry *entry = into;
    int word = hf__read_word(reading, value, field->name, words);
    if (word >= 0)
        entry->view.mode = word == 1 ? HF_SHARED : HF_EXCLUSIVE;
}

static void read_order(hf__reading *reading, const hf__field *field, const hf__node *value,
                       void *into)
{
    hf__lock_entry *entry = into;
    entry->order_at = value->at;
    entry->view.has_order =
        hf__read_integer(reading, value, field->name, INT32_MIN, INT32_MAX, &entry->view.order);
}

static void read_expected(hf__reading *reading, const hf__field *field, const hf__node *value,
                          void *into)
{
    hf__lock_entry *entry = into;
    entry->expected_at = value->at;
    (void)hf__read_integer(reading, value, field->name, 1, INT64_MAX, &entry->view.expected);
}

static void read_histogram(hf__reading *reading, const hf__field *field, const hf__node *value,
                           void *into)
{
    (void)hf__read_boolean(reading, value, field->name, into);
}

static void add_source(hf__reading *reading, hf__lock_entry *entry, const hf__node *node)
{
    char *path = NULL;
    if (!hf__read_text(reading, node, "source", &path))
        return;
    if (!hf__grow(&entry->sources, &entry->source_room, entry->source_count + 1,
                  sizeof *entry->sources)) {
        free(path);
        reading->no_memory = true;
        return;
    }
    entry->sources[entry->source_count++] = (hf__source_file){path, node->at};
}

static void read_sources(hf__reading *reading, const hf__field *field, const hf__node *value,
                         void *into)
{
    hf__lock_entry *entry = into;
    (void)field;
    if (value->kind != HF__LIST)
        add_source(reading, entry, value);
    else
        for (size_t i = 0; i < value->count; i++)
            add_source(reading, entry, value->items[i]);
}

/* Nothing to do here: placeholders are read with the key, to which they belong. */
static void leave_for_pattern(hf__reading *reading, const hf__field *field, const hf__node *value,
                              void *into)
{
    (void)reading;
    (void)field;
    (void)value;
    (void)into;
}

/* ---- the key ---- */

struct key_fields {
    const hf__node *fixed, *pair, *pattern, *as, *class_id;
};

static void keep_node(hf__reading *reading, const hf__field *field, const hf__node *value,
                      void *into)
{
    (void)reading;
    (void)field;
    *(const hf__node **)into = value;
}

static const hf__field key_field_table[] = {
    {"fixed", keep_node, offsetof(struct key_fields, fixed)},
    {"pair", keep_node, offsetof(struct key_fields, pair)},
    {"pattern", keep_node, offsetof(struct key_fields, pattern)},
    {"as", keep_node, offsetof(struct key_fields, as)},
    {"class", keep_node, offsetof(struct key_fields, class_id)},
    {0},
};

static void read_pair(hf__reading *reading, hf__lock_entry *entry, const hf__node *node)
{
    entry->view.space = HF_PAIR;
    entry->view.derivation = HF_FIXED;
    if (node->kind != HF__LIST || node->count != 2) {
        hf__complain(reading, HF__RULE_WRONG_TYPE, node->at, "write it as [1, 2]",
                     "pair is not a list of two numbers");
        return;
    }
    entry->id_is_read = true;
    for (size_t i = 0; i < 2; i++) {
        int64_t number = 0;
        entry->id_is_read &=
            hf__read_integer(reading, node->items[i], "pair", INT32_MIN, INT32_MAX, &number);
        entry->view.pair[i] = (int32_t)number;
    }
}

static void read_derivation(hf__reading *reading, hf__lock_entry *entry, const hf__node *node)
{
    static const char *const words[] = {"sha256",
                                        "fnv1a64",
                                        "fnv1a32",
                                        "fnv1a32-js",
                                        "hashtext",
                                        "hashtextextended",
                                        "minted",
                                        "crc32",
                                        "crc32-sqlx",
                                        "md5",
                                        "java-hashcode",
                                        "with-advisory-lock",
                                        "distributedlock-ascii",
                                        "distributedlock-hash",
                                        NULL};
    int word = hf__read_word(reading, node, "as", words);
    hf_derivation derivation = HF_SHA256;
    if (word >= 0 && hf_derivation_parse(words[word], &derivation, NULL) == HF_OK)
        entry->view.derivation = derivation;
    entry->view.space = hf_derivation_space(entry->view.derivation);
}

static void read_class(hf__reading *reading, hf__lock_entry *entry, const hf__node *node)
{
    int64_t number = 0;
    entry->view.space = HF_PAIR;
    if (!hf__read_integer(reading, node, "class", INT32_MIN, INT32_MAX, &number))
        return;
    entry->view.pair[0] = (int32_t)number;
    if (!hf__has_32_bits(entry->view.derivation))
        hf__complain(reading, HF__RULE_WRONG_VALUE, node->at,
                     "give as: hashtext, fnv1a32, fnv1a32-js, crc32 or java-hashcode, or leave the "
                     "class out",
                     "the second key beside a class has 32 bits, and %s gives %s",
                     hf_derivation_name(entry->view.derivation),
                     hf_derivation_space(entry->view.derivation) == HF_PAIR ? "two numbers" : "64");
}

static void complain_of_key(hf__reading *reading, const hf__node *node)
{
    hf__complain(reading, HF__RULE_WRONG_VALUE, node->at,
                 "give { fixed: NUMBER }, { pair: [A, B] } or { pattern: TEXT, as: DERIVATION }",
                 "key says neither a number nor a pattern, or both");
}

static void read_key_and_placeholders(hf__reading *reading, hf__lock_entry *entry,
                                      const hf__node *node, const hf__node *placeholders)
{
    struct key_fields key = {0};
    entry->key_at = node->at;
    hf__read_mapping(reading, node, "key", key_field_table, &key);
    if (node->kind != HF__MAPPING)
        return;
    bool is_number = key.fixed || key.pair;
    if ((key.fixed != NULL) + (key.pair != NULL) + (key.pattern != NULL) != 1 ||
        (is_number && (key.as || key.class_id)))
        complain_of_key(reading, node);
    if (is_number && placeholders)
        hf__complain(reading, HF__RULE_PLACEHOLDER, placeholders->at, "remove them",
                     "a number has no placeholders");
    entry->view.derivation = is_number ? HF_FIXED : HF_SHA256;
    if (key.fixed)
        entry->id_is_read =
            hf__read_integer(reading, key.fixed, "fixed", INT64_MIN, INT64_MAX, &entry->view.key);
    if (key.pair)
        read_pair(reading, entry, key.pair);
    if (key.as && !is_number)
        read_derivation(reading, entry, key.as);
    if (key.class_id && !is_number)
        read_class(reading, entry, key.class_id);
    if (key.pattern)
        hf__read_pattern(reading, entry, key.pattern, is_number ? NULL : placeholders);
}

/* ---- entries ---- */

#define TEXT_FIELD(member)                                                                         \
    {                                                                                              \
#member, read_text_field, offsetof(hf__lock_entry, view.member)                            \
    }

static const hf__field entry_fields[] = {
    {"name", read_name, 0},
    {"key", leave_for_pattern, 0},
    {"placeholders", leave_for_pattern, 0},
    {"lifetime", read_lifetime, 0},
    {"lease", read_lease, 0},
    {"mode", read_mode, 0},
    {"order", read_order, 0},
    {"expected", read_expected, 0},
    {"histogram", read_histogram, offsetof(hf__lock_entry, view.histogram)},
    TEXT_FIELD(scope),
    TEXT_FIELD(component),
    TEXT_FIELD(purpose),
    TEXT_FIELD(owner),
    TEXT_FIELD(runbook),
    {"source", read_sources, 0},
    {0},
};

static void read_entry(hf__reading *reading, const hf__node *node)
{
    hf__lock_entry *entry = &reading->registry->entries[reading->registry->count++];
    entry->at = node->at;
    entry->name_at = node->at;
    entry->key_at = node->at;
    hf__read_mapping(reading, node, "a lock", entry_fields, entry);
    if (node->kind != HF__MAPPING)
        return;
    check_lease(reading, entry);
    const hf__node *key = hf__mapping_get(node, "key");
    if (!hf__mapping_get(node, "name"))
        hf__complain(reading, HF__RULE_MISSING_FIELD, node->at, "give it one",
                     "a lock has no name");
    if (key)
        read_key_and_placeholders(reading, entry, key, hf__mapping_get(node, "placeholders"));
    else
        hf__complain(reading, HF__RULE_MISSING_FIELD, node->at,
                     "give it { fixed: NUMBER } or { pattern: TEXT }", "the lock %s has no key",
                     entry->view.name ? entry->view.name : "without a name");
}

static void read_locks(hf__reading *reading, const hf__field *field, const hf__node *value,
                       void *into)
{
    hf_registry *registry = into;
    (void)field;
    if (value->kind != HF__LIST) {
        hf__complain(reading, HF__RULE_WRONG_TYPE, value->at, "write each lock as - name: …",
                     "locks is %s, not a list", hf__node_kind_name(value));
        return;
    }
    if (value->count > ENTRIES_MAX) {
        hf__complain(reading, HF__RULE_TOO_LARGE, value->at, "use patterns",
                     "the file lists %zu locks, more than %d", value->count, ENTRIES_MAX);
        return;
    }
    registry->entries = calloc(value->count + 1, sizeof *registry->entries);
    reading->no_memory = reading->no_memory || !registry->entries;
    for (size_t i = 0; registry->entries && i < value->count; i++)
        read_entry(reading, value->items[i]);
}

/* ---- wrappers ---- */

static void read_wrapper_call(hf__reading *reading, const hf__field *field, const hf__node *value,
                              void *into)
{
    hf__declared_wrapper *wrapper = into;
    if (!hf__read_text(reading, value, field->name, &wrapper->call))
        return;
    const char *open = strchr(wrapper->call, '(');
    const char *mark = open ? strchr(open, '{') : NULL;
    if (!mark || open == wrapper->call || !strchr(mark, '}') || strchr(mark + 1, '{'))
        hf__complain(reading, HF__RULE_WRONG_VALUE, value->at,
                     "write it as \"Serialize(ctx, {label})\"",
                     "the call of a wrapper has no name, or not one argument in braces");
}

static void read_wrapper_as(hf__reading *reading, const hf__field *field, const hf__node *value,
                            void *into)
{
    hf__declared_wrapper *wrapper = into;
    char *name = NULL;
    if (!hf__read_text(reading, value, field->name, &name))
        return;
    if (hf_derivation_parse(name, &wrapper->derivation, NULL) != HF_OK)
        hf__complain(reading, HF__RULE_WRONG_VALUE, value->at,
                     "'holdfast key --help' lists the derivations; fixed is the number itself",
                     "a wrapper cannot derive keys as '%s'", name);
    free(name);
}

static void read_wrapper_lifetime(hf__reading *reading, const hf__field *field,
                                  const hf__node *value, void *into)
{
    static const char *const words[] = {"session", "transaction", NULL};
    hf__declared_wrapper *wrapper = into;
    int word = hf__read_word(reading, value, field->name, words);
    wrapper->lifetime_given = word >= 0;
    wrapper->lifetime = word == 1 ? HF_TRANSACTION : HF_SESSION;
}

static const hf__field wrapper_fields[] = {
    {"call", read_wrapper_call, 0},
    {"as", read_wrapper_as, 0},
    {"lifetime", read_wrapper_lifetime, 0},
    {0},
};

static void read_wrappers(hf__reading *reading, const hf__field *field, const hf__node *value,
                          void *into)
{
    hf_registry *registry = into;
    if (value->kind != HF__LIST || value->count > WRAPPERS_MAX) {
        hf__complain(reading, HF__RULE_WRONG_TYPE, value->at,
                     "write each as - call: \"Serialize(ctx, {label})\"",
                     "%s is not a list of at most %d functions", field->name, WRAPPERS_MAX);
        return;
    }
    registry->wrappers = calloc(value->count + 1, sizeof *registry->wrappers);
    reading->no_memory = reading->no_memory || !registry->wrappers;
    for (size_t i = 0; registry->wrappers && i < value->count; i++) {
        hf__declared_wrapper *wrapper = &registry->wrappers[registry->wrapper_count++];
        wrapper->at = value->items[i]->at;
        wrapper->derivation = HF_SHA256;
        hf__read_mapping(reading, value->items[i], "a wrapper", wrapper_fields, wrapper);
        if (!hf__mapping_get(value->items[i], "call"))
            hf__complain(reading, HF__RULE_MISSING_FIELD, wrapper->at, "give it one",
                         "a wrapper has no call");
    }
}

/* ---- the file ---- */

static void read_version(hf__reading *reading, const hf__field *field, const hf__node *value,
                         void *into)
{
    int64_t version = 1;
    (void)into;
    if (hf__read_integer(reading, value, field->name, INT64_MIN, INT64_MAX, &version) &&
        version != 1)
        hf__complain(reading, HF__RULE_VERSION, value->at, "use a newer holdfast, or version: 1",
                     "version %lld is not known here", (long long)version);
}

static void read_generic(hf__reading *reading, const hf__field *field, const hf__node *value,
                         void *into)
{
    char ***list = into;
    if (value->kind != HF__LIST) {
        hf__complain(reading, HF__RULE_WRONG_TYPE, value->at, "write it as [lock, global]",
                     "%s is %s, not a list", field->name, hf__node_kind_name(value));
        return;
    }
    *list = calloc(value->count + 1, sizeof **list);
    reading->no_memory = reading->no_memory || !*list;
    for (size_t i = 0, kept = 0; *list && i < value->count; i++)
        if (hf__read_text(reading, value->items[i], field->name, &(*list)[kept]))
            kept++;
}

static void read_min_fixed(hf__reading *reading, const hf__field *field, const hf__node *value,
                           void *into)
{
    (void)hf__read_integer(reading, value, field->name, 0, INT64_MAX, into);
}

static void read_max_risk(hf__reading *reading, const hf__field *field, const hf__node *value,
                          void *into)
{
    (void)hf__read_number(reading, value, field->name, 0, 1, into);
}

/*
 * The one convention that can be checked is "Operation:resource"; which words to use is up to the
 * team.
 */
static void read_label_convention(hf__reading *reading, const hf__field *field,
                                  const hf__node *value, void *into)
{
    hf__conventions *conventions = into;
    if (!hf__read_text(reading, value, field->name, &conventions->label))
        return;
    const char *colon = strchr(conventions->label, ':');
    conventions->operation_labels = colon && colon > conventions->label && colon[1] != '\0';
    if (!conventions->operation_labels)
        hf__complain(reading, HF__RULE_WRONG_VALUE, value->at, "write it as \"Operation:resource\"",
                     "the label convention has no part before a colon and one after it");
}

static const hf__field convention_fields[] = {
    {"label", read_label_convention, 0},
    {"min_fixed", read_min_fixed, offsetof(hf__conventions, min_fixed)},
    {"generic", read_generic, offsetof(hf__conventions, generic)},
    {"max_risk", read_max_risk, offsetof(hf__conventions, max_risk)},
    {0},
};

static void read_conventions(hf__reading *reading, const hf__field *field, const hf__node *value,
                             void *into)
{
    hf_registry *registry = into;
    registry->conventions.at = value->at;
    hf__read_mapping(reading, value, field->name, convention_fields, &registry->conventions);
}

static void read_strict(hf__reading *reading, const hf__field *field, const hf__node *value,
                        void *into)
{
    hf_registry *registry = into;
    bool strict = false;
    if (hf__read_boolean(reading, value, field->name, &strict))
        registry->strictness = strict ? HF_STRICT_ALL : HF_STRICT_NOBODY;
}

static const hf__field file_fields[] = {
    {"version", read_version, 0},         {"strict", read_strict, 0},     {"locks", read_locks, 0},
    {"conventions", read_conventions, 0}, {"wrappers", read_wrappers, 0}, {0},
};

static void complain_of_duplicates(hf__reading *reading)
{
    const hf_registry *registry = reading->registry;
    for (size_t i = 0; i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        if (!entry->view.name)
            continue;
        const hf__lock_entry *first =
            hf__registry_by_name(registry, entry->view.name, strlen(entry->view.name));
        if (first && first != entry)
            hf__complain(reading, HF__RULE_DUPLICATE_NAME, entry->name_at, "rename one of them",
                         "'%s' is the name of a lock in line %u too", entry->view.name,
                         first->name_at.line);
    }
}

static void read_root(hf__reading *reading, const hf__node *root)
{
    hf__read_mapping(reading, root, "the registry", file_fields, reading->registry);
    if (root->kind != HF__MAPPING)
        return;
    if (!hf__mapping_get(root, "version"))
        hf__complain(reading, HF__RULE_VERSION, root->at, "add version: 1",
                     "the file does not say its version");
    if (!hf__mapping_get(root, "locks"))
        hf__complain(reading, HF__RULE_MISSING_FIELD, root->at, "add locks: and a list",
                     "the file lists no locks");
    reading->no_memory = reading->no_memory || !hf__names_build(reading->registry);
    if (!reading->no_memory)
        complain_of_duplicates(reading);
}

hf_status hf__registry_examine_text(const char *path, const char *text, size_t size,
                                    hf_registry **out, hf__findings *findings, hf_error *err)
{
    hf__document document;
    hf__reading reading = {.path = path, .findings = findings};
    *out = NULL;
    hf_status status = hf__document_read(&document, path, text, size, findings, err);
    if (status == HF_OK && document.root) {
        reading.registry = calloc(1, sizeof *reading.registry);
        if (reading.registry)
            reading.registry->path = strdup(path);
        reading.no_memory = !reading.registry || !reading.registry->path;
        if (!reading.no_memory) {
            reading.registry->conventions.min_fixed = default_min_fixed;
            reading.registry->conventions.max_risk = HF__DEFAULT_MAX_RISK;
            read_root(&reading, document.root);
        }
    }
    hf__document_free(&document);
    hf__findings_sort(findings);
    if (status == HF_OK && (reading.no_memory || findings->broken))
        status = hf__no_memory(err);
    if (status != HF_OK) {
        hf_registry_free(reading.registry);
        reading.registry = NULL;
    }
    *out = reading.registry;
    return status;
}

hf_status hf__registry_examine(const char *path, hf_registry **registry, hf__findings *findings,
                               hf_error *err)
{
    hf__buf text = {0};
    *registry = NULL;
    hf_status status = hf__read_file(path, HF__FILE_MAX, &text, HF_CONFIG, err);
    if (status == HF_OK)
        status = hf__registry_examine_text(path, text.data ? text.data : "", text.length, registry,
                                           findings, err);
    hf__buf_free(&text);
    return status;
}

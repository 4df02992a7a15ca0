#include "programs/registry/import/names.h"

#include <ctype.h>
#include <inttypes.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { NAME_MAX_SIZE = 128, MADE_MAX_SIZE = 48 };

/* --- text as part of a name ----------------------------------------------------------------- */

/* Letters of every script are. Blanks, controls and marks of direction are not. */
static bool is_letter(int32_t point)
{
    if (point < 0x80)
        return point > 0 && isalnum(point);
    return point >= 0xC0 && point != 0xD7 && point != 0xF7 && (point < 0x2000 || point > 0x2BFF) &&
           (point < 0x3000 || point > 0x3004) && (point < 0xE000 || point > 0xFAFF) &&
           (point & 0xFFFE) != 0xFFFE && point != 0x061C && point != 0x1680 && point != 0xFEFF;
}

/* Before the capital that begins a word: "IdService", "HTTPServer". */
static bool is_hump(const char *text, size_t at, size_t size)
{
    unsigned char before = at > 0 ? (unsigned char)text[at - 1] : 0;
    unsigned char after = at + 1 < size ? (unsigned char)text[at + 1] : 0;

    return isupper((unsigned char)text[at]) &&
           (islower(before) || isdigit(before) || (isupper(before) && islower(after)));
}

/* Appends "idempotency-service" for "IdempotencyService": at most `most` bytes, cut at a word. */
static void put_slug(hf__buf *out, const char *text, size_t most)
{
    size_t size = strlen(text);
    size_t begin = out->length;
    size_t word = begin; /* where the last word begins, with its '-' */
    bool gap = false;

    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < 0 || !is_letter(point)) {
            gap = true;
            continue;
        }
        if (out->length > begin && (gap || is_hump(text, start, size))) {
            word = out->length;
            hf__buf_puts(out, "-");
        }
        gap = false;
        char small = (char)tolower((unsigned char)text[start]);
        hf__buf_add(out, point < 0x80 ? &small : text + start, at - start);
        if (out->length - begin > most) {
            size_t cut = word > begin ? word : begin;
            out->length = out->broken ? out->length : cut;
            break;
        }
    }
    if (out->data != NULL)
        out->data[out->length] = '\0';
}

static size_t last_small_word(const hf__buf *name)
{
    static const char *const words[] = {"-a",  "-an", "-the", "-of", "-to",  "-for",  "-and", "-or",
                                        "-in", "-on", "-at",  "-by", "-per", "-with", "-from"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t size = strlen(words[i]);
        if (name->length > size && strcmp(name->data + name->length - size, words[i]) == 0)
            return size;
    }
    return 0;
}

/* A name that was cut should not end in "-of-the". */
static void drop_last_small_words(hf__buf *name)
{
    for (size_t size = last_small_word(name); size > 0; size = last_small_word(name))
        name->data[name->length -= size] = '\0';
}

/* --- which names there are ------------------------------------------------------------------ */

struct name {
    char *text;
    unsigned uses; /* how often it was wanted, which is the last number behind it */
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* The name in the tree, put there if it is new; NULL without memory. */
static struct name *find_or_add(void **tree, const char *text)
{
    struct name *fresh = calloc(1, sizeof *fresh);

    if (fresh == NULL || (fresh->text = strdup(text)) == NULL) {
        free(fresh);
        return NULL;
    }
    struct name **found = tsearch(fresh, tree, compare_names);
    if (found == NULL || *found != fresh) {
        free(fresh->text);
        free(fresh);
    }
    return found != NULL ? *found : NULL;
}

static void free_name(void *node)
{
    struct name *name = node;

    free(name->text);
    free(name);
}

/* --- a name for every lock ------------------------------------------------------------------ */

static bool is_valid(const hf__buf *name)
{
    for (size_t i = 0; i < name->length; i++)
        if ((unsigned char)name->data[i] <= ' ' || name->data[i] == 0x7f ||
            strchr("={}", name->data[i]) != NULL)
            return false;
    return name->length > 0 && name->length <= NAME_MAX_SIZE && name->data[0] != '-';
}

static void make_name(hf__import_lock *lock, bool component_is_enough)
{
    hf__buf name = {0};

    if (lock->name.length > 0)
        put_slug(&name, lock->name.data, MADE_MAX_SIZE);
    if (name.length == 0 && lock->component.length > 0)
        put_slug(&name, lock->component.data, MADE_MAX_SIZE);
    if ((name.length == 0 || (lock->name.length == 0 && !component_is_enough)) &&
        lock->purpose.length > 0) {
        size_t left = MADE_MAX_SIZE - name.length;
        hf__buf_puts(&name, name.length > 0 ? "-" : "");
        put_slug(&name, lock->purpose.data, left);
        if (name.length > 0 && name.data[name.length - 1] == '-')
            name.data[--name.length] = '\0';
        drop_last_small_words(&name);
    }
    if (name.length == 0 && lock->pattern.length > 0)
        put_slug(&name, lock->pattern.data, MADE_MAX_SIZE);
    if (name.length == 0 && lock->kind == HF__IMPORT_PAIR)
        hf__buf_printf(&name, "lock-%" PRId32 "-%" PRId32, lock->pair[0], lock->pair[1]);
    else if (name.length == 0)
        hf__buf_printf(&name, lock->key < 0 ? "lock-minus%" PRId64 : "lock-%" PRId64, lock->key);
    hf__buf_free(&lock->name);
    lock->name = name;
}

static bool make_unique(void **tree, hf__import_lock *lock)
{
    struct name *name = find_or_add(tree, lock->name.data);
    hf__buf numbered = {0};

    if (name == NULL)
        return false;
    if (name->uses == 0) {
        name->uses = 1;
        return true;
    }
    if (lock->name_is_final)
        hf__import_lock_doubt(lock, "the name stands in another row too, so a number was added");
    for (;;) {
        hf__buf_clear(&numbered);
        hf__buf_printf(&numbered, "%.*s-%u", NAME_MAX_SIZE - 12, lock->name.data, ++name->uses);
        struct name *other = numbered.broken ? NULL : find_or_add(tree, numbered.data);
        if (other == NULL) {
            hf__buf_free(&numbered);
            return false;
        }
        if (other->uses == 0) {
            other->uses = 1;
            break;
        }
    }
    hf__buf_free(&lock->name);
    lock->name = numbered;
    return true;
}

/* How many locks without a name each component has, by its slug. */
static bool count_components(void **tree, const hf__import_lock *locks, size_t count)
{
    bool ok = true;

    for (size_t i = 0; ok && i < count; i++) {
        hf__buf slug = {0};
        if (locks[i].name.length > 0 || locks[i].component.length == 0)
            continue;
        put_slug(&slug, locks[i].component.data, MADE_MAX_SIZE);
        struct name *name = slug.data != NULL ? find_or_add(tree, slug.data) : NULL;
        ok = name != NULL || slug.length == 0;
        if (name != NULL)
            name->uses++;
        hf__buf_free(&slug);
    }
    return ok;
}

static bool is_only_one(void **components, const hf__import_lock *lock)
{
    hf__buf slug = {0};
    bool only = false;

    if (lock->component.length > 0)
        put_slug(&slug, lock->component.data, MADE_MAX_SIZE);
    if (slug.length > 0) {
        struct name wanted = {.text = slug.data};
        struct name **found = tfind(&wanted, components, compare_names);
        only = found != NULL && (*found)->uses == 1;
    }
    hf__buf_free(&slug);
    return only;
}

/* Names from the table first: a name that is made up must differ from them. */
bool hf__name_all(hf__import_lock *locks, size_t count)
{
    void *components = NULL;
    void *names = NULL;
    bool ok = count_components(&components, locks, count);

    for (size_t i = 0; ok && i < count; i++) {
        locks[i].name_is_final = locks[i].name_is_final && is_valid(&locks[i].name);
        if (locks[i].name_is_final)
            ok = make_unique(&names, &locks[i]);
    }
    for (size_t i = 0; ok && i < count; i++) {
        if (locks[i].name_is_final)
            continue;
        make_name(&locks[i], is_only_one(&components, &locks[i]));
        ok = !locks[i].name.broken && make_unique(&names, &locks[i]);
    }
    tdestroy(components, free_name);
    tdestroy(names, free_name);
    return ok;
}

#include "programs/registry/import/names.h"

#include <ctype.h>
#include <inttypes.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { NAME_MAX_SIZE = 128, MADE_MAX_SIZE = 48 };

/* --- slugs ---------------------------------------------------------------------------------------- */

/* Letters of other scripts stay; blanks, controls and marks of direction beyond ASCII go. */
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

void hf__slug(hf__buf *out, const char *text, size_t most)
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

/* --- the set of names ----------------------------------------------------------------------------- */

struct name {
    char *text;
    unsigned uses; /* how often it was asked for; the last number that was put behind it */
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

/* --- names for locks ------------------------------------------------------------------------------ */

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
        hf__slug(&name, lock->name.data, MADE_MAX_SIZE);
    if (name.length == 0 && lock->component.length > 0)
        hf__slug(&name, lock->component.data, MADE_MAX_SIZE);
    if ((name.length == 0 || (lock->name.length == 0 && !component_is_enough)) &&
        lock->purpose.length > 0) {
        size_t left = MADE_MAX_SIZE - name.length;
        hf__buf_puts(&name, name.length > 0 ? "-" : "");
        hf__slug(&name, lock->purpose.data, left);
        if (name.length > 0 && name.data[name.length - 1] == '-')
            name.data[--name.length] = '\0';
        drop_last_small_words(&name);
    }
    if (name.length == 0 && lock->pattern.length > 0)
        hf__slug(&name, lock->pattern.data, MADE_MAX_SIZE);
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
        hf__slug(&slug, locks[i].component.data, MADE_MAX_SIZE);
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
        hf__slug(&slug, lock->component.data, MADE_MAX_SIZE);
    if (slug.length > 0) {
        struct name wanted = {.text = slug.data};
        struct name **found = tfind(&wanted, components, compare_names);
        only = found != NULL && (*found)->uses == 1;
    }
    hf__buf_free(&slug);
    return only;
}

/* Names that were given come first: a made one makes way. */
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

/* --- import yaml ------------------------------------------------------------------------------ */

/* Words that some version of YAML takes for something else than text. */
static bool is_reserved(const char *text, size_t size)
{
    static const char *const words[] = {"yes",   "no",   "on", "off", "true",
                                        "false", "null", "y",  "n"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == size && strncasecmp(words[i], text, size) == 0)
            return true;
    return false;
}

static bool can_be_plain(const char *text, size_t size)
{
    if (size == 0 || !isascii(text[0]) || !isalpha((unsigned char)text[0]) ||
        text[size - 1] == ' ' || is_reserved(text, size))
        return false;
    for (size_t i = 1; i < size; i++)
        if (!isascii(text[i]) || (!isalnum((unsigned char)text[i]) && !strchr(" _./-", text[i])))
            return false;
    return true;
}

/* What YAML does not allow as it is, and what would hide or turn text in an editor. */
static bool must_be_escaped(int32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0xAD || point == 0x061C ||
           (point >= 0x200B && point <= 0x200F) || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF || (point & 0xFFFE) == 0xFFFE;
}

static void put_escaped(hf__buf *out, int32_t point)
{
    if (point == '\n')
        hf__buf_puts(out, "\\n");
    else if (point == '\t')
        hf__buf_puts(out, "\\t");
    else if (point <= 0xFF)
        hf__buf_printf(out, "\\x%02X", (unsigned)point);
    else if (point <= 0xFFFF)
        hf__buf_printf(out, "\\u%04X", (unsigned)point);
    else
        hf__buf_printf(out, "\\U%08X", (unsigned)point);
}

void hf__yaml_text(hf__buf *out, const char *text, size_t size)
{
    if (can_be_plain(text, size)) {
        hf__buf_add(out, text, size);
        return;
    }
    hf__buf_puts(out, "\"");
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < 0)
            put_escaped(out, 0xFFFD);
        else if (must_be_escaped(point))
            put_escaped(out, point);
        else if (point == '"' || point == '\\')
            hf__buf_printf(out, "\\%c", (char)point);
        else
            hf__buf_add(out, text + start, at - start);
    }
    hf__buf_puts(out, "\"");
}

void hf__yaml_comment_text(hf__buf *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < 0 || must_be_escaped(point))
            hf__buf_puts(out, " ");
        else
            hf__buf_add(out, text + start, at - start);
    }
}

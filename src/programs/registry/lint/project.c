#include "programs/registry/lint/project.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/vec.h"

/* A hostile tree must not make us look for every word there is. */
enum {
    WRAPPERS_MAX = 300,
    WANTED_MAX = 600,
    WANTED_FAR = 60,
    DEFINITIONS_MAX = 2000,
    NAME_SIZE_MAX = 100,
    FAR = 100
};

/* ---- Values ---------------------------------------------------------------------------------- */

void hf__value_free(hf__worth *value)
{
    for (hf__worth *item = value->also, *next; item != NULL; item = next) {
        next = item->also;
        hf__buf_free(&item->text);
        free(item);
    }
    hf__buf_free(&value->text);
    *value = (hf__worth){0};
}

bool hf__value_copy(hf__worth *to, const hf__worth *from)
{
    bool good = true;

    *to = (hf__worth){0};
    for (const hf__worth *item = from; good && item != NULL; item = item->also) {
        hf__worth *copy = item == from ? to : calloc(1, sizeof *copy);
        hf__worth **end = &to->also;
        while (copy != NULL && copy != to && *end != NULL)
            end = &(*end)->also;
        good = copy != NULL;
        if (!good)
            break;
        *copy = *item;
        copy->also = NULL;
        copy->text = (hf__buf){0};
        hf__buf_add(&copy->text, item->text.data, item->text.length);
        good = !copy->text.broken;
        if (copy != to)
            *end = copy;
    }
    return good;
}

static bool is_same(const hf__worth *a, const hf__worth *b)
{
    return a->kind == b->kind && a->number == b->number && a->derivation == b->derivation &&
           a->derivation_known == b->derivation_known && a->text.length == b->text.length &&
           strcmp(a->field, b->field) == 0 && strcmp(a->lookup, b->lookup) == 0 &&
           strcmp(a->otherwise, b->otherwise) == 0 && a->each == b->each &&
           (a->text.length == 0 || memcmp(a->text.data, b->text.data, a->text.length) == 0);
}

bool hf__value_equals(const hf__worth *a, const hf__worth *b)
{
    while (a != NULL && b != NULL && is_same(a, b)) {
        a = a->also;
        b = b->also;
    }
    return a == NULL && b == NULL;
}

size_t hf__value_count(const hf__worth *value)
{
    size_t count = 0;

    for (; value != NULL; value = value->also)
        count++;
    return count;
}

static bool has_param(const hf__worth *value)
{
    return value->text.length > 0 &&
           memchr(value->text.data, HF__LABEL_PARAM, value->text.length) != NULL;
}

static void join_one(hf__worth *value, hf__worth *other)
{
    hf__worth *last = value;

    for (hf__worth *item = value; item != NULL; item = item->also) {
        if (is_same(item, other)) {
            hf__value_free(other);
            return;
        }
        last = item;
    }
    hf__worth *made = calloc(1, sizeof *made);
    if (made == NULL) {
        hf__buf_free(&other->text);
        value->text.broken = true; /* whoever reads it sees that there was no memory */
        return;
    }
    *made = *other;
    if (value->kind == HF__VALUE_UNKNOWN || (has_param(made) && !has_param(value))) {
        hf__worth first = *value; /* what callers decide comes first, and what is known then */
        *value = *made;
        *made = first;
        value->also = made;
        return;
    }
    last->also = made;
}

void hf__value_join(hf__worth *value, hf__worth *other)
{
    hf__worth *rest = other->also;

    other->also = NULL;
    join_one(value, other);
    *other = (hf__worth){0};
    while (rest != NULL) {
        hf__worth *next = rest->also;
        rest->also = NULL;
        join_one(value, rest);
        free(rest);
        rest = next;
    }
}

bool hf__value_has_params(const hf__worth *value)
{
    while (value != NULL && !has_param(value))
        value = value->also;
    return value != NULL;
}

int hf__value_param(const hf__worth *value)
{
    return value->kind == HF__VALUE_TEXT && value->text.length == 2 &&
                   value->text.data[0] == HF__LABEL_PARAM && value->also == NULL
               ? value->text.data[1] - '0'
               : -1;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static size_t folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (size_t)(slash - path) : 0;
}

static bool share_folder(const char *a, const char *b)
{
    size_t size = folder_size(a);

    return size == folder_size(b) && memcmp(a, b, size) == 0;
}

/* tests/x.py, x_test.go, x.spec.ts: a folder or a part of the name says so. */
static bool is_test(const char *path)
{
    static const char *const words[] = {"test", "tests", "spec", "specs", "testing", NULL};

    for (size_t size; *path != '\0'; path += size + (path[size] != '\0')) {
        size = strcspn(path, "/._-");
        for (const char *const *word = words; *word != NULL; word++)
            if (strlen(*word) == size && strncasecmp(*word, path, size) == 0)
                return true;
    }
    return false;
}

/* ---- Wrappers -------------------------------------------------------------------------------- */

static bool is_named(const char *name, const char *text, size_t size)
{
    return strlen(name) == size && memcmp(name, text, size) == 0;
}

/* How many folders two paths have in common, from the first on. */
static int shared_folders(const char *a, const char *b)
{
    int count = 0;

    for (; *a != '\0' && *a == *b; a++, b++)
        count += *a == '/';
    return count < FAR ? count : FAR - 1;
}

/* How near a wrapper is to a file that calls one of its name. */
static int rank_of(const hf__wrapper *wrapper, const char *path, bool others_first)
{
    return wrapper->declared                   ? FAR + 3
           : strcmp(wrapper->file, path) == 0  ? (others_first ? -1 : FAR + 2)
           : share_folder(wrapper->file, path) ? FAR + 1
                                               : shared_folders(wrapper->file, path);
}

bool hf__project_is_ambiguous(const hf__project *project, const hf__wrapper *wrapper,
                              const char *path)
{
    for (size_t i = 0; i < project->wrapper_count; i++) {
        const hf__wrapper *item = &project->wrappers[i];
        if (item != wrapper && (item->languages & wrapper->languages) != 0 &&
            strcmp(item->name, wrapper->name) == 0 &&
            rank_of(item, path, false) == rank_of(wrapper, path, false) &&
            (item->settled || item->pair != wrapper->pair ||
             !hf__value_equals(&item->key[0], &wrapper->key[0]) ||
             !hf__value_equals(&item->key[1], &wrapper->key[1])))
            return true;
    }
    return false;
}

hf__wrapper *hf__project_wrapper(hf__project *project, const char *name, size_t size,
                                 unsigned language, const char *path, bool others_first)
{
    hf__wrapper *best = NULL;
    int best_rank = -2;

    for (size_t i = 0; i < project->wrapper_count; i++) {
        hf__wrapper *wrapper = &project->wrappers[i];
        if ((wrapper->languages & language) == 0 || !is_named(wrapper->name, name, size))
            continue;
        int rank = rank_of(wrapper, path, others_first);
        if (rank > best_rank) {
            best = wrapper;
            best_rank = rank;
        }
    }
    return best;
}

hf__wrapper *hf__project_method(hf__project *project, const char *name, size_t size,
                                const char *owner, size_t owner_size)
{
    hf__wrapper *found = NULL;

    for (size_t i = 0; i < project->wrapper_count && owner_size > 0; i++) {
        hf__wrapper *wrapper = &project->wrappers[i];
        if (!is_named(wrapper->name, name, size) || wrapper->owner == NULL ||
            !is_named(wrapper->owner, owner, owner_size))
            continue;
        if (found != NULL)
            return NULL;
        found = wrapper;
    }
    return found;
}

void hf__project_count_call(hf__project *project, const hf__wrapper *wrapper, bool unresolved)
{
    for (size_t i = 0; i < project->wrapper_count; i++) {
        hf__wrapper *item = &project->wrappers[i];
        if ((item->languages & wrapper->languages) == 0 || strcmp(item->name, wrapper->name) != 0)
            continue;
        item->calls++;
        item->unresolved += unresolved;
        if (item->also != NULL) {
            item->also->calls++;
            item->also->unresolved += unresolved;
        }
    }
}

static void free_wrapper(hf__wrapper *wrapper)
{
    free(wrapper->name);
    free(wrapper->file);
    free(wrapper->owner);
    free(wrapper->params);
    hf__value_free(&wrapper->key[0]);
    hf__value_free(&wrapper->key[1]);
}

bool hf__project_add_wrapper(hf__project *project, hf__wrapper *wrapper)
{
    bool good = wrapper->name != NULL && wrapper->file != NULL && !wrapper->key[0].text.broken &&
                !wrapper->key[1].text.broken;
    const hf__wrapper *same =
        good ? hf__project_wrapper(project, wrapper->name, strlen(wrapper->name),
                                   wrapper->languages, wrapper->file, false)
             : NULL;

    if (good && project->wrapper_count < WRAPPERS_MAX &&
        (same == NULL || (!same->declared && strcmp(same->file, wrapper->file) != 0)) &&
        hf__grow(&project->wrappers, &project->wrapper_room, WRAPPERS_MAX, /* they never move */
                 sizeof *project->wrappers)) {
        project->wrappers[project->wrapper_count++] = *wrapper;
        project->grown = true;
        return true;
    }
    project->broken = project->broken || !good;
    free_wrapper(wrapper);
    return false;
}

/* ---- Definitions ----------------------------------------------------------------------------- */

static bool defines(const hf__definition *definition, const char *name, size_t size, bool function)
{
    return definition->function == function && is_named(definition->name, name, size);
}

const hf__definition *hf__project_find(const hf__project *project, const char *path,
                                       const char *name, size_t size, bool function,
                                       bool folder_only)
{
    const hf__definition *found = NULL;
    int nearest = -1;
    bool agree = true;

    for (size_t i = 0; i < project->definition_count; i++) {
        const hf__definition *item = &project->definitions[i];
        int near = share_folder(item->file, path) ? FAR : shared_folders(item->file, path);
        if (!defines(item, name, size, function) || (is_test(item->file) && !is_test(path)) ||
            near < nearest)
            continue;
        if (near > nearest) {
            found = NULL;
            agree = true;
        }
        nearest = near;
        agree = agree && item->value.kind != HF__VALUE_UNKNOWN &&
                (found == NULL || hf__value_equals(&found->value, &item->value));
        found = item;
    }
    return agree && (nearest == FAR || !folder_only) ? found : NULL;
}

void hf__project_find_all(hf__project *project, const char *path, const char *name, size_t size,
                          hf__worth *value)
{
    size_t count = 0;

    for (size_t i = 0; i < project->definition_count; i++) {
        const hf__definition *item = &project->definitions[i];
        hf__worth copy = {0};
        if (!defines(item, name, size, true) || (is_test(item->file) && !is_test(path)) ||
            item->value.kind == HF__VALUE_UNKNOWN || hf__value_has_params(&item->value))
            continue;
        project->broken = !hf__value_copy(&copy, &item->value) || project->broken;
        if (count++ == 0)
            *value = copy;
        else
            hf__value_join(value, &copy);
    }
    if (hf__value_count(value) > HF__VALUES_MAX)
        hf__value_free(value);
}

static void free_definition(hf__definition *definition)
{
    free(definition->name);
    free(definition->file);
    free(definition->params);
    hf__value_free(&definition->value);
}

void hf__project_define(hf__project *project, const char *path, const char *name, bool function,
                        const char *params, const hf__worth *value)
{
    hf__definition made = {.function = function};

    for (size_t i = 0; i < project->definition_count; i++) {
        hf__definition *known = &project->definitions[i];
        if (!defines(known, name, strlen(name), function) || strcmp(known->file, path) != 0)
            continue;
        if (hf__value_equals(&known->value, value))
            return;
        hf__value_free(&known->value); /* a later round knows more of the same file */
        project->broken = !hf__value_copy(&known->value, value) || project->broken;
        project->grown = true;
        return;
    }
    if (project->definition_count == DEFINITIONS_MAX)
        return;
    made.name = strdup(name);
    made.file = strdup(path);
    made.params = params != NULL ? strdup(params) : NULL;
    if (made.name == NULL || made.file == NULL || (params != NULL && made.params == NULL) ||
        !hf__value_copy(&made.value, value) ||
        !hf__grow(&project->definitions, &project->definition_room, project->definition_count + 1,
                  sizeof *project->definitions)) {
        free_definition(&made);
        project->broken = true;
        return;
    }
    project->definitions[project->definition_count++] = made;
    project->grown = true;
}

/* ---- Wanted names ---------------------------------------------------------------------------- */

static bool is_wanted(const hf__project *project, const char *name, size_t size)
{
    for (size_t i = 0; i < project->wanted_count; i++)
        if (is_named(project->wanted[i], name, size))
            return true;
    return false;
}

void hf__project_want(hf__project *project, const char *name, size_t size)
{
    char *copy;

    if (size < 3 || size > NAME_SIZE_MAX ||
        project->wanted_count >= (project->defining ? WANTED_FAR : WANTED_MAX) ||
        is_wanted(project, name, size))
        return;
    copy = strndup(name, size);
    if (copy == NULL || !hf__grow(&project->wanted, &project->wanted_room,
                                  project->wanted_count + 1, sizeof(char *))) {
        free(copy);
        project->broken = true;
        return;
    }
    project->wanted[project->wanted_count++] = copy;
    project->grown = true;
}

/* ---- The expression that finds them ---------------------------------------------------------- */

static void add_name(hf__buf *pattern, const char *name)
{
    for (const char *at = name; *at != '\0'; at++) /* Locks.REPORT: without its owner */
        if (*at == '.')
            name = at + 1;
    hf__buf_puts(pattern, pattern->length == 0 ? "(?<!\\w)(?:" : "|");
    for (; *name != '\0'; name++) {
        if (!isalnum((unsigned char)*name) && *name != '_')
            hf__buf_puts(pattern, "\\");
        hf__buf_add(pattern, name, 1);
    }
}

hf_status hf__project_compile(hf__project *project, hf_error *err)
{
    hf__buf pattern = {0};
    hf_status status = HF_OK;

    project->grown = false;
    hf__pcre_free(project->names);
    project->names = NULL;
    for (size_t i = 0; i < project->wrapper_count; i++)
        add_name(&pattern, project->wrappers[i].name);
    for (size_t i = 0; i < project->wanted_count; i++)
        add_name(&pattern, project->wanted[i]);
    if (pattern.length > 0)
        hf__buf_puts(&pattern, ")(?!\\w)");
    if (pattern.broken || project->broken)
        status = hf__no_memory(err);
    else if (pattern.length > 0)
        status = hf__pcre_compile_exact(pattern.data, &project->names, err);
    hf__buf_free(&pattern);
    return status;
}

void hf__project_free(hf__project *project)
{
    for (size_t i = 0; i < project->wrapper_count; i++)
        free_wrapper(&project->wrappers[i]);
    for (size_t i = 0; i < project->definition_count; i++)
        free_definition(&project->definitions[i]);
    for (size_t i = 0; i < project->wanted_count; i++)
        free(project->wanted[i]);
    free(project->wrappers);
    free(project->definitions);
    free(project->wanted);
    hf__pcre_free(project->names);
    *project = (hf__project){0};
}

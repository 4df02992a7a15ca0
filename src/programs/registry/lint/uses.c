#include "programs/registry/lint/uses.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"
#include "programs/registry/lint/own_calls.h"
#include "programs/registry/lint/wrappers.h"

enum { USES_MAX = 5000 };

/* A file without any of these has no use, and needs no closer look. */
#define PREFILTER "advisory|holdfast|hf_label|hf_key|pglock"

enum { KINDS = HF__USE_KINDS };

struct hf__use_finder {
    hf__pcre *prefilter;
    hf__pcre *own;    /* what every file with Holdfast has */
    hf__pcre *import; /* of its bindings */
    hf__pcre *kinds[KINDS];
    hf__pcre *transaction_if[KINDS];
    hf__pcre *value_patterns[HF__VALUE_PATTERNS];
    hf__pcre *assignment_patterns[HF__ASSIGNMENT_PATTERNS];
};

/* ---- The finder ------------------------------------------------------------------------------ */

static hf_status compile_all(hf__use_finder *finder, hf_error *err)
{
    hf_status status = hf__pcre_compile(PREFILTER, &finder->prefilter, err);

    if (status == HF_OK)
        status = hf__pcre_compile("holdfast|hf_", &finder->own, err);
    if (status == HF_OK)
        status = hf__pcre_compile(hf__own_import, &finder->import, err);
    for (size_t i = 0; status == HF_OK && i < KINDS; i++) {
        status = hf__pcre_compile(hf__use_kinds[i].regex, &finder->kinds[i], err);
        if (status == HF_OK && hf__use_kinds[i].transaction_if != NULL)
            status =
                hf__pcre_compile(hf__use_kinds[i].transaction_if, &finder->transaction_if[i], err);
    }
    for (size_t i = 0; status == HF_OK && i < HF__VALUE_PATTERNS; i++)
        status = hf__pcre_compile(hf__value_patterns[i], &finder->value_patterns[i], err);
    for (size_t i = 0; status == HF_OK && i < HF__ASSIGNMENT_PATTERNS; i++)
        status = hf__pcre_compile(hf__assignment_patterns[i], &finder->assignment_patterns[i], err);
    return status;
}

hf_status hf__use_finder_new(hf__use_finder **finder, hf_error *err)
{
    hf__use_finder *made = calloc(1, sizeof *made);
    hf_status status;

    if (made == NULL)
        return hf__no_memory(err);
    status = compile_all(made, err);
    if (status == HF_OK)
        *finder = made;
    else
        hf__use_finder_free(made);
    return status;
}

void hf__use_finder_free(hf__use_finder *finder)
{
    if (finder == NULL)
        return;
    hf__pcre_free(finder->prefilter);
    hf__pcre_free(finder->own);
    hf__pcre_free(finder->import);
    for (size_t i = 0; i < KINDS; i++) {
        hf__pcre_free(finder->kinds[i]);
        hf__pcre_free(finder->transaction_if[i]);
    }
    for (size_t i = 0; i < HF__VALUE_PATTERNS; i++)
        hf__pcre_free(finder->value_patterns[i]);
    for (size_t i = 0; i < HF__ASSIGNMENT_PATTERNS; i++)
        hf__pcre_free(finder->assignment_patterns[i]);
    free(finder);
}

void hf__use_finder_limit(hf__use_finder *finder, uint32_t match_limit)
{
    for (size_t i = 0; i < KINDS; i++)
        hf__pcre_limit(finder->kinds[i], match_limit);
}

hf__pcre_found hf__use_finder_may_use(hf__use_finder *finder, const char *text, size_t size)
{
    hf__pcre_match match;

    return hf__pcre_find(finder->prefilter, text, size, 0, &match);
}

/* ---- SQL, or prose about it? ----------------------------------------------------------------- */

static bool is_sql_word(const char *word, size_t size)
{
    static const char *const words[] = {
        "select", "perform",   "and",   "or",      "not",   "where",    "when",
        "then",   "else",      "if",    "elsif",   "while", "distinct", "all",
        "return", "returning", "call",  "execute", "on",    "by",       "values",
        "is",     "having",    "case",  "from",    "join",  "union",    "in",
        "set",    "begin",     "do",    "exists",  "query", "lateral",  "as",
        "into",   "end",       "limit", "order",   "group", "until",
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == size && strncasecmp(words[i], word, size) == 0)
            return true;
    return false;
}

/* "failed to pg_advisory_lock(42)" is prose. In SQL the word before a call is a keyword. */
static bool follows_sql(const hf__unit *unit, size_t at)
{
    size_t end = at;

    while (end > 0 && hf__unit_is_sql(unit, end - 1) && isspace((unsigned char)unit->text[end - 1]))
        end--;
    if (end == 0 || !hf__unit_is_sql(unit, end - 1))
        return true;
    if (end >= 2 && unit->text[end - 2] == '\\' && strchr("ntr", unit->text[end - 1]) != NULL)
        return true;

    size_t start = end;
    while (start > 0 &&
           (isalnum((unsigned char)unit->text[start - 1]) || unit->text[start - 1] == '_'))
        start--;
    if (start == end)
        return strchr("(,=;:>|+\"'[{}.", unit->text[end - 1]) != NULL;
    return is_sql_word(unit->text + start, end - start);
}

/* "pg_advisory_unlock_all() releases…" is prose too: a plain word follows the call. */
static bool continues_as_prose(const hf__unit *unit, const hf__use *use)
{
    size_t at = use->end;
    size_t size = 0;

    if (!use->in_text || (use->start > 0 && unit->classes[use->start] == HF__TEXT &&
                          unit->classes[use->start - 1] == HF__TEXT))
        return false;
    while (at < unit->size && unit->classes[at] == HF__TEXT && unit->text[at] == ' ')
        at++;
    while (at + size < unit->size && unit->classes[at + size] == HF__TEXT &&
           isalpha((unsigned char)unit->text[at + size]))
        size++;
    return at > use->end && size > 0 && !is_sql_word(unit->text + at, size);
}

/* ---- Finding uses ---------------------------------------------------------------------------- */

struct search {
    hf__use_finder *finder;
    const hf__unit *unit;
    const hf__scope *scope;
    hf__uses *uses;
    bool names_holdfast; /* in any way, also in SQL */
    bool loads_holdfast;
    hf_error *err;
};

/* Where the function's name begins: quotes and a schema may come before it. */
static size_t place_of(const hf__pcre *regex, const hf__pcre_match *match)
{
    unsigned name = hf__pcre_group(regex, "name");

    return match->start[hf__pcre_match_has(match, name) ? name : 0];
}

static bool stands_where_it_may(const hf__unit *unit, const hf__use_kind *kind,
                                const hf__pcre_match *match, size_t at)
{
    if (kind->in_code)
        return unit->classes[at] == HF__CODE;
    return hf__unit_is_sql(unit, at) && follows_sql(unit, match->start[0]);
}

static void describe(struct search *search, size_t index, const hf__pcre_match *match, hf__use *use)
{
    const hf__pcre *regex = search->finder->kinds[index];

    use->kind = &hf__use_kinds[index];
    use->start = match->start[0];
    use->at = place_of(regex, match);
    use->args = match->end[0];
    use->block = hf__unit_block(search->unit, use->at);
    use->in_text = search->unit->classes[use->at] == HF__TEXT;
    use->unlocks = hf__pcre_match_has(match, hf__pcre_group(regex, "unlock"));
    use->unlocks_all = hf__pcre_match_has(match, hf__pcre_group(regex, "all"));
    use->tries = hf__pcre_match_has(match, hf__pcre_group(regex, "try"));
    use->shared = hf__pcre_match_has(match, hf__pcre_group(regex, "shared"));
    use->lifetime =
        hf__pcre_match_has(match, hf__pcre_group(regex, "xact")) ? HF_TRANSACTION : HF_SESSION;
    use->lifetime_known = !hf__use_kinds[index].lifetime_unknown;
    use->labels = hf__use_kinds[index].labels;
    use->key.block = HF__NO_BLOCK;
}

/* How the library hashes the label, where the arguments do not say. */
static void note_derivation(const hf__use_kind *kind, hf__lock_key *key)
{
    bool distributed = strncmp(kind->name, "DistributedLock", 15) == 0;
    const char *name =
        distributed && !key->has_holes
            ? (key->label_size > 9 ? "distributedlock-hash" : "distributedlock-ascii")
            : kind->derivation;

    if (key->kind != HF__KEY_LABEL || key->derivation_known || name == NULL)
        return;
    key->hashed_otherwise = name[0] == '\0';
    key->derivation_known =
        name[0] != '\0' && hf_derivation_parse(name, &key->derivation, NULL) == HF_OK;
}

static hf_status read_key(struct search *search, size_t index, hf__use *use)
{
    const hf__unit *unit = search->unit;
    hf__scope scope = *search->scope;
    hf__pcre *transaction_if = search->finder->transaction_if[index];
    hf__args args;
    hf__pcre_match match;
    hf_status status = HF_OK;

    hf__args_read(unit, use->args, &args);
    use->end = args.end;
    scope.at = use->at;
    scope.code = use->kind->in_code;
    if (use->in_text)
        scope.string_end = hf__unit_run_end(unit, args.complete ? args.end - 1 : use->at);
    if (transaction_if != NULL && args.text.data != NULL &&
        hf__pcre_find(transaction_if, args.text.data, args.text.length, 0, &match) ==
            HF__PCRE_FOUND)
        use->lifetime = HF_TRANSACTION;
    if (!use->unlocks_all)
        status = hf__lock_key_read(&scope, &args, use->kind->argument, use->kind->params,
                                   use->kind->labels, use->kind->pairs || !use->kind->labels,
                                   &use->key, search->err);
    note_derivation(use->kind, &use->key);
    hf__args_free(&args);
    return status;
}

/* Reads the key from SQL that the file makes with the name of the function. */
static hf_status read_made(struct search *search, size_t call, hf__use *use)
{
    hf__scope scope = *search->scope;
    hf__args args;

    hf__args_read(search->unit, call, &args);
    scope.at = call;
    scope.code = false;
    scope.string_end = hf__unit_run_end(search->unit, args.complete ? args.end - 1 : call);
    hf_status status =
        hf__lock_key_read(&scope, &args, 0, NULL, false, true, &use->key, search->err);
    hf__args_free(&args);
    return status;
}

/*
 * The SQL around such a name is made elsewhere. Where that is not in the file, that a lock is taken
 * is all that is known. *known: it is an argument of a call that is listed.
 */
static hf_status read_bare(struct search *search, hf__use *use, bool *known)
{
    const hf__uses *uses = search->uses;

    *known = false;
    for (size_t i = 0; i < uses->count; i++)
        *known = *known || (use->at >= uses->items[i].start && use->at < uses->items[i].end);
    use->end = use->args;
    if (*known)
        return HF_OK;
    size_t call = hf__bare_name_call(search->unit, use->at);
    if (call > 0)
        return read_made(search, call, use);
    use->key =
        (hf__lock_key){.why = "the SQL with this name is made elsewhere", .block = HF__NO_BLOCK};
    return HF_OK;
}

/* Makes the key of two of the values that the arguments may have. */
static hf_status make_another(const hf__use *use, const hf__worth *a, const hf__worth *b,
                              hf__lock_key *key, hf_error *err)
{
    hf__worth values[2] = {{0}};
    hf__worth alone[2] = {*a, *b};
    bool good = true;

    for (size_t i = 0; i < 2; i++) {
        alone[i].also = NULL;
        good = hf__value_copy(&values[i], &alone[i]) && good;
    }
    bool asks = hf__value_has_params(&values[0]) || hf__value_has_params(&values[1]);
    hf_status status = hf__lock_key_make(values, use->key.is_pair, use->labels,
                                         asks ? use->key.block : HF__NO_BLOCK, key, err);
    note_derivation(use->kind, key);
    if (key->kind == HF__KEY_UNKNOWN && !asks)
        key->why = "it may be another key, which is computed when the program runs";
    return status == HF_OK && !good ? hf__no_memory(err) : status;
}

hf_status hf__uses_add(hf__uses *uses, hf__use *use, hf_error *err)
{
    size_t count = hf__value_count(&use->key.values[0]) * hf__value_count(&use->key.values[1]);
    hf_status status = HF_OK;

    if (!hf__grow(&uses->items, &uses->capacity, uses->count + count, sizeof *uses->items)) {
        hf__lock_key_free(&use->key);
        return hf__no_memory(err);
    }
    const hf__use *first = &uses->items[uses->count]; /* there is room: it does not move */
    uses->items[uses->count++] = *use;
    for (const hf__worth *a = &first->key.values[0]; a != NULL; a = a->also) {
        for (const hf__worth *b = &first->key.values[1]; b != NULL; b = b->also) {
            hf__use other = *first;
            if (status != HF_OK || (a == &first->key.values[0] && b == &first->key.values[1]))
                continue;
            other.again = true;
            status = make_another(first, a, b, &other.key, err);
            if (other.key.kind == HF__KEY_UNKNOWN && first->key.kind == HF__KEY_UNKNOWN)
                hf__lock_key_free(&other.key); /* it is said already */
            else
                uses->items[uses->count++] = other;
        }
    }
    return status;
}

/* One use for each lock that the call takes. */
static hf_status add_own(struct search *search, hf__use *use)
{
    hf__scope scope = *search->scope;
    hf__lock_key keys[HF__PIECES_MAX];
    hf__args args;
    size_t count = 0;

    hf__args_read(search->unit, use->args, &args);
    use->end = args.end;
    scope.at = use->at;
    scope.code = use->kind->in_code;
    if (use->in_text)
        scope.string_end = hf__unit_run_end(search->unit, args.complete ? args.end - 1 : use->at);
    hf_status status = hf__own_keys_read(&scope, use->kind, &args, keys, &count, search->err);
    hf__args_free(&args);
    for (size_t i = 0; i < count; i++) {
        use->key = keys[i];
        if (status == HF_OK)
            status = hf__uses_add(search->uses, use, search->err);
        else
            hf__lock_key_free(&keys[i]);
    }
    return status;
}

static bool is_of_project(const struct search *search, const hf__use *use)
{
    const hf__unit *unit = search->unit;
    size_t size = 0;

    while (isalnum((unsigned char)unit->text[use->at + size]) || unit->text[use->at + size] == '_')
        size++;
    return hf__project_wrapper(search->scope->project, unit->text + use->at, size,
                               (unsigned)unit->syntax->id, unit->path, false) != NULL;
}

static hf_status add_use(struct search *search, size_t index, const hf__pcre_match *match)
{
    hf__use use = {0};
    bool bare = hf__use_kinds[index].bare;
    bool known = false;

    describe(search, index, match, &use);
    if (hf__use_kinds[index].in_doubt && is_of_project(search, &use))
        return HF_OK;
    if (hf__use_kinds[index].ours)
        return add_own(search, &use);
    hf_status status = bare ? read_bare(search, &use, &known) : read_key(search, index, &use);
    if (bare && (known || use.unlocks)) {
        hf__lock_key_free(&use.key);
        return status;
    }
    if (status == HF_OK && continues_as_prose(search->unit, &use)) {
        hf__lock_key_free(&use.key);
        return HF_OK;
    }
    if (status == HF_OK)
        return hf__uses_add(search->uses, &use, search->err);
    hf__lock_key_free(&use.key);
    return status;
}

/* Any name counts where Holdfast is loaded; elsewhere in its project a store's methods do. */
static bool is_of_holdfast(const struct search *search, const hf__use_kind *kind,
                           const hf__pcre *regex, const hf__pcre_match *match)
{
    return !kind->ours || kind->in_sql || search->loads_holdfast ||
           hf__pcre_match_has(match, hf__pcre_group(regex, "own")) ||
           (search->scope->project->loads_holdfast &&
            hf__pcre_match_has(match, hf__pcre_group(regex, "store")));
}

/* Most projects do not have Holdfast: its calls must not cost them time. */
static bool is_out_of_place(const struct search *search, const hf__use_kind *kind)
{
    if (!kind->ours || search->loads_holdfast)
        return false;
    if (kind->in_code && kind->languages != HF__LANG_C)
        return !search->scope->project->loads_holdfast;
    return !search->names_holdfast;
}

static hf_status find_kind(struct search *search, size_t index)
{
    const hf__use_kind *kind = &hf__use_kinds[index];
    const hf__unit *unit = search->unit;
    hf_status status = HF_OK;
    hf__pcre_found found;
    hf__pcre_match match;

    if ((kind->languages & (unsigned)unit->syntax->id) == 0 || is_out_of_place(search, kind) ||
        (kind->file_has != NULL &&
         memmem(unit->text, unit->size, kind->file_has, strlen(kind->file_has)) == NULL))
        return HF_OK;
    for (size_t at = 0; status == HF_OK; at = match.end[0]) {
        found = hf__pcre_find(search->finder->kinds[index], unit->text, unit->size, at, &match);
        if (found == HF__PCRE_TOO_HARD || search->uses->count == USES_MAX)
            search->uses->incomplete = true;
        if (found != HF__PCRE_FOUND || search->uses->count == USES_MAX)
            break;
        if (is_of_holdfast(search, kind, search->finder->kinds[index], &match) &&
            stands_where_it_may(unit, kind, &match, place_of(search->finder->kinds[index], &match)))
            status = add_use(search, index, &match);
    }
    return status;
}

static int by_place(const void *a, const void *b)
{
    const hf__use *x = a;
    const hf__use *y = b;

    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : x->again - y->again;
}

hf_status hf__file_facts_read(hf__use_finder *finder, const hf__unit *unit, hf__file_facts *facts,
                              hf_error *err)
{
    hf_status status;

    *facts = (hf__file_facts){.unit = unit};
    status = hf__functions_read(unit, &facts->functions, err);
    facts->names.unit = unit;
    facts->names.patterns = finder->assignment_patterns;
    return status;
}

void hf__file_facts_free(hf__file_facts *facts)
{
    hf__assignments_free(&facts->names);
    free(facts->functions);
    *facts = (hf__file_facts){0};
}

hf__scope hf__file_scope(hf__use_finder *finder, hf__file_facts *facts, hf__project *project)
{
    return (hf__scope){
        .unit = facts->unit,
        .names = &facts->names,
        .functions = facts->functions,
        .project = project,
        .patterns = finder->value_patterns,
        .string_end = SIZE_MAX,
        .code = true,
    };
}

hf_status hf__uses_find(hf__use_finder *finder, const hf__scope *scope, hf__uses *uses,
                        hf_error *err)
{
    struct search search = {
        .finder = finder, .unit = scope->unit, .scope = scope, .uses = uses, .err = err};
    hf_status status = HF_OK;
    hf__pcre_match match;

    *uses = (hf__uses){0};
    search.names_holdfast = hf__pcre_find(finder->own, scope->unit->text, scope->unit->size, 0,
                                          &match) == HF__PCRE_FOUND;
    search.loads_holdfast =
        search.names_holdfast && hf__pcre_find(finder->import, scope->unit->text, scope->unit->size,
                                               0, &match) == HF__PCRE_FOUND;
    if (search.loads_holdfast && !scope->project->loads_holdfast)
        scope->project->loads_holdfast = scope->project->grown = true;
    for (size_t i = 0; status == HF_OK && i < KINDS; i++)
        status = find_kind(&search, i);
    if (status == HF_OK)
        status = hf__wrapper_calls_find(scope, uses, err);
    if (uses->count > 1)
        qsort(uses->items, uses->count, sizeof *uses->items, by_place);
    if (status != HF_OK)
        hf__uses_free(uses);
    return status;
}

void hf__uses_free(hf__uses *uses)
{
    for (size_t i = 0; i < uses->count; i++)
        hf__lock_key_free(&uses->items[i].key);
    free(uses->items);
    *uses = (hf__uses){0};
}

#include "programs/registry/lint/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const confidence_names[] = {
    [HF__LOW] = "low",
    [HF__MEDIUM] = "medium",
    [HF__HIGH] = "high",
};

static hf__reported is_wanted(hf__check *check, hf__lint_rule rule, unsigned line, int confidence)
{
    if (check->options->off[rule] ||
        (confidence != HF__CERTAIN && confidence < (int)check->options->least))
        return HF__NOT_WANTED;
    if (!hf__ignores_cover(check->ignores, rule, line))
        return HF__REPORTED;
    check->totals->ignored++;
    return HF__IGNORED_ON_PURPOSE;
}

hf__reported hf__check_report(hf__check *check, hf__lint_rule rule, size_t at, int confidence,
                              const char *remedy, const char *format, ...)
{
    unsigned line = hf__unit_line(check->unit, at);
    hf__reported wanted = is_wanted(check, rule, line, confidence);
    char message[512];
    va_list values;

    if (wanted != HF__REPORTED)
        return wanted;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);

    hf__finding *finding =
        hf__findings_add(check->findings, &hf__lint_rules[rule], check->unit->path, line,
                         hf__unit_column(check->unit, at), remedy, "%s", message);
    if (finding != NULL && confidence != HF__CERTAIN)
        finding->confidence = confidence_names[confidence];
    return HF__REPORTED;
}

/* The function's name without quotes and schema, then the key. */
const char *hf__show_call(const hf__check *check, const hf__use *use, char out[HF__CALL_SHOWN])
{
    const char *text = check->unit->text + use->at;
    size_t size = use->args - use->at;
    bool hashed = use->key.uses_hashtext && use->key.kind == HF__KEY_LABEL;
    char name[64];
    char key[96];

    while (size > 0 && strchr("( \t\r\n\"\\',:=", text[size - 1]) != NULL)
        size--;
    for (size_t i = size; i-- > 0;) {
        if (strchr(".\"': \n", text[i]) != NULL) {
            text += i + 1;
            size -= i + 1;
            break;
        }
    }
    hf__show(name, sizeof name, text, size);
    if (use->calls != NULL)
        hf__show(name, sizeof name, use->calls->name, strlen(use->calls->name));
    if (use->unlocks_all)
        snprintf(out, HF__CALL_SHOWN, "%s()", name);
    else if (hf__lock_key_show(&use->key, key, sizeof key) != NULL)
        snprintf(out, HF__CALL_SHOWN, hashed ? "%s(hashtext(%s))" : "%s(%s)", name, key);
    else
        snprintf(out, HF__CALL_SHOWN, "%s(…)", name);
    return out;
}

/* ---- Ignore comments ------------------------------------------------------------------------- */

static bool is_on(const hf__check *check, hf__lint_rule rule)
{
    return !check->options->off[rule] &&
           (check->options->registry != NULL || !hf__lint_rule_needs_registry(rule));
}

void hf__check_ignores(hf__check *check)
{
    const hf__ignores *ignores = check->ignores;
    char shown[64];

    for (size_t i = 0; i < ignores->without_reason_count; i++)
        hf__check_report(check, HF__IGNORE_WITHOUT_REASON, ignores->without_reason[i], HF__CERTAIN,
                         "write why behind the rule: holdfast-ignore: RULE reason",
                         "the ignore comment gives no reason");
    for (size_t i = 0; i < ignores->count; i++) {
        const hf__ignored_rule *item = &ignores->items[i];
        if (item->rule == HF__LINT_RULES)
            hf__check_report(
                check, HF__UNKNOWN_RULE, item->at, HF__CERTAIN,
                "holdfast registry lint --list-rules shows the rules", "there is no rule '%s'",
                hf__show(shown, sizeof shown, check->unit->text + item->at, item->size));
        else if (!item->used && is_on(check, item->rule) && item->rule != HF__UNUSED_IGNORE)
            hf__check_report(check, HF__UNUSED_IGNORE, item->at, HF__CERTAIN,
                             "remove the rule from the comment, or the comment",
                             "nothing here breaks the rule %s that the comment asks to ignore",
                             hf__lint_rules[item->rule].id);
    }
}

/* ---- Against the registry -------------------------------------------------------------------- */

enum { MEET_STATES = 20000 };

static const char *lifetime_name(hf_lifetime lifetime)
{
    return lifetime == HF_SESSION ? "session" : lifetime == HF_LEASE ? "lease" : "transaction";
}

/* What the registry says about a use. */
struct known {
    const hf__lock_entry *entry; /* NULL: none fits, or several do */
    bool registered;
    const char *why; /* it cannot be told; NULL: it can */
};

static hf_status find_label(const hf_registry *registry, const hf__lock_key *key,
                            struct known *known, hf_error *err)
{
    const hf__lock_entry *second = NULL;
    hf_status status =
        hf__registry_match(registry, key->label, key->label_size, &known->entry, &second, err);

    known->registered = known->entry != NULL;
    if (second != NULL)
        known->entry = NULL;
    return status;
}

static bool prefixes_agree(const hf__lock_key *key, const hf__lock_entry *entry)
{
    const char *hole = memchr(key->label, HF__LABEL_HOLE, key->label_size);
    size_t size = hole != NULL ? (size_t)(hole - key->label) : key->label_size;

    if (size > entry->literal_prefix_size)
        size = entry->literal_prefix_size;
    return size == 0 || memcmp(key->label, entry->literal_prefix, size) == 0;
}

static bool is_possible(const hf__lock_key *key, const hf__lock_entry *entry)
{
    const hf_registry_entry *view = &entry->view;

    if (entry->language == NULL || !prefixes_agree(key, entry))
        return false;
    if (key->in_class)
        return view->space == HF_PAIR && view->pair[0] == key->pair[0];
    /* Some libraries make two numbers of a label by themselves. */
    return view->space == HF_BIGINT || !hf__has_32_bits(view->derivation);
}

/* The label as a language: its known parts as they are, and anything for the others. */
static hf_status build_template(const hf__lock_key *key, hf__language **language, hf_error *err)
{
    hf__part *parts = calloc(key->label_size + 1, sizeof *parts);
    size_t count = 0;
    size_t bad = 0;
    hf_status status;

    if (parts == NULL)
        return hf__no_memory(err);
    for (size_t i = 0; i < key->label_size;) {
        size_t size = 0;
        while (i + size < key->label_size && key->label[i + size] != HF__LABEL_HOLE)
            size++;
        if (size > 0)
            parts[count++] = (hf__part){key->label + i, size, false};
        else
            parts[count++] = (hf__part){".*", 2, true};
        i += size > 0 ? size : 1;
    }
    status = hf__language_build(parts, count, language, &bad, err);
    free(parts);
    return status;
}

/* A template is registered when it and the pattern of an entry have a label in common. */
static hf_status find_template(const hf_registry *registry, const hf__lock_key *key,
                               struct known *known, hf_error *err)
{
    hf__language *language = NULL;
    hf__buf witness = {0};
    hf_status status = build_template(key, &language, err);
    size_t found = 0;

    for (size_t i = 0; status == HF_OK && i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        hf__meeting meeting = HF__MEET_NEVER;
        if (!is_possible(key, entry))
            continue;
        hf__buf_clear(&witness);
        status = hf__language_meet(language, entry->language, MEET_STATES, &meeting, &witness, err);
        if (status == HF_OK && meeting != HF__MEET_NEVER) {
            known->entry = found++ == 0 ? entry : NULL;
            known->registered = true;
        }
    }
    hf__buf_free(&witness);
    hf__language_free(language);
    if (status == HF_QUOTA || status == HF_INVALID) { /* the label is too large to tell */
        *known = (struct known){.why = "the label is too large to compare with patterns"};
        status = HF_OK;
    }
    return status;
}

/* A pair is that of an entry, or in the class of one. Of some only the class is known. */
static void find_pair(const hf_registry *registry, const hf__lock_key *key, struct known *known)
{
    if (!key->has_holes)
        known->entry = hf__registry_by_key(
            registry, HF_PAIR, hf_key_join((uint32_t)key->pair[0], (uint32_t)key->pair[1]));
    for (size_t i = 0; known->entry == NULL && i < registry->count; i++) {
        const hf_registry_entry *view = &registry->entries[i].view;
        if (view->space != HF_PAIR || view->pair[0] != key->pair[0])
            continue;
        if (view->pattern != NULL)
            known->entry = &registry->entries[i];
        else if (key->has_holes)
            known->why = "only its first number is known, and entries with it have a second one";
    }
    known->registered = known->entry != NULL;
    if (known->registered)
        known->why = NULL;
}

static hf_status find_known(const hf_registry *registry, const hf__lock_key *key,
                            struct known *known, hf_error *err)
{
    hf_status status;

    *known = (struct known){.why = key->kind == HF__KEY_UNKNOWN ? key->why : NULL};
    if (registry == NULL || key->kind == HF__KEY_UNKNOWN)
        return HF_OK;
    switch (key->kind) {
    case HF__KEY_UNKNOWN: break;
    case HF__KEY_NUMBER:
        known->entry = hf__registry_by_key(registry, HF_BIGINT, key->number);
        break;
    case HF__KEY_PAIR: find_pair(registry, key, known); return HF_OK;
    case HF__KEY_LABEL:
        status = key->has_holes || key->in_class ? find_template(registry, key, known, err)
                                                 : find_label(registry, key, known, err);
        if (known->registered && key->hash_unsure)
            known->why = "its label is registered, but not every hash of a label is its key";
        return status;
    }
    known->registered = known->entry != NULL;
    return HF_OK;
}

/* ---- One lock -------------------------------------------------------------------------------- */

static hf__reported report_unregistered(hf__check *check, const hf__use *use)
{
    const char *path = hf_registry_path(check->options->registry);
    char shown[96] = "";

    hf__lock_key_show(&use->key, shown, sizeof shown);
    if (use->key.kind == HF__KEY_LABEL)
        return hf__check_report(
            check, HF__UNREGISTERED_LABEL, use->at, HF__CERTAIN,
            "give it an entry with a pattern, or use a label of an entry that is there",
            "the label %s matches no entry of %s", shown, path);
    return hf__check_report(check, HF__UNREGISTERED_ID, use->at, HF__CERTAIN,
                            "give it an entry with a name and an owner, or use a registered lock",
                            "the lock %s is not in %s", shown, path);
}

/*
 * What a function does with its parameter is its callers' business: one finding where it is
 * defined, when nobody calls it or when some of its callers cannot be read.
 */
static hf__reported report_wrapper(hf__check *check, const hf__use *use)
{
    hf__wrapper *wrapper = use->wraps;
    size_t place =
        use->key.block != HF__STATEMENT ? check->facts->functions[use->key.block].name : use->at;

    if (wrapper->told)
        return HF__NOT_WANTED;
    wrapper->told = true;
    if (wrapper->calls == 0 && !wrapper->hidden)
        return hf__check_report(
            check, HF__UNRESOLVED_KEY, place, HF__CERTAIN,
            "declare the calls that lint cannot see under wrappers: in the registry, or ignore "
            "this rule with a reason",
            "%s locks what its callers pass, and no call of it is found", wrapper->name);
    if (wrapper->hidden)
        return hf__check_report(
            check, HF__UNRESOLVED_KEY, place, HF__CERTAIN,
            "pass the label or number itself, or ignore this rule with a reason",
            "%s locks a field of what its callers pass, and not all of them show its value",
            wrapper->name);
    return hf__check_report(
        check, HF__UNRESOLVED_KEY, place, HF__CERTAIN,
        "'holdfast registry lint --list' shows which; write their labels or numbers where they "
        "are passed",
        "%s locks what its callers pass, and %zu of %zu calls pass something that nobody can "
        "tell from here",
        wrapper->name, wrapper->unresolved, wrapper->calls);
}

static hf__reported report_unresolved(hf__check *check, const hf__use *use, const char *why)
{
    char call[HF__CALL_SHOWN];

    bool known_in_part = use->key.kind != HF__KEY_UNKNOWN;

    if (use->wraps != NULL && !known_in_part)
        return use->wraps->calls == 0 || use->wraps->unresolved > 0 || use->wraps->hidden
                   ? report_wrapper(check, use)
                   : HF__NOT_WANTED;
    if (use->calls != NULL && !use->calls->declared && !known_in_part)
        return HF__NOT_WANTED;
    return hf__check_report(
        check, HF__UNRESOLVED_KEY, use->at, HF__CERTAIN,
        "write the label or number where it is locked, or ignore this rule with a reason",
        "nobody can tell from here which lock %s takes: %s", hf__show_call(check, use, call), why);
}

/* Is the key, or what is missing of it, for the callers to tell, and are they sites? */
static bool is_passed_on(const hf__use *use)
{
    return use->wraps != NULL && use->wraps->calls > 0 && !use->wraps->hidden &&
           (use->key.kind == HF__KEY_UNKNOWN ||
            (use->key.kind == HF__KEY_PAIR && use->key.has_holes));
}

/* Compares with the registry, reports, and says what became of the use. */
static hf__site_outcome judge(hf__check *check, const hf__use *use, const struct known *known)
{
    hf__reported reported = HF__NOT_WANTED;
    hf__site_outcome outcome = HF__SITE_REGISTERED;

    if (is_passed_on(use)) {
        outcome = HF__SITE_PASSED_ON;
        if (check->options->registry != NULL && use->key.kind == HF__KEY_UNKNOWN)
            reported = report_unresolved(check, use, known->why);
    } else if (known->why != NULL) {
        outcome = HF__SITE_UNRESOLVED;
        if (check->options->registry != NULL)
            reported = report_unresolved(check, use, known->why);
    } else if (check->options->registry == NULL) {
        outcome = HF__SITE_READ;
    } else if (!known->registered) {
        outcome = HF__SITE_UNREGISTERED;
        reported = report_unregistered(check, use);
    }
    return reported == HF__IGNORED_ON_PURPOSE ? HF__SITE_IGNORED : outcome;
}

/* A store of ours hashes a label as the registry says, and else in its own way. */
static const char *derivation_name(const hf__use *use, const struct known *known)
{
    if (use->key.kind != HF__KEY_LABEL)
        return "";
    if (use->key.derivation_known)
        return hf_derivation_name(use->key.derivation);
    if (!use->kind->ours || use->key.hash_unsure)
        return "";
    return hf_derivation_name(known->entry != NULL ? known->entry->view.derivation : HF_SHA256);
}

static void note_in_ledger(hf__check *check, const hf__use *use, const struct known *known,
                           hf__site_outcome outcome)
{
    char call[HF__CALL_SHOWN];
    char key[96] = "";

    hf__lock_key_show(&use->key, key, sizeof key);
    hf__show_call(check, use, call);
    call[strcspn(call, "(")] = '\0';
    hf__sites_add(check->ledger,
                  &(hf__site){
                      .file = check->unit->path,
                      .line = hf__unit_line(check->unit, use->at),
                      .column = check->ledger->keeps ? hf__unit_column(check->unit, use->at) : 0,
                      .outcome = outcome,
                      .call = call,
                      .mode = use->shared ? "shared" : "exclusive",
                      .lifetime = use->lifetime_known ? lifetime_name(use->lifetime) : "",
                      .key = key,
                      .derivation = derivation_name(use, known),
                      .entry = known->entry != NULL ? known->entry->view.name : "",
                      .why = known->why != NULL ? known->why : "",
                  });
}

static void check_lifetime(hf__check *check, const hf__use *use, const hf_registry_entry *entry)
{
    char call[HF__CALL_SHOWN];

    if (!use->lifetime_known || !entry->lifetime_given || entry->lifetime == use->lifetime)
        return;
    hf__check_report(check, HF__WRONG_LIFETIME, use->at, HF__CERTAIN,
                     entry->lifetime == HF_LEASE
                         ? "take a lease (HF_LEASE, holdfast run --lease), or correct the entry's "
                           "lifetime"
                     : entry->lifetime == HF_SESSION
                         ? "use pg_advisory_lock, or correct the entry's lifetime"
                         : "use pg_advisory_xact_lock, or correct the entry's lifetime",
                     "%s is a %s lock, but '%s' is registered with lifetime %s",
                     hf__show_call(check, use, call), lifetime_name(use->lifetime), entry->name,
                     lifetime_name(entry->lifetime));
}

static void check_derivation(hf__check *check, const hf__use *use, const hf_registry_entry *entry)
{
    const hf__lock_key *key = &use->key;
    char shown[96];

    if (key->kind != HF__KEY_LABEL)
        return;
    if (key->hashed_otherwise)
        hf__check_report(check, HF__WRONG_DERIVATION, use->at, HF__CERTAIN,
                         "derive the key as the registry says",
                         "%s is hashed in a way of its own here, but '%s' is registered as %s: two "
                         "different locks",
                         hf__lock_key_show(key, shown, sizeof shown), entry->name,
                         hf_derivation_name(entry->derivation));
    if (!key->derivation_known || entry->derivation == key->derivation)
        return;
    hf__check_report(check, HF__WRONG_DERIVATION, use->at, HF__CERTAIN,
                     "derive the key as the registry says, or correct the entry's 'as'",
                     "%s is hashed by %s here, but '%s' is registered as %s: two different locks",
                     hf__lock_key_show(key, shown, sizeof shown),
                     hf_derivation_name(key->derivation), entry->name,
                     hf_derivation_name(entry->derivation));
}

static bool is_accepted_hashtext(const hf__use *use, const struct known *known)
{
    return known->entry != NULL && known->entry->view.derivation == HF_HASHTEXT &&
           use->key.kind == HF__KEY_LABEL;
}

static void check_hashtext(hf__check *check, const hf__use *use, const struct known *known)
{
    char call[HF__CALL_SHOWN];

    if (!use->key.uses_hashtext || is_accepted_hashtext(use, known))
        return;
    hf__check_report(
        check, HF__RULE_HASHTEXT, use->at, HF__CERTAIN,
        "use the first 64 bits of SHA-256 (holdfast key --as sha256 LABEL), or register "
        "the label with as: hashtext",
        "%s locks by a hash of 32 bits: among 9 300 labels, two collide with a probability of "
        "1 %%",
        hf__show_call(check, use, call));
}

/* ---- The order of two locks ------------------------------------------------------------------ */

/* Is the first lock released before the second one is acquired? */
static bool is_released_before(const hf__use *first, const hf__use *second)
{
    for (const hf__use *use = first + 1; use < second; use++)
        if (use->unlocks && use->block == second->block &&
            (use->unlocks_all || hf__lock_key_may_equal(&use->key, &first->key)))
            return true;
    return false;
}

static bool is_out_of_order(const hf__use *first, const struct known *first_known,
                            const hf__use *second, const struct known *second_known)
{
    const hf__lock_entry *a = first_known->entry;
    const hf__lock_entry *b = second_known->entry;
    int64_t first_key = 0;
    int64_t second_key = 0;

    if (a == NULL || b == NULL || !a->view.has_order || !b->view.has_order)
        return false;
    if (a != b)
        return a->view.order > b->view.order;
    return first->key.kind == HF__KEY_LABEL && second->key.kind == HF__KEY_LABEL &&
           !first->key.has_holes && !second->key.has_holes &&
           hf__entry_key(a, first->key.label, first->key.label_size, &first_key, NULL) == HF_OK &&
           hf__entry_key(b, second->key.label, second->key.label_size, &second_key, NULL) ==
               HF_OK &&
           first_key > second_key;
}

static void report_order(hf__check *check, const hf__use *first, const hf_registry_entry *a,
                         const hf__use *second, const hf_registry_entry *b)
{
    unsigned line = hf__unit_line(check->unit, first->at);

    if (a != b)
        hf__check_report(check, HF__LOCK_ORDER, second->at, HF__HIGH,
                         "take the lock of the smaller order first",
                         "'%s' (order %lld) is taken after '%s' (order %lld) of line %u", b->name,
                         (long long)b->order, a->name, (long long)a->order, line);
    else
        hf__check_report(
            check, HF__LOCK_ORDER, second->at, HF__HIGH,
            "take locks of one entry in the order of their keys",
            "two locks of '%s' are taken against the order of their keys; the first in "
            "line %u",
            b->name, line);
}

/* Compares each lock with those before it in the same block. One finding is enough. */
static void check_order(hf__check *check, const struct known *known)
{
    const hf__uses *uses = check->uses;

    for (size_t i = 1; i < uses->count; i++) {
        const hf__use *second = &uses->items[i];
        if (second->unlocks || second->again || known[i].entry == NULL ||
            !known[i].entry->view.has_order)
            continue;
        for (size_t j = i; j-- > 0;) {
            const hf__use *first = &uses->items[j];
            if (first->unlocks || first->again || known[j].entry == NULL ||
                first->block != second->block ||
                !is_out_of_order(first, &known[j], second, &known[i]) ||
                is_released_before(first, second))
                continue;
            report_order(check, first, &known[j].entry->view, second, &known[i].entry->view);
            break;
        }
    }
}

hf_status hf__check_against_registry(hf__check *check, hf_error *err)
{
    const hf_registry *registry = check->options->registry;
    const hf__uses *uses = check->uses;
    struct known *known = calloc(uses->count + 1, sizeof *known);
    hf_status status = known != NULL ? HF_OK : hf__no_memory(err);

    for (size_t i = 0; status == HF_OK && i < uses->count; i++) {
        const hf__use *use = &uses->items[i];
        if (use->unlocks) {
            note_in_ledger(check, use, &known[i], HF__SITE_RELEASE);
            continue;
        }
        status = find_known(registry, &use->key, &known[i], err);
        if (status != HF_OK)
            break;
        note_in_ledger(check, use, &known[i], judge(check, use, &known[i]));
        if (known[i].entry != NULL) {
            check_lifetime(check, use, &known[i].entry->view);
            check_derivation(check, use, &known[i].entry->view);
        }
        if (!use->again)
            check_hashtext(check, use, &known[i]);
    }
    if (status == HF_OK && registry != NULL)
        check_order(check, known);
    free(known);
    return status;
}

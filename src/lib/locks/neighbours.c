/*
 * Who locks a label of ours by another key? Programs beside us often use hashtext(label), and a key
 * that differs excludes nobody, without a word. Their keys tell nothing, so this goes the other
 * way: from the labels that are known here to the keys that a neighbour would have.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lib/locks/engine.h"

enum {
    LOOKS = 10, /* transactions are short: one look would miss most of them */
    PAUSE_MS = 50,
    PAST_MS = 2 * 24 * 3600 * 1000, /* of records: the whole history may be too much to read */
};

/* A key that a neighbour would use for a label of ours, which has another key here. */
struct foreign_key {
    int64_t key;
    const char *label;
    hf_derivation derivation;
};

struct search {
    hf__buf keys; /* of struct foreign_key, sorted by key once they are all there */
    size_t labels;
};

static void add_label(struct search *search, const char *label, int64_t our_key)
{
    static const hf_derivation theirs[] = {HF_HASHTEXT, HF_HASHTEXTEXTENDED};

    search->labels++;
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        struct foreign_key foreign = {.label = label, .derivation = theirs[i]};
        if (hf_key_derive(theirs[i], label, strlen(label), &foreign.key, NULL) == HF_OK &&
            foreign.key != our_key)
            hf__buf_add(&search->keys, &foreign, sizeof foreign);
    }
}

static void add_registered(void *arg, const hf__lock_entry *entry, const char *label, int64_t key)
{
    if (entry->view.space == HF_BIGINT)
        add_label(arg, label, key);
}

static void add_recorded(struct search *search, const hf_lock_list *past)
{
    for (size_t i = 0; i < hf_lock_list_count(past); i++) {
        const hf_lock_view *view = hf_lock_list_at(past, i);
        if (view->space == HF_BIGINT && view->label[0])
            add_label(search, view->label, view->key);
    }
}

static int by_key(const void *a, const void *b)
{
    const struct foreign_key *left = a, *right = b;

    return (left->key > right->key) - (left->key < right->key);
}

static const struct foreign_key *find(const struct search *search, int64_t key)
{
    const struct foreign_key wanted = {.key = key};

    return bsearch(&wanted, search->keys.data, search->keys.length / sizeof wanted, sizeof wanted,
                   by_key);
}

static void tell(const hf_lock_view *view, const struct foreign_key *foreign, hf_finding_fn *report,
                 void *arg)
{
    char label[128], who[128], text[512];

    hf__show(label, sizeof label, foreign->label, strlen(foreign->label));
    hf__show(who, sizeof who, view->application, strlen(view->application));
    (void)snprintf(text, sizeof text,
                   "'%s' has another key here than %s('%s'), which %s (backend %d) %s: the two do "
                   "not exclude each other",
                   label, hf_derivation_name(foreign->derivation), label,
                   who[0] ? who : "a session", view->backend_pid,
                   view->waiting ? "waits for" : "holds");
    report(arg, HF_LEVEL_PROBLEM, "neighbours", text,
           "use their key: the derivation in the registry, --as of the command, HF_LABEL_AS in C");
}

/* *found: it was told. */
static hf_status look(hf_store *store, const struct search *search, hf_finding_fn *report,
                      void *arg, bool *found, hf_error *err)
{
    hf_lock_list *now = NULL;
    hf_status status = hf_lock_list_read(store, &now, err);

    for (size_t i = 0; status == HF_OK && !*found && i < hf_lock_list_count(now); i++) {
        const hf_lock_view *view = hf_lock_list_at(now, i);
        const struct foreign_key *foreign =
            view->space == HF_BIGINT ? find(search, view->key) : NULL;
        if (foreign)
            tell(view, foreign, report, arg);
        *found = foreign != NULL;
    }
    hf_lock_list_free(now);
    return status;
}

static hf_status look_around(hf_store *store, struct search *search, hf_finding_fn *report,
                             void *arg, hf_error *err)
{
    hf_status status = HF_OK;
    bool found = false;
    char text[160];

    if (search->keys.broken)
        return hf__no_memory(err);
    if (search->labels == 0 || !search->keys.data) {
        report(arg, HF_LEVEL_OK, "neighbours",
               "not looked for: neither records nor a registry name a label", "");
        return HF_OK;
    }
    qsort(search->keys.data, search->keys.length / sizeof(struct foreign_key),
          sizeof(struct foreign_key), by_key);
    for (int i = 0; status == HF_OK && !found && i < LOOKS; i++) {
        if (i > 0)
            (void)poll(NULL, 0, PAUSE_MS);
        status = look(store, search, report, arg, &found, err);
    }
    (void)snprintf(
        text, sizeof text,
        "in half a second nobody held the hashtext() of a label that is known here (%zu)",
        search->labels);
    if (status == HF_OK && !found)
        report(arg, HF_LEVEL_OK, "neighbours", text, "");
    return status;
}

hf_status hf__examine_neighbours(hf_store *store, hf_finding_fn *report, void *arg, hf_error *err)
{
    struct search search = {0};
    hf_lock_list *past = NULL;
    hf__known *known = NULL;
    hf_status status = HF_OK;

    if (store->registry)
        status = hf__known_build(store->registry, &known, err);
    if (status == HF_OK && atomic_load(&store->backend->readable))
        status = hf_lock_list_read_past(store, PAST_MS, &past, err);
    if (status == HF_OK && known)
        hf__known_each(known, add_registered, &search);
    if (status == HF_OK && past)
        add_recorded(&search, past);
    if (status == HF_OK)
        status = look_around(store, &search, report, arg, err);
    hf__buf_free(&search.keys);
    hf_lock_list_free(past);
    hf__known_free(known);
    return status;
}

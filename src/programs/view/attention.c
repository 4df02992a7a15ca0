/* What a person should look at, in sentences, the most urgent first. */
#include "programs/view/parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"

enum {
    LONG_WAIT_MS = 60 * 1000,
    SILENT_MS = 5 * 60 * 1000,
    LISTED = 5, /* sentences about one topic; the rest is counted */
    MOST = 200,
};

struct pile {
    hf__view_draft *draft;
    hf__attention items[MOST];
    size_t count;
};

static void add(struct pile *pile, hf__urgency urgency, const char *topic, const char *link,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

static void add(struct pile *pile, hf__urgency urgency, const char *topic, const char *link,
                const char *format, ...)
{
    char text[1024];
    va_list args;
    if (pile->count == MOST)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pile->items[pile->count++] =
        (hf__attention){urgency, topic, hf__arena_text(&pile->draft->arena, text), link, SIZE_MAX};
}

/* The sentence that was added last is about this lock. */
static void point_to(struct pile *pile, size_t lock)
{
    if (pile->count > 0)
        pile->items[pile->count - 1].lock = lock;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- locks ----------------------------------------------------------------------------------- */

static const char *lock_name(const hf__seen_lock *lock, char *out, size_t size)
{
    if (lock->label[0])
        (void)snprintf(out, size, "'%.120s'", lock->label);
    else if (lock->space == HF_PAIR)
        (void)snprintf(out, size, "key (%d, %d)", (int)(int32_t)((uint64_t)lock->key >> 32),
                       (int)(int32_t)(uint32_t)lock->key);
    else
        (void)snprintf(out, size, "key %" PRId64, lock->key);
    return out;
}

static const char *party_name(const hf__snapshot *seen, size_t at, char *out, size_t size)
{
    const hf__seen_party *party = &seen->parties[at];
    const char *application = party->application[0] ? party->application : "somebody";
    if (party->pid > 0)
        (void)snprintf(out, size, "%.80s on %.80s (pid %d)", application, party->host, party->pid);
    else
        (void)snprintf(out, size, "%.80s (backend %d)", application, party->id);
    return out;
}

static void tell_deadlocks(struct pile *pile)
{
    const hf__snapshot *seen = &pile->draft->seen;
    char waiter[200], holder[200], lock[160];
    size_t told = 0, members = 0;
    for (size_t i = 0; i < seen->party_count; i++)
        members += seen->parties[i].in_cycle;
    for (size_t i = 0; i < seen->edge_count && told < LISTED; i++) {
        const hf__seen_edge *edge = &seen->edges[i];
        if (!seen->parties[edge->waiter].in_cycle || !seen->parties[edge->holder].in_cycle)
            continue;
        add(pile, HF__URGENCY_PROBLEM, "deadlock", "#waits",
            "Deadlock: %s waits for %s, which %s holds, and that one in the end for it.",
            party_name(seen, edge->waiter, waiter, sizeof waiter),
            lock_name(&seen->locks[edge->lock], lock, sizeof lock),
            party_name(seen, edge->holder, holder, sizeof holder));
        told++;
    }
    if (members > LISTED)
        add(pile, HF__URGENCY_PROBLEM, "deadlock", "#waits", "%zu sessions are deadlocked in all.",
            members);
}

/* A lock behind which others wait for long, also through those who wait for it. */
struct cause {
    size_t lock, kept;
    int64_t longest_ms;
    size_t root, roots; /* who holds it and waits for nobody, one of them, and how many there are */
};

/* By how many are kept waiting: what frees most of them comes first. */
static int by_kept(const void *a, const void *b)
{
    const struct cause *left = a, *right = b;
    if (left->kept != right->kept)
        return left->kept < right->kept ? 1 : -1;
    return (left->longest_ms < right->longest_ms) - (left->longest_ms > right->longest_ms);
}

/* Does somebody wait for it whom neither a root nor a deadlock explains? */
static bool is_unexplained(const hf__snapshot *seen, const hf__seen_lock *lock)
{
    for (size_t i = lock->first + lock->holders; i < lock->first + lock->count; i++) {
        size_t party = seen->view_party[i];
        if (party == SIZE_MAX ||
            (!seen->parties[party].behind_root && !seen->parties[party].in_cycle))
            return true;
    }
    return false;
}

static void add_root(struct cause *cause, const hf__snapshot *seen, size_t at)
{
    const hf__seen_party *root = &seen->parties[at];
    if (root->kept > cause->kept) {
        cause->kept = root->kept;
        cause->root = at;
    }
    if (root->kept_ms > cause->longest_ms)
        cause->longest_ms = root->kept_ms;
    cause->roots++;
}

/* One for each lock; those that keep nobody waiting have 0. */
static void find_causes(const hf__snapshot *seen, struct cause *causes)
{
    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        causes[i] = (struct cause){.lock = i};
        if (lock->waiters > 0 && is_unexplained(seen, lock)) {
            causes[i].kept = lock->waiters;
            causes[i].longest_ms = lock->longest_wait_ms;
        }
    }
    for (size_t i = 0; i < seen->party_count; i++)
        if (seen->parties[i].root && seen->parties[i].through < seen->lock_count)
            add_root(&causes[seen->parties[i].through], seen, i);
}

static void tell_cause(struct pile *pile, const struct cause *cause)
{
    const hf__snapshot *seen = &pile->draft->seen;
    const hf__seen_lock *lock = &seen->locks[cause->lock];
    char name[160], longest[32], root[200] = "", holds[280] = "";
    if (cause->roots > 0)
        (void)party_name(seen, cause->root, root, sizeof root);
    if (cause->roots == 1)
        (void)snprintf(holds, sizeof holds, ": %s holds it", root);
    else if (cause->roots > 1)
        (void)snprintf(holds, sizeof holds, ": %s and %zu other%s hold it", root, cause->roots - 1,
                       plural(cause->roots - 1));
    add(pile, HF__URGENCY_WARNING, "wait", "#waits",
        "%s keeps %zu waiting%s, the longest for %s%s.", lock_name(lock, name, sizeof name),
        cause->kept, cause->kept > lock->waiters ? ", also through others" : "",
        hf__show_duration(longest, sizeof longest, cause->longest_ms), holds);
    point_to(pile, cause->lock);
}

static void tell_waits(struct pile *pile)
{
    const hf__snapshot *seen = &pile->draft->seen;
    struct cause *causes = seen->waiting > 0 ? calloc(seen->lock_count, sizeof *causes) : NULL;
    size_t more = 0, told = 0;
    if (!causes) {
        pile->draft->arena.broken = pile->draft->arena.broken || seen->waiting > 0;
        return;
    }
    find_causes(seen, causes);
    qsort(causes, seen->lock_count, sizeof *causes, by_kept);
    for (size_t i = 0; i < seen->lock_count && causes[i].kept > 0; i++) {
        if (causes[i].longest_ms < LONG_WAIT_MS)
            continue;
        if (told < LISTED)
            tell_cause(pile, &causes[i]);
        more += told++ >= LISTED;
    }
    if (more > 0)
        add(pile, HF__URGENCY_WARNING, "wait", "#waits",
            "%zu more lock%s waited for longer than a minute.", more, more == 1 ? " is" : "s are");
    free(causes);
}

static void tell_losses(struct pile *pile, uint64_t losses)
{
    if (losses > 0)
        add(pile, HF__URGENCY_PROBLEM, "loss", "#events",
            "%" PRIu64 " lock%s lost in the last hour.", losses, losses == 1 ? " was" : "s were");
}

static void tell_unregistered(struct pile *pile)
{
    const hf__snapshot *seen = &pile->draft->seen;
    if (seen->registry && seen->unregistered > 0)
        add(pile, HF__URGENCY_NOTE, "unregistered", "#locks",
            "%zu lock%s in use that the registry does not know.", seen->unregistered,
            seen->unregistered == 1 ? " is" : "s are");
}

/* ---- networks -------------------------------------------------------------------------------- */

static bool is_silent(const hf__seen_network *network, int64_t now_ms)
{
    const hf__maybe *success = &network->status.last_success_ms;
    return !network->ingester[0] && success->known && now_ms - success->value > SILENT_MS;
}

static const char *range_name(const hf_range *range, char *out, size_t size)
{
    if (range->from == range->to)
        (void)snprintf(out, size, "at %" PRId64, range->from);
    else
        (void)snprintf(out, size, "from %" PRId64 " to %" PRId64, range->from, range->to);
    return out;
}

static void tell_network(struct pile *pile, const hf__seen_network *network, int64_t max_lag)
{
    const hf__network_status *status = &network->status;
    const char *name = network->name;
    char first[64];
    if (network->problem[0])
        add(pile, HF__URGENCY_PROBLEM, "ingest", "#ingest", "%s cannot be read: %s.", name,
            network->problem);
    if (network->gap_count > 0)
        add(pile, HF__URGENCY_WARNING, "gap", "#ingest",
            "%s lacks %" PRId64 " ledger%s in %zu gap%s, the first %s.", name, status->missing,
            plural((uint64_t)status->missing), network->gap_count, plural(network->gap_count),
            range_name(&network->gaps[0], first, sizeof first));
    if (max_lag > 0 && network->lag.known && network->lag.value > max_lag)
        add(pile, HF__URGENCY_WARNING, "lag", "#ingest",
            "%s is %" PRId64 " ledgers behind its source.", name, network->lag.value);
    if (is_silent(network, pile->draft->seen.taken_ms))
        add(pile, HF__URGENCY_PROBLEM, "ingest", "#ingest",
            "Nobody ingests %s, and its last ledger was committed %" PRId64 " min ago.", name,
            (pile->draft->seen.taken_ms - status->last_success_ms.value) / 60000);
    if (status->quarantined.known && status->quarantined.value > 0)
        add(pile, HF__URGENCY_WARNING, "ingest", "#ingest",
            "%s has %" PRId64 " ledger%s in quarantine.", name, status->quarantined.value,
            plural((uint64_t)status->quarantined.value));
    if (status->disagrees && !network->problem[0])
        add(pile, HF__URGENCY_WARNING, "ingest", "#ingest",
            "The cursor of %s does not stand where its coverage ends.", name);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void tell_appends(struct pile *pile, int64_t doubtful)
{
    if (doubtful > 0)
        add(pile, HF__URGENCY_PROBLEM, "append", "#tables",
            "Of %" PRId64 " append%s nobody knows whether it took place.", doubtful,
            plural((uint64_t)doubtful));
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void tell_findings(struct pile *pile)
{
    const hf__findings *findings = pile->draft->seen.findings;
    for (size_t i = 0; findings && i < findings->count && i < LISTED; i++) {
        const hf__finding *finding = &findings->items[i];
        add(pile,
            finding->rule->severity >= HF__SEVERITY_WARNING ? HF__URGENCY_WARNING
                                                            : HF__URGENCY_NOTE,
            "registry", "#registry", "%s:%u: %.300s", file_name(finding->file), finding->line,
            finding->message);
    }
    if (findings && findings->count > LISTED)
        add(pile, HF__URGENCY_NOTE, "registry", "#registry",
            "The registry has %zu findings in all; 'holdfast registry check' lists them.",
            findings->count);
}

static int by_urgency(const void *a, const void *b)
{
    const hf__attention *left = a, *right = b;
    return (int)right->urgency - (int)left->urgency;
}

static void sort(hf__attention *items, size_t count)
{
    for (size_t i = 1; i < count;
         i++) { /* insertion sort: there are few, and equal ones keep their order */
        hf__attention item = items[i];
        size_t at = i;
        for (; at > 0 && by_urgency(&items[at - 1], &item) > 0; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

void hf__attention_gather(hf__view_draft *draft, const hf__worries *worries)
{
    struct pile pile = {.draft = draft};
    hf__snapshot *seen = &draft->seen;
    if (worries->problem[0])
        add(&pile, HF__URGENCY_PROBLEM, "store", "", "The store cannot be read: %s.",
            worries->problem);
    else if (!seen->has_records)
        add(&pile, HF__URGENCY_NOTE, "store", "",
            "Nothing is recorded here: events, tables and history need 'holdfast init'.");
    tell_deadlocks(&pile);
    tell_losses(&pile, worries->losses_1h);
    tell_waits(&pile);
    for (size_t i = 0; i < seen->network_count; i++)
        tell_network(&pile, &seen->networks[i], worries->max_lag);
    tell_appends(&pile, worries->doubtful);
    tell_unregistered(&pile);
    tell_findings(&pile);
    sort(pile.items, pile.count);
    seen->attention = hf__arena_array(&draft->arena, pile.count, sizeof *seen->attention);
    seen->attention_count = seen->attention ? pile.count : 0;
    if (seen->attention)
        memcpy(seen->attention, pile.items, pile.count * sizeof *pile.items);
}

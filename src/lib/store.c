/* The handle that callers have: opening, closing, event loops, and what passes through to the
 * store. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/locks/engine.h"

#include <stdio.h>

#include "lib/environment/environment.h"
#include "lib/registry/registry.h"
#include "lib/tables/tables.h"

enum {
    PING_INTERVAL_MS = 5000,
    PING_DEADLINE_MS = 10000,
    KILL_MS = 5000,
    CONNECT_TIMEOUT_MS = 10000,
    PATIENCE_MS = 60000,
    MAX_WAITS = 2,
    MAX_TRANSACTIONS = 16,
};

static int positive_or(int value, int otherwise)
{
    return value > 0 ? value : otherwise;
}

/* Callers built against an older header pass a smaller struct. */
static hf_status complete(const hf_store_options *given, hf_store_options *options, hf_error *err)
{
    const hf_store_options defaults = HF_STORE_OPTIONS_INIT;
    hf_status status = hf__options_copy(options, sizeof *options, given ? given : &defaults,
                                        offsetof(hf_store_options, application), "hf_store_options",
                                        "HF_STORE_OPTIONS_INIT", err);
    if (status != HF_OK)
        return status;
    options->size = sizeof *options;
    if (options->machine < 0 || options->machine > HF__MACHINE_MAX)
        return hf__fail(err, HF_INVALID, "machine %d is not between 1 and %d", options->machine,
                        HF__MACHINE_MAX);
    if (!options->application || !*options->application)
        options->application = "holdfast";
    options->ping_interval_ms = positive_or(options->ping_interval_ms, PING_INTERVAL_MS);
    options->ping_deadline_ms = positive_or(options->ping_deadline_ms, PING_DEADLINE_MS);
    options->kill_ms = positive_or(options->kill_ms, KILL_MS);
    options->connect_timeout_ms = positive_or(options->connect_timeout_ms, CONNECT_TIMEOUT_MS);
    options->max_waits = positive_or(options->max_waits, MAX_WAITS);
    options->max_transactions = positive_or(options->max_transactions, MAX_TRANSACTIONS);
    return HF_OK;
}

static hf_status new_store(const hf_store_options *options, hf_store **out, hf_error *err)
{
    hf_store *store = calloc(1, sizeof *store);
    if (!store)
        return hf__no_memory(err);
    store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->event_fd < 0) {
        free(store);
        return hf__fail(err, HF_SYSTEM, "cannot make an event descriptor: too many open files");
    }
    store->pid = getpid();
    store->dispatch = options->dispatch;
    store->ping_deadline_ms = options->ping_deadline_ms;
    store->patience_ms = options->patience_ms != 0 ? options->patience_ms : PATIENCE_MS;
    store->registry = options->registry;
    store->on_span = options->on_span;
    store->span_arg = options->span_arg;
    (void)snprintf(store->application, sizeof store->application, "%s", options->application);
    if (gethostname(store->host, sizeof store->host - 1) != 0)
        (void)snprintf(store->host, sizeof store->host, "unknown-host");
    store->lookup = hf__tables_new(options->machine);
    if (!store->lookup) {
        close(store->event_fd);
        free(store);
        return hf__no_memory(err);
    }
    pthread_mutex_init(&store->mutex, NULL);
    hf__cond_init(&store->changed);
    hf__cond_init(&store->attended_end);
    pthread_cond_init(&store->scribe_due, NULL);
    pthread_cond_init(&store->due, NULL);
    *out = store;
    return HF_OK;
}

static void free_store(hf_store *store)
{
    hf__known_free(store->known);
    hf_registry_free(store->own_registry);
    store->lookup->ops->free(store->lookup);
    close(store->event_fd);
    hf__cond_destroy(&store->attended_end);
    hf__cond_destroy(&store->changed);
    pthread_cond_destroy(&store->scribe_due);
    pthread_cond_destroy(&store->due);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

static hf_status check_url(const hf_store_options *options, bool *is_local, hf_error *err)
{
    if (!options->url || !*options->url) {
        hf_status status = hf__fail(err, HF_INVALID, "no store is named");
        hf__hint(err, "give postgresql://… or local:/path/to/folder");
        return status;
    }
    *is_local = strncmp(options->url, "local:", 6) == 0;
    return HF_OK;
}

static hf_status open_backend(const hf_store_options *options, hf__backend **backend, hf_error *err)
{
    bool is_local = false;
    hf_status status = check_url(options, &is_local, err);
    if (status != HF_OK)
        return status;
    return is_local ? hf__local_open(options, backend, err)
                    : hf__postgres_open(options, backend, err);
}

static hf_status open_with(const hf_store_options *options, hf_store **out, hf_error *err)
{
    hf_store *store = NULL;
    hf_status status = new_store(options, &store, err);
    if (status != HF_OK)
        return status;
    status = open_backend(options, &store->backend, err);
    if (status != HF_OK) {
        free_store(store);
        return status;
    }
    *out = store;
    return HF_OK;
}

/* Finds and reads the registry, if there is one. */
static hf_status find_registry(hf_registry **registry, hf_error *err)
{
    char *path = NULL;
    hf_status status = hf__environment_registry(&path, err);
    if (status == HF_OK && path)
        status = hf_registry_read(path, registry, err);
    free(path);
    return status;
}

static hf_status open_by_environment(hf_store_options *options, hf_store **out, hf_error *err)
{
    char *url = NULL;
    const char *variable = NULL;
    hf_registry *registry = NULL;
    hf_error why = {.code = HF_OK};
    hf_status status = hf__environment_options(options, &why);
    if (status == HF_OK && !options->registry)
        status = find_registry(&registry, &why);
    if (status == HF_OK && !options->url)
        status = hf__environment_url(&url, &variable, &why);
    if (status == HF_OK) {
        options->url = options->url ? options->url : url;
        options->registry = registry ? registry : options->registry;
        status = open_with(options, out, &why);
        if (status != HF_OK)
            status = hf__environment_blame(variable, &why);
    }
    free(url);
    if (status == HF_OK && *out) {
        (*out)->own_registry = registry;
        return HF_OK;
    }
    hf_registry_free(registry);
    if (err)
        *err = why;
    return status;
}

hf_status hf_store_open(const hf_store_options *given, hf_store **out, hf_error *err)
{
    hf_store_options options;
    if (!out)
        return hf__fail(err, HF_INVALID, "hf_store_open needs a place for the store");
    *out = NULL;
    hf_status status = complete(given, &options, err);
    if (status != HF_OK)
        return status;
    return options.environment ? open_by_environment(&options, out, err)
                               : open_with(&options, out, err);
}

hf_status hf_store_borrow(struct pg_conn *conn, const hf_store_options *given, hf_store **out,
                          hf_error *err)
{
    hf_store_options options;
    hf_store *store = NULL;
    if (!out)
        return hf__fail(err, HF_INVALID, "hf_store_borrow needs a place for the store");
    *out = NULL;
    hf_status status = complete(given, &options, err);
    if (status == HF_OK)
        status = new_store(&options, &store, err);
    if (status != HF_OK)
        return status;
    status = hf__postgres_borrow(conn, &options, &store->backend, err);
    if (status != HF_OK) {
        free_store(store);
        return status;
    }
    *out = store;
    return HF_OK;
}

static void release_leftovers(hf_store *store)
{
    hf_lock *lock;
    do {
        pthread_mutex_lock(&store->mutex);
        lock = store->locks;
        pthread_mutex_unlock(&store->mutex);
        if (lock)
            (void)!hf_lock_release(lock, NULL);
    } while (lock);
}

void hf_store_close(hf_store *store)
{
    if (!store)
        return;
    if (hf__check_process(store, NULL) != HF_OK) {
        store->backend->ops->forget(store->backend);
        close(store->event_fd);
        return; /* the rest is the parent's, copied; its mutexes may be locked for ever */
    }
    hf__attention_stop(store);
    hf__started_stop(store);
    hf__watch_stop(store); /* first: a callback may free the lock that is about to be released */
    hf__started_drop(store);
    release_leftovers(store);
    hf__scribe_stop(store);
    store->backend->ops->close(store->backend);
    free_store(store);
}

void hf_store_interrupt(hf_store *store)
{
    hf__interrupt_waits(store, true);
}

int hf_store_fd(const hf_store *store)
{
    return store->event_fd;
}

int hf_store_dispatch(hf_store *store)
{
    return store->dispatch ? hf__deliver(store) : 0;
}

const hf_registry *hf_store_registry(const hf_store *store)
{
    return store->registry;
}

bool hf_store_has_records(const hf_store *store)
{
    return atomic_load(&store->backend->records);
}

hf_status hf_store_init(hf_store *store, int *from, int *to, hf_error *err)
{
    hf_status status = hf__check_process(store, err);
    return status == HF_OK ? store->backend->ops->init(store->backend, from, to, err) : status;
}

hf_status hf_schedule_claim(hf_store *store, const char *label, int64_t period_ms, bool *due,
                            int64_t *wait_ms, hf_error *err)
{
    hf_status status = hf__check_process(store, err);
    if (status == HF_OK && (!label || !*label || period_ms <= 0))
        status = hf__fail(err, HF_INVALID, "a schedule needs a label and a period above zero");
    if (status != HF_OK)
        return status;
    return store->backend->ops->claim_schedule(store->backend, label, period_ms, due, wait_ms, err);
}

hf_status hf_store_examine(hf_store *store, hf_finding_fn *report, void *arg, hf_error *err)
{
    hf_status status = hf__check_process(store, err);
    if (status == HF_OK)
        status = store->backend->ops->examine(store->backend, report, arg, err);
    /* Nobody but Holdfast locks in a local store. */
    if (status == HF_OK && !store->backend->local)
        status = hf__examine_neighbours(store, report, arg, err);
    return status;
}

hf_status hf_store_prove(const hf_store_options *given, hf_finding_fn *report, void *arg,
                         hf_error *err)
{
    hf_store_options options;
    bool is_local = false;
    if (!report)
        return hf__fail(err, HF_INVALID, "hf_store_prove needs a function to report to");
    hf_status status = complete(given, &options, err);
    if (status == HF_OK)
        status = check_url(&options, &is_local, err);
    if (status != HF_OK)
        return status;
    return is_local ? hf__local_prove(&options, report, arg, err)
                    : hf__postgres_prove(&options, report, arg, err);
}

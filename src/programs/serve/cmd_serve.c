#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/choice.h"
#include "cli/notify.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stopping.h"
#include "programs/serve/serve.h"

enum { REFRESH_MIN_MS = 50, REFRESH_MAX_MS = 3600 * 1000, FILES_WANTED = 8192 };

struct serve_values {
    struct texts stores;
    const char *stores_file;
    const char *listen;
    struct number refresh;
    struct number max_lag;
    const char *token_file;
    const char *base_path;
    bool allow_terminate;
    bool show_queries;
};

static const struct option serve_options[] = {
    {
        .name = "store",
        .value = "NAME=URL",
        .help = "serve this store under this name; may be repeated",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct serve_values, stores),
    },
    {
        .name = "stores",
        .value = "FILE",
        .help = "the same, a line of NAME URL each; for URLs with a password",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct serve_values, stores_file),
    },
    {
        .name = "listen",
        .value = "HOST:PORT",
        .help = "default 127.0.0.1:7433; port 0 picks one",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct serve_values, listen),
    },
    {
        .name = "refresh",
        .value = "TIME",
        .help = "read the store this often (default: 2s)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct serve_values, refresh),
        .low = REFRESH_MIN_MS,
        .high = REFRESH_MAX_MS,
    },
    {
        .name = "max-lag",
        .value = "LEDGERS",
        .help = "/health fails when a network is further behind its source",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct serve_values, max_lag),
        .low = 0,
        .high = INT32_MAX,
    },
    {
        .name = "token-file",
        .value = "FILE",
        .help = "who may look: one token, or lines of NAME read|admin TOKEN",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct serve_values, token_file),
    },
    {
        .name = "base-path",
        .value = "PATH",
        .help = "the path under which a reverse proxy has it, such as /holdfast",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct serve_values, base_path),
    },
    {
        .name = "allow-terminate",
        .help = "holders may be ended from the page; takes a token",
        .offset = offsetof(struct serve_values, allow_terminate),
    },
    {
        .name = "show-queries",
        .help = "show the SQL text of sessions, which may hold secrets",
        .offset = offsetof(struct serve_values, show_queries),
    },
    {0},
};

/* The usual limit is too low for a thousand viewers. */
static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= FILES_WANTED)
        return;
    limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Says of which store a warning is, where there are several. */
struct named_log {
    const struct report *report;
    const char *name;
};

struct serve {
    struct serve_values values;
    struct invocation in;
    hf_registry *registry;
    hf__tokens tokens;
    hf__named_stores named; /* none: the one of --url or the environment */
    size_t count;
    struct store_choice choices[HF__STORES_MAX];
    hf__server_store stores[HF__STORES_MAX];
    struct named_log logs[HF__STORES_MAX];
    hf__server *server;
    struct stopping stopping;
};

static void log_by_name(void *arg, hf_log_level level, const char *message)
{
    const struct named_log *log = arg;
    hf__buf text = {0};

    hf__buf_printf(&text, "store %s: %s", log->name, message);
    report_log((void *)(uintptr_t)log->report, level, text.data != NULL ? text.data : message);
    hf__buf_free(&text);
}

/* Fills in the store of this number. Of several one that is down must not keep the others away. */
static hf_status prepare(struct serve *serve, size_t number, hf_error *err)
{
    const struct serve_values *values = &serve->values;
    hf__server_store *store = &serve->stores[number];
    struct invocation in = serve->in;

    *store = (hf__server_store){.name = "",
                                .view = {.store = HF_STORE_OPTIONS_INIT,
                                         .refresh_ms = values->refresh.value,
                                         .keep_history = true,
                                         .show_queries = values->show_queries,
                                         .max_lag = values->max_lag.value,
                                         .patient = serve->count > 1}};
    if (serve->named.count > 0) {
        store->name = serve->named.items[number].name;
        in.common.url = serve->named.items[number].url;
    }
    hf_status status = prepare_store(&in, &store->view.store, &serve->choices[number], err);
    store->view.store.application = "holdfast serve";
    store->view.store.registry = serve->registry;
    store->view.store.log_arg = &serve->in.report;
    if (serve->count > 1) {
        serve->logs[number] = (struct named_log){&serve->in.report, store->name};
        store->view.store.log = log_by_name;
        store->view.store.log_arg = &serve->logs[number];
    }
    return status;
}

static hf_status read_values(struct serve *serve, hf_error *err)
{
    const struct serve_values *values = &serve->values;
    hf_status status = HF_OK;

    if (values->stores_file != NULL)
        status = hf__stores_read(&serve->named, values->stores_file, err);
    if (status == HF_OK && values->token_file != NULL)
        status = hf__tokens_read(values->token_file, &serve->tokens, err);
    if (status == HF_OK)
        status = open_registry(&serve->in.common, &serve->registry, err);
    serve->count = serve->named.count > 0 ? serve->named.count : 1;
    for (size_t i = 0; status == HF_OK && i < serve->count; i++)
        status = prepare(serve, i, err);
    return status;
}

static hf_status open_server(struct serve *serve, hf_error *err)
{
    const struct serve_values *values = &serve->values;
    const hf__server_options options = {
        .listen = values->listen != NULL ? values->listen : "127.0.0.1:7433",
        .tokens = &serve->tokens,
        .base = values->base_path,
        .allow_terminate = values->allow_terminate,
        .max_lag = {.known = values->max_lag.given, .value = values->max_lag.value},
        .refresh_ms = values->refresh.value,
    };
    hf_status status = hf__server_open(&options, serve->stores, serve->count, &serve->server, err);

    if (status == HF_UNREACHABLE || status == HF_NO_SCHEMA || status == HF_DATABASE)
        return name_store_choice(&serve->choices[0], err);
    return status;
}

static void say_where(const struct serve *serve)
{
    hf__json json = {0};

    if (!serve->in.report.json) {
        printf("listening on %s\n", hf__server_url(serve->server));
        fflush(stdout);
        return;
    }
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "listening", hf__server_url(serve->server));
    hf__json_end_object(&json);
    (void)!print_document(&json, stdout);
}

/* Serves until it is told to stop. */
static void serve_viewers(struct serve *serve)
{
    say_where(serve);
    notify_service_manager("READY=1\nSTATUS=listening on %s", hf__server_url(serve->server));
    (void)hf__stop_pause(&serve->stopping.stop, -1);
    notify_service_manager("STOPPING=1");
}

static int run(struct serve *serve)
{
    const struct report *report = &serve->in.report;
    const struct stopping_options stopping = {0};
    hf_error err;

    if (read_values(serve, &err) != HF_OK ||
        stopping_init(&serve->stopping, &stopping, &err) != HF_OK ||
        stopping_start(&serve->stopping, &err) != HF_OK)
        return report_error(report, &err);
    hf_status status = open_server(serve, &err); /* waits for the store */
    if (status == HF_OK) {
        stopping_work(&serve->stopping, NULL);
        serve_viewers(serve);
    }
    stopping_end(&serve->stopping);
    return status == HF_OK ? EXIT_OK : report_error(report, &err);
}

/* What is wrong with the options together, or NULL. */
static const char *find_fault(struct serve *serve, hf_error *err)
{
    const struct serve_values *values = &serve->values;

    if (values->allow_terminate && values->token_file == NULL)
        return "--allow-terminate takes --token-file";
    if (values->base_path != NULL && !hf__is_base_path(values->base_path))
        return "--base-path begins with a slash and does not end with one: /holdfast";
    if (serve->in.common.url != NULL && (values->stores.count > 0 || values->stores_file != NULL))
        return "--url names the only store; of several each has a name: --store NAME=URL";
    for (size_t i = 0; i < values->stores.count; i++)
        if (hf__stores_add(&serve->named, values->stores.items[i], err) != HF_OK)
            return err->message;
    return NULL;
}

static int serve_with(struct serve *serve, const struct command *self)
{
    hf_error err;
    const char *fault = find_fault(serve, &err);

    if (fault != NULL)
        return report_usage(&serve->in.report, self, "%s", fault);
    block_stop_signals();
    allow_many_files();
    return run(serve);
}

static int serve_main(const struct command *self, int argc, char **argv)
{
    struct serve serve = {.stopping = {.stop = {.fd = -1}}};
    int code = EXIT_OK;

    if (parse_options(self, argc, argv, &serve.values, &serve.in, &code))
        code = serve_with(&serve, self);
    hf__server_close(serve.server);
    for (size_t i = 0; i < serve.count; i++)
        store_choice_free(&serve.choices[i]);
    hf__stores_free(&serve.named);
    hf_registry_free(serve.registry);
    hf__tokens_free(&serve.tokens);
    stopping_destroy(&serve.stopping);
    free(serve.values.stores.items);
    return code;
}

const struct command cmd_serve = {
    .name = "serve",
    .summary = "Show every lock: a page, REST and metrics.",
    .usage = "[--store NAME=URL]... [--stores FILE] [--listen HOST:PORT] [--refresh TIME] "
             "[--max-lag LEDGERS] [--token-file FILE] "
             "[--base-path PATH] [--allow-terminate] [--show-queries]",
    .options = serve_options,
    .main = serve_main,
};

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/error.h"
#include "cli/choice.h"
#include "cli/notify.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stopping.h"
#include "programs/serve/serve.h"

enum { REFRESH_MIN_MS = 50, REFRESH_MAX_MS = 3600 * 1000, FILES_WANTED = 8192 };

struct serve_values {
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

struct serve {
    struct serve_values values;
    struct invocation in;
    struct store_choice choice;
    hf_registry *registry;
    hf__tokens tokens;
    hf__view_options view;
    hf__server *server;
    struct stopping stopping;
};

static hf_status read_values(struct serve *serve, hf_error *err)
{
    const struct serve_values *values = &serve->values;
    hf_status status = HF_OK;

    if (values->token_file != NULL)
        status = hf__tokens_read(values->token_file, &serve->tokens, err);
    if (status == HF_OK)
        status = open_registry(&serve->in.common, &serve->registry, err);
    serve->view.store = (hf_store_options)HF_STORE_OPTIONS_INIT;
    if (status == HF_OK)
        status = prepare_store(&serve->in, &serve->view.store, &serve->choice, err);
    serve->view.store.application = "holdfast serve";
    serve->view.store.registry = serve->registry;
    serve->view.refresh_ms = values->refresh.given ? values->refresh.value : 0;
    serve->view.keep_history = true;
    serve->view.show_queries = values->show_queries;
    serve->view.max_lag = values->max_lag.given ? values->max_lag.value : 0;
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
        .refresh_ms = serve->view.refresh_ms,
    };
    hf_status status = hf__server_open(&options, &serve->view, &serve->server, err);

    if (status == HF_UNREACHABLE || status == HF_NO_SCHEMA || status == HF_DATABASE)
        return name_store_choice(&serve->choice, err);
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

static int serve_main(const struct command *self, int argc, char **argv)
{
    struct serve serve = {.stopping = {.stop = {.fd = -1}}};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &serve.values, &serve.in, &code))
        return code;
    if (serve.values.allow_terminate && serve.values.token_file == NULL)
        return report_usage(&serve.in.report, self, "--allow-terminate takes --token-file");
    if (serve.values.base_path != NULL && !hf__is_base_path(serve.values.base_path))
        return report_usage(&serve.in.report, self,
                            "--base-path begins with a slash and does not end with one: /holdfast");
    block_stop_signals();
    allow_many_files();
    code = run(&serve);
    hf__server_close(serve.server);
    store_choice_free(&serve.choice);
    hf_registry_free(serve.registry);
    hf__tokens_free(&serve.tokens);
    stopping_destroy(&serve.stopping);
    return code;
}

const struct command cmd_serve = {
    .name = "serve",
    .summary = "Show every lock: a page, REST and metrics.",
    .usage = "[--listen HOST:PORT] [--refresh TIME] [--max-lag LEDGERS] [--token-file FILE] "
             "[--base-path PATH] [--allow-terminate] [--show-queries]",
    .options = serve_options,
    .main = serve_main,
};

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "programs/top/run.h"
#include "programs/top/screen.h"

struct top_values {
    bool once;
    const char *tab;
    struct number refresh;
    const char *filter;
    const char *sort;
    bool show_queries;
};

static const struct option top_options[] = {
    {
        .name = "once",
        .help = "print one frame and exit: all rows, as text, or with --json",
        .offset = offsetof(struct top_values, once),
    },
    {
        .name = "tab",
        .value = "NAME",
        .help = "begin with locks (default), waits, ingest or events",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct top_values, tab),
    },
    {
        .name = "refresh",
        .value = "TIME",
        .help = "how often to look, from 250ms to 1m (default: 2s)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct top_values, refresh),
        .low = HF__REFRESH_LEAST_MS,
        .high = HF__REFRESH_MOST_MS,
    },
    {
        .name = "filter",
        .value = "TEXT",
        .help = "only what has this in its label, name, key, holder or host",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct top_values, filter),
    },
    {
        .name = "sort",
        .value = "COLUMN",
        .help = "order by this column; -COLUMN is the other way round",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct top_values, sort),
    },
    {
        .name = "show-queries",
        .help = "what sessions run, in their details: it may hold secrets",
        .offset = offsetof(struct top_values, show_queries),
    },
    {0},
};

/* ---- options ---- */

static int refuse_word(const struct invocation *in, const char *option, const char *word,
                       hf__buf *known)
{
    char shown[SHOWN_MAX];
    hf_error err;

    hf__set_error(&err, HF_INVALID, "--%s cannot be '%s'", option, show_argument(shown, word));
    hf__hint(&err, "give one of %s", known->broken ? "its names" : known->data);
    hf__buf_free(known);
    return report_error(&in->report, &err);
}

static int read_values(const struct top_values *values, const struct invocation *in, hf__top *top)
{
    hf__buf known = {0};

    if (values->tab != NULL && !hf__top_choose_tab(top, values->tab)) {
        hf__top_list_tabs(&known);
        return refuse_word(in, "tab", values->tab, &known);
    }
    if (values->sort != NULL && !hf__top_choose_sort(top, values->sort)) {
        hf__top_list_columns(top, &known);
        return refuse_word(in, "sort", values->sort, &known);
    }
    if (values->filter != NULL)
        hf__top_choose_filter(top, values->filter);
    if (values->refresh.given)
        top->refresh_ms = values->refresh.value;
    top->ascii = !output_is_utf8();
    return EXIT_OK;
}

/* ---- one frame ---- */

/* Scripts get whole lines, unless they set a width. */
static size_t width_for_scripts(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int64_t width = 0;

    if (columns != NULL && hf__parse_int64(columns, "COLUMNS", 1, 10000, &width, NULL) == HF_OK)
        return (size_t)width;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return SIZE_MAX;
}

static bool print_lines(const hf__frame *frame)
{
    for (size_t i = 0; i < frame->count; i++) {
        const hf__buf *text = &frame->lines[i].text;
        size_t length = text->length;
        while (length > 0 && text->data[length - 1] == ' ')
            length--;
        if (length > 0)
            fwrite(text->data, 1, length, stdout);
        putchar('\n');
    }
    return !frame->broken && fflush(stdout) == 0;
}

static bool print_frame(hf__top *top)
{
    hf__frame frame = {0};

    hf__top_print(top, width_for_scripts(), &frame);
    bool printed = print_lines(&frame);
    hf__frame_free(&frame);
    return printed && !top->broken;
}

static hf_status show_once(const hf__top_run *run, bool as_json, hf__top *top, hf_error *err)
{
    hf__view_options options = run->view;
    hf__view *view = NULL;
    hf__json json = {0};
    bool printed;

    options.refresh_ms = HF__REFRESH_MOST_MS; /* there will be no second one */
    hf_status status = hf__view_open(&options, &view, err);
    if (status != HF_OK)
        return status;
    hf__snapshot *seen = hf__view_latest(view);
    top->now_ms = hf__wall_ms();
    hf__top_see(top, seen);
    if (as_json) {
        hf__top_print_json(top, &json);
        printed = print_document(&json, stdout);
    } else {
        printed = print_frame(top);
    }
    hf__top_see(top, NULL);
    hf__snapshot_release(seen);
    hf__view_close(view);
    return printed ? HF_OK : hf__fail(err, HF_SYSTEM, "cannot write the frame");
}

/* ---- the command ---- */

/* The records name the user who ends a holder. */
static void name_user(char *out, size_t out_size)
{
    const struct passwd *user = getpwuid(geteuid());
    char host[64] = "";

    (void)gethostname(host, sizeof host - 1);
    snprintf(out, out_size, "%.24s on %.24s", user != NULL ? user->pw_name : "somebody", host);
}

static int run_top(const struct top_values *values, const struct invocation *in, hf__top *top)
{
    hf__top_run run = {
        .view = {.store = HF_STORE_OPTIONS_INIT, .show_queries = values->show_queries},
        .colour = wants_colour(STDOUT_FILENO),
    };
    struct store_choice choice = {0};
    hf_registry *registry = NULL;
    char by[64];
    hf_error err;

    name_user(by, sizeof by);
    run.by = by;
    run.view.store.application = "holdfast top";
    hf_status status = values->once ? HF_OK : hf__screen_check(&err);
    if (status == HF_OK)
        status = open_registry(&in->common, &registry, &err);
    run.view.store.registry = registry;
    if (status == HF_OK)
        status = prepare_store(in, &run.view.store, &choice, &err);
    if (status == HF_OK) {
        status = values->once ? show_once(&run, in->common.json, top, &err)
                              : hf__top_run_on(&run, top, &err);
        if (status != HF_OK)
            status = name_store_choice(&choice, &err);
    }
    store_choice_free(&choice);
    hf_registry_free(registry);
    return status == HF_OK ? EXIT_OK : report_error(&in->report, &err);
}

static int top_main(const struct command *self, int argc, char **argv)
{
    struct top_values values = {0};
    struct invocation in = {0};
    int code = EXIT_OK;
    hf__top top;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (in.common.json && !values.once)
        return report_usage(&in.report, self, "--json goes with --once");
    prepare_for_tables();
    hf__top_init(&top);
    code = read_values(&values, &in, &top);
    if (code == EXIT_OK)
        code = run_top(&values, &in, &top);
    hf__top_free(&top);
    return code;
}

const struct command cmd_top = {
    .name = "top",
    .summary = "Show every lock in the terminal: who holds it, who waits, what happened.",
    .usage = "[--tab NAME] [--refresh TIME] [--filter TEXT] [--sort COLUMN] [--show-queries]\n"
             "--once [--json] [--tab NAME] [--filter TEXT] [--sort COLUMN]",
    .options = top_options,
    .main = top_main,
};

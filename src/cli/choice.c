#include "cli/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/load.h"

/* The variables that only somebody who means a PostgreSQL server sets. */
static const char *const libpq_variables[] = {
    "PGSERVICE", "PGHOST",     "PGHOSTADDR", "PGPORT",        "PGDATABASE",
    "PGUSER",    "PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE",
};

static const char *libpq_variable_set(void)
{
    for (size_t i = 0; i < sizeof libpq_variables / sizeof libpq_variables[0]; i++)
        if (getenv(libpq_variables[i]) != NULL)
            return libpq_variables[i];
    return NULL;
}

static hf_status take(struct store_choice *choice, const char *variable, hf__buf *url,
                      hf_error *err)
{
    if (url->broken) {
        hf__buf_free(url);
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    }
    choice->variable = variable;
    choice->url = url->data;
    return HF_OK;
}

static hf_status take_text(struct store_choice *choice, const char *variable, const char *text,
                           hf_error *err)
{
    hf__buf url = {0};

    if (text[0] == '\0') {
        /* An unset variable in a script's "$URL" must not lead to another store. */
        hf_status status = variable != NULL ? hf__fail(err, HF_CONFIG, "%s is empty", variable)
                                            : hf__fail(err, HF_INVALID, "--url is empty");
        hf__hint(err, "give it a URL, or leave it out to use the next choice");
        return status;
    }
    hf__buf_puts(&url, text);
    return take(choice, variable, &url, err);
}

/* XDG's rule: a relative path is ignored. */
static hf_status take_local(struct store_choice *choice, hf_error *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    hf__buf url = {0};

    if (state != NULL && state[0] == '/') {
        hf__buf_printf(&url, "local:%s/holdfast", state);
    } else if (home != NULL && home[0] == '/') {
        hf__buf_printf(&url, "local:%s/.local/state/holdfast", home);
    } else {
        hf_status status = hf__fail(err, HF_CONFIG, "no store: HOME is not set");
        hf__hint(err, "give --url or set HOLDFAST_URL");
        return status;
    }
    return take(choice, NULL, &url, err);
}

hf_status choose_store(const struct common *common, struct store_choice *choice, hf_error *err)
{
    const char *text = NULL;

    *choice = (struct store_choice){0};
    if (common->url != NULL)
        return take_text(choice, NULL, common->url, err);
    if ((text = getenv("HOLDFAST_URL")) != NULL)
        return take_text(choice, "HOLDFAST_URL", text, err);
    if ((text = getenv("DATABASE_URL")) != NULL)
        return take_text(choice, "DATABASE_URL", text, err);
    if ((text = libpq_variable_set()) != NULL)
        return take_text(choice, text, "postgresql://", err);
    return take_local(choice, err);
}

void store_choice_free(struct store_choice *choice)
{
    free(choice->url);
    choice->url = NULL;
}

static bool session_pool_stated(const struct common *common)
{
    const char *text = getenv("HOLDFAST_SESSION_POOL");

    return common->session_pool || (text != NULL && strcmp(text, "1") == 0);
}

/* The machine number of minted ids; 0: leased from the store. */
static hf_status read_machine(int *machine, hf_error *err)
{
    const char *text = getenv("HOLDFAST_MACHINE");
    int64_t number = 0;

    if (text == NULL || *machine != 0)
        return HF_OK;
    if (hf__parse_int64(text, "HOLDFAST_MACHINE", 1, 1023, &number, err) != HF_OK) {
        if (err != NULL)
            err->code = HF_CONFIG; /* no fault of the usage */
        return HF_CONFIG;
    }
    *machine = (int)number;
    return HF_OK;
}

hf_status prepare_store(const struct invocation *in, hf_store_options *options,
                        struct store_choice *choice, hf_error *err)
{
    hf_status status = read_machine(&options->machine, err);

    *choice = (struct store_choice){0};
    if (status == HF_OK)
        status = choose_store(&in->common, choice, err);
    if (status != HF_OK)
        return status;
    options->url = choice->url;
    options->session_pool = session_pool_stated(&in->common);
    options->log = report_log;
    options->log_arg = (void *)&in->report;
    status = strncmp(choice->url, "local:", 6) == 0 ? load_sqlite(err) : load_libpq(err);
    return status == HF_OK ? load_libcrypto(err) : status;
}

hf_status name_store_choice(const struct store_choice *choice, hf_error *err)
{
    hf_error plain = *err;
    hf_status code = plain.code == HF_INVALID ? HF_CONFIG : plain.code; /* no fault of the usage */

    if (choice->variable == NULL)
        return plain.code;
    hf_status status =
        hf__fail(err, code, "%s (the store is from %s)", plain.message, choice->variable);
    hf__hint(err, "%s", plain.hint);
    memcpy(err->sqlstate, plain.sqlstate, sizeof err->sqlstate);
    return status;
}

hf_status open_store(const struct invocation *in, hf_store_options *options, hf_store **store,
                     hf_error *err)
{
    struct store_choice choice;
    hf_status status = prepare_store(in, options, &choice, err);

    if (status == HF_OK)
        status = hf_store_open(options, store, err);
    options->url = NULL;
    if (status != HF_OK && choice.url != NULL)
        status = name_store_choice(&choice, err);
    store_choice_free(&choice);
    return status;
}

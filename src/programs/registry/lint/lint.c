#include "programs/registry/lint/lint.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/registry/lint/check.h"
#include "programs/registry/lint/files/walk.h"
#include "programs/registry/lint/wrappers.h"

struct seen {
    dev_t device;
    ino_t inode;
};

struct hf__lint {
    const hf__lint_options *options;
    hf__use_finder *finder;
    hf__project project;
    int round;
    bool learning; /* this round only looks at what files tell about each other */
    hf__pcre *ignores;
    hf__pcre *statements[HF__STATEMENT_PATTERNS];
    hf__pcre *patterns[HF__CHECK_PATTERNS];
    hf__lint_totals totals;
    hf__sites ledger;
    hf__findings *findings; /* where findings of the current path go */
    char *text;             /* of the current file */
    size_t room;
    void *seen; /* a tree of struct seen */
};

static hf_status compile_all(hf__lint *lint, hf_error *err)
{
    hf_status status = hf__use_finder_new(&lint->finder, err);

    if (status == HF_OK)
        status = hf__pcre_compile(hf__ignore_pattern, &lint->ignores, err);
    for (size_t i = 0; status == HF_OK && i < HF__STATEMENT_PATTERNS; i++)
        status = hf__pcre_compile(hf__statement_patterns[i], &lint->statements[i], err);
    for (size_t i = 0; status == HF_OK && i < HF__CHECK_PATTERNS; i++)
        status = hf__pcre_compile(hf__check_patterns[i], &lint->patterns[i], err);
    if (status == HF_OK && lint->options->match_limit > 0)
        hf__use_finder_limit(lint->finder, lint->options->match_limit);
    return status;
}

hf_status hf__lint_new(const hf__lint_options *options, hf__lint **lint, hf_error *err)
{
    hf__lint *made = calloc(1, sizeof *made);
    hf_status status;

    if (made == NULL)
        return hf__no_memory(err);
    made->options = options;
    made->ledger.keeps = options->list;
    status = compile_all(made, err);
    hf__wrappers_declare(&made->project, options->registry);
    if (status == HF_OK)
        *lint = made;
    else
        hf__lint_free(made);
    return status;
}

void hf__lint_free(hf__lint *lint)
{
    if (lint == NULL)
        return;
    hf__use_finder_free(lint->finder);
    hf__project_free(&lint->project);
    hf__pcre_free(lint->ignores);
    for (size_t i = 0; i < HF__STATEMENT_PATTERNS; i++)
        hf__pcre_free(lint->statements[i]);
    for (size_t i = 0; i < HF__CHECK_PATTERNS; i++)
        hf__pcre_free(lint->patterns[i]);
    hf__sites_free(&lint->ledger);
    tdestroy(lint->seen, free);
    free(lint->text);
    free(lint);
}

hf__lint_totals hf__lint_totals_of(const hf__lint *lint)
{
    return lint->totals;
}

const hf__sites *hf__lint_sites_of(const hf__lint *lint)
{
    return &lint->ledger;
}

/* ---- The text of one file -------------------------------------------------------------------- */

static void report_limit(hf__check *check)
{
    if (check->uses->incomplete || check->statements->incomplete)
        hf__check_report(
            check, HF__RULE_MATCH_LIMIT, 0, HF__CERTAIN,
            "split the file, or leave it out by .gitignore when it is generated",
            "the file is too hard to search: what follows from here on was not checked");
}

static hf_status check_uses(hf__check *check, hf_error *err)
{
    hf_status status = hf__check_against_registry(check, err);

    if (status != HF_OK)
        return status;
    hf__check_keys(check);
    hf__check_unlocks(check);
    hf__check_snapshots(check);
    report_limit(check);
    hf__check_ignores(check);
    return HF_OK;
}

static hf_status learn_unit(hf__lint *lint, hf__file_facts *facts, hf_error *err)
{
    hf__scope scope = hf__file_scope(lint->finder, facts, &lint->project);
    hf__uses uses = {0};
    hf_status status = hf__uses_find(lint->finder, &scope, &uses, err);

    if (status != HF_OK)
        return status;
    hf__wrappers_learn(&lint->project, facts, &uses);
    hf__definitions_learn(&scope);
    for (size_t i = 0; i < uses.count; i++) {
        const hf__use *use = &uses.items[i];
        if (use->calls != NULL)
            hf__project_count_call(&lint->project, use->calls,
                                   use->key.kind == HF__KEY_UNKNOWN && use->wraps == NULL);
    }
    hf__uses_free(&uses);
    return lint->project.broken || facts->names.broken ? hf__no_memory(err) : HF_OK;
}

/* Calls of mappers matter only in functions that take a lock. */
static hf_status find_statements(hf__lint *lint, const hf__unit *unit, const hf__uses *uses,
                                 hf__statements *statements, hf_error *err)
{
    size_t from = unit->size;
    size_t to = 0;

    for (size_t i = 0; i < uses->count; i++) {
        size_t block = uses->items[i].block;
        if (uses->items[i].unlocks || block == HF__NO_BLOCK)
            continue;
        while (unit->blocks[block].parent != HF__NO_BLOCK)
            block = unit->blocks[block].parent;
        from = unit->blocks[block].start < from ? unit->blocks[block].start : from;
        to = unit->blocks[block].end > to ? unit->blocks[block].end : to;
    }
    return hf__statements_find(unit, lint->statements, from, to, statements, err);
}

static hf_status check_unit(hf__lint *lint, hf__file_facts *facts, hf__findings *findings,
                            hf_error *err)
{
    const hf__unit *unit = facts->unit;
    hf__scope scope = hf__file_scope(lint->finder, facts, &lint->project);
    hf__uses uses = {0};
    hf__statements statements = {0};
    hf__ignores ignores = {0};
    hf__check check = {
        .options = lint->options,
        .unit = unit,
        .uses = &uses,
        .statements = &statements,
        .patterns = lint->patterns,
        .ignores = &ignores,
        .findings = findings,
        .totals = &lint->totals,
        .ledger = &lint->ledger,
        .facts = facts,
    };
    hf_status status = hf__ignores_read(&ignores, unit, lint->ignores, err);

    if (status == HF_OK)
        status = hf__uses_find(lint->finder, &scope, &uses, err);
    if (status == HF_OK)
        hf__wrappers_learn(&lint->project, facts, &uses);
    if (status == HF_OK && uses.count > 0)
        status = find_statements(lint, unit, &uses, &statements, err);
    if (status == HF_OK)
        status = check_uses(&check, err);
    hf__statements_free(&statements);
    hf__uses_free(&uses);
    hf__ignores_free(&ignores);
    return status;
}

static bool is_of_interest(hf__lint *lint, const char *text, size_t size)
{
    hf__pcre_match match;

    /*
     * After the first round only what mentions a new name can tell something new, and after the
     * first file that loads Holdfast, what was read before it.
     */
    if (lint->learning && lint->round > (lint->project.loads_holdfast ? 1 : 0))
        return lint->project.names != NULL &&
               hf__pcre_find(lint->project.names, text, size, 0, &match) != HF__PCRE_NOT_FOUND;
    return hf__use_finder_may_use(lint->finder, text, size) != HF__PCRE_NOT_FOUND ||
           (lint->project.loads_holdfast && memmem(text, size, "tore.", 5) != NULL) ||
           (lint->project.names != NULL &&
            hf__pcre_find(lint->project.names, text, size, 0, &match) != HF__PCRE_NOT_FOUND);
}

/* text ends with a NUL after size bytes. */
static hf_status lint_text(hf__lint *lint, const char *path, const char *text, size_t size,
                           hf__findings *findings, hf_error *err)
{
    const hf__syntax *syntax = hf__syntax_of(path);
    hf__file_facts facts = {0};
    hf__unit unit;
    hf_status status;

    lint->totals.files += !lint->learning;
    if (!is_of_interest(lint, text, size))
        return HF_OK;
    status =
        hf__unit_open(&unit, path, syntax != NULL ? syntax : &hf__text_syntax, text, size, err);
    if (status != HF_OK)
        return status;
    status = hf__file_facts_read(lint->finder, &unit, &facts, err);
    if (status == HF_OK)
        status = lint->learning ? learn_unit(lint, &facts, err)
                                : check_unit(lint, &facts, findings, err);
    hf__file_facts_free(&facts);
    hf__unit_close(&unit);
    return status;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* How far a wrapper of a wrapper is followed. What is not found by then is not resolved. */
enum { ROUNDS_MAX = 6 };

static hf_status begin_round(hf__lint *lint, hf_error *err)
{
    for (size_t i = 0; i < lint->project.wrapper_count; i++) {
        lint->project.wrappers[i].calls = 0;
        lint->project.wrappers[i].unresolved = 0;
        lint->project.wrappers[i].hidden = false;
    }
    tdestroy(lint->seen, free);
    lint->seen = NULL;
    return hf__project_compile(&lint->project, err);
}

/* Goes over everything until nothing new is learned, then once more to check it. */
static hf_status go_over(hf__lint *lint, hf_status (*visit)(hf__lint *, const void *, hf_error *),
                         const void *arg, hf_error *err)
{
    hf_status status = HF_OK;

    lint->learning = true;
    for (int round = 0; status == HF_OK && (round == 0 || lint->project.grown); round++) {
        if (round == ROUNDS_MAX)
            break;
        lint->round = round;
        status = begin_round(lint, err);
        if (status == HF_OK)
            status = visit(lint, arg, err);
    }
    lint->learning = false;
    if (status == HF_OK && lint->project.grown)
        status = hf__project_compile(&lint->project, err);
    tdestroy(lint->seen, free);
    lint->seen = NULL;
    return status == HF_OK ? visit(lint, arg, err) : status;
}

struct memory {
    const char *path;
    const char *text;
    size_t size;
};

static hf_status visit_memory(hf__lint *lint, const void *arg, hf_error *err)
{
    const struct memory *memory = arg;

    return lint_text(lint, memory->path, memory->text, memory->size, lint->findings, err);
}

hf_status hf__lint_text(hf__lint *lint, const char *path, const char *text, size_t size,
                        hf__findings *findings, hf_error *err)
{
    char *copy = malloc(size + 1);
    struct memory memory = {path, copy, size};
    hf_status status;

    if (copy == NULL)
        return hf__no_memory(err);
    memcpy(copy, text, size);
    copy[size] = '\0';
    lint->findings = findings;
    status = go_over(lint, visit_memory, &memory, err);
    free(copy);
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static hf_status skip(hf__lint *lint, const char *path, const char *why)
{
    lint->totals.skipped += !lint->learning;
    if (why != NULL && lint->options->warn != NULL && !lint->learning)
        lint->options->warn(lint->options->warn_arg, path, why);
    return HF_OK;
}

static int by_identity(const void *a, const void *b)
{
    const struct seen *x = a;
    const struct seen *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Two paths may lead to one file, as in `lint . src`. */
static hf_status note_seen(hf__lint *lint, const struct stat *status, bool *again, hf_error *err)
{
    struct seen *seen = malloc(sizeof *seen);
    struct seen **node;

    if (seen == NULL)
        return hf__no_memory(err);
    *seen = (struct seen){status->st_dev, status->st_ino};
    node = tsearch(seen, &lint->seen, by_identity);
    *again = node != NULL && *node != seen;
    if (node == NULL || *again)
        free(seen);
    return node != NULL ? HF_OK : hf__no_memory(err);
}

static bool make_room(hf__lint *lint, size_t size)
{
    if (size + 1 <= lint->room)
        return true;
    char *larger = realloc(lint->text, size + 1);
    if (larger == NULL)
        return false;
    lint->text = larger;
    lint->room = size + 1;
    return true;
}

/* Reads up to size bytes. -1 and errno: it failed. */
static ssize_t read_all(int fd, char *text, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = read(fd, text + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static hf_status lint_open_file(hf__lint *lint, int fd, const char *path, hf_error *err)
{
    struct stat status;
    bool again = false;
    hf_status seen;

    if (fstat(fd, &status) != 0)
        return skip(lint, path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return skip(lint, path, "not a plain file");
    seen = note_seen(lint, &status, &again, err);
    if (seen != HF_OK || again)
        return seen;
    if (status.st_size > HF__LINT_FILE_MAX)
        return skip(lint, path, "larger than 8 MiB, not looked at");
    if (!make_room(lint, (size_t)status.st_size))
        return hf__no_memory(err);

    ssize_t size = read_all(fd, lint->text, (size_t)status.st_size);
    if (size < 0)
        return skip(lint, path, strerror(errno));
    if (memchr(lint->text, '\0', (size_t)size) != NULL)
        return skip(lint, path, NULL);
    lint->text[size] = '\0';
    return lint_text(lint, path, lint->text, (size_t)size, lint->findings, err);
}

static hf_status lint_file(void *arg, int folder, const char *name, const char *path, hf_error *err)
{
    hf__lint *lint = arg;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    hf_status status;

    if (fd < 0)
        return skip(lint, path, strerror(errno));
    status = lint_open_file(lint, fd, path, err);
    close(fd);
    return status;
}

static void warn_of_folder(void *arg, const char *path, const char *why)
{
    const hf__lint *lint = arg;

    if (lint->options->warn != NULL && !lint->learning)
        lint->options->warn(lint->options->warn_arg, path, why);
}

struct paths {
    const char *const *items;
    size_t count;
};

static hf_status visit_paths(hf__lint *lint, const void *arg, hf_error *err)
{
    const struct paths *paths = arg;
    hf_status status = HF_OK;
    hf__walker walker = {
        .file = lint_file,
        .warn = warn_of_folder,
        .arg = lint,
        .includes = lint->options->includes,
        .include_count = lint->options->include_count,
        .excludes = lint->options->excludes,
        .exclude_count = lint->options->exclude_count,
        .vendored = lint->options->vendored,
        .vendored_out = lint->learning ? NULL : &lint->totals.vendored,
    };

    for (size_t i = 0; status == HF_OK && i < paths->count; i++)
        status = hf__walk(&walker, paths->items[i], err);
    return status;
}

hf_status hf__lint_paths(hf__lint *lint, const char *const *paths, size_t count,
                         hf__findings *findings, hf_error *err)
{
    lint->findings = findings;
    return go_over(lint, visit_paths, &(struct paths){paths, count}, err);
}

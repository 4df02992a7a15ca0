/*
 * A first registry, from what the source code and a store tell. Nothing is guessed: after the locks
 * of the source were written down, the source is examined once more with that very registry, and a
 * lock whose places it does not have then is taken out again and told.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/choice.h"
#include "cli/load.h"
#include "cli/print.h"
#include "programs/registry/commands.h"
#include "programs/registry/import/lock.h"
#include "programs/registry/lint/lint.h"

/* One lock that was seen. */
struct draft {
    char *key;            /* the value of `key:`, which tells two locks apart */
    char *name;           /* before it is made unique */
    hf__buf sources;      /* as items of a list in YAML, each once */
    char *remark;         /* where it was seen, for people */
    const char *lifetime; /* a constant, or NULL: not known, or several */
    bool wrong;           /* the source, examined with this entry, does not match it */
};

struct drafts {
    struct draft *items;
    size_t count, room;
    hf__buf unresolved; /* comments on places without a readable key */
    size_t unresolved_count;
    bool broken;
};

static void drafts_free(struct drafts *drafts)
{
    for (size_t i = 0; i < drafts->count; i++) {
        free(drafts->items[i].key);
        free(drafts->items[i].name);
        hf__buf_free(&drafts->items[i].sources);
        free(drafts->items[i].remark);
    }
    free(drafts->items);
    hf__buf_free(&drafts->unresolved);
}

static struct draft *find(const struct drafts *drafts, const char *key)
{
    for (size_t i = 0; i < drafts->count; i++)
        if (strcmp(drafts->items[i].key, key) == 0)
            return &drafts->items[i];
    return NULL;
}

static void add_source(struct drafts *drafts, struct draft *draft, const char *path)
{
    hf__buf item = {0};

    hf__yaml_text(&item, path, strlen(path));
    if (!item.broken && (draft->sources.length == 0 || !strstr(draft->sources.data, item.data))) {
        hf__buf_puts(&draft->sources, draft->sources.length > 0 ? ", " : "");
        hf__buf_puts(&draft->sources, item.data);
    }
    drafts->broken = drafts->broken || item.broken || draft->sources.broken;
    hf__buf_free(&item);
}

/* Adds a lock, or joins it to the one with the same key. Takes the buffers' texts over. */
static void add(struct drafts *drafts, hf__buf *key, hf__buf *name, const char *source,
                const char *lifetime, hf__buf *remark)
{
    struct draft *there = key->broken ? NULL : find(drafts, key->data);
    bool ok = !key->broken && !name->broken && !remark->broken;

    if (there != NULL && there->lifetime != NULL &&
        (lifetime == NULL || strcmp(there->lifetime, lifetime) != 0))
        there->lifetime = NULL;
    if (ok && there == NULL &&
        hf__grow(&drafts->items, &drafts->room, drafts->count + 1, sizeof *drafts->items)) {
        there = &drafts->items[drafts->count++];
        *there = (struct draft){key->data, name->data, {0}, remark->data, lifetime, false};
        *key = *name = *remark = (hf__buf){0};
    }
    if (there != NULL && source != NULL)
        add_source(drafts, there, source);
    drafts->broken = drafts->broken || !ok || there == NULL;
    hf__buf_free(key);
    hf__buf_free(name);
    hf__buf_free(remark);
}

/* "Booking:{a}" → booking; a name is made of letters, digits and '-'. */
static void put_name(hf__buf *out, const char *text)
{
    size_t start = out->length;

    for (; *text != '\0' && *text != '{' && out->length - start < 40; text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain)
            hf__buf_add(out, &c, 1);
        else if (out->length > start && out->data[out->length - 1] != '-')
            hf__buf_puts(out, "-");
    }
    while (out->length > start && out->data[out->length - 1] == '-')
        out->data[--out->length] = '\0';
    if (out->length == start)
        hf__buf_puts(out, "lock");
}

/* { pattern: "…", as: … }, with every hole of the label as a placeholder. */
static void put_pattern(hf__buf *out, const char *label, size_t size, const char *derivation,
                        hf__buf *pattern)
{
    static const char hole[] = "…";
    char letter = 'a';

    for (size_t at = 0; at < size;) {
        if (size - at >= sizeof hole - 1 && memcmp(label + at, hole, sizeof hole - 1) == 0) {
            hf__buf_printf(pattern, "{%c}", letter < 'z' ? letter++ : letter);
            at += sizeof hole - 1;
            continue;
        }
        if (label[at] == '{' || label[at] == '}')
            hf__buf_add(pattern, label + at, 1);
        hf__buf_add(pattern, label + at++, 1);
    }
    hf__buf_puts(out, "{ pattern: ");
    hf__yaml_text(out, pattern->data, pattern->length);
    if (derivation[0] != '\0')
        hf__buf_printf(out, ", as: %s", derivation);
    hf__buf_puts(out, " }");
}

/* ---- from the source ------------------------------------------------------------------------- */

/* The key of a site as an entry has it; false: it cannot be written. */
static bool put_site_key(const hf__site *site, hf__buf *key, hf__buf *name)
{
    size_t size = strlen(site->key);
    hf__buf pattern = {0};

    if (site->key[0] == '\'' && size > 2) {
        put_pattern(key, site->key + 1, size - 2, site->derivation, &pattern);
        put_name(name, pattern.data != NULL ? pattern.data : "");
        hf__buf_free(&pattern);
        return true;
    }
    if (site->key[0] == '(' && strspn(site->key + 1, "-0123456789, ") + 2 == size)
        hf__buf_printf(key, "{ pair: [%.*s] }", (int)size - 2, site->key + 1);
    else if (strspn(site->key, "-0123456789") == size && size > 0)
        hf__buf_printf(key, "{ fixed: %s }", site->key);
    else
        return false;
    hf__buf_puts(name, "lock-");
    put_name(name, site->key);
    return true;
}

static void note_unresolved(struct drafts *drafts, const hf__site *site, const char *why)
{
    hf__buf line = {0};

    hf__buf_printf(&line, "%s:%u: %s: %s", site->file, site->line, site->call, why);
    hf__buf_puts(&drafts->unresolved, "#   ");
    hf__yaml_comment_text(&drafts->unresolved, line.data, line.length);
    hf__buf_puts(&drafts->unresolved, "\n");
    drafts->unresolved_count++;
    hf__buf_free(&line);
}

static void add_site(struct drafts *drafts, const hf__site *site)
{
    hf__buf key = {0}, name = {0}, remark = {0};

    if (site->outcome == HF__SITE_UNRESOLVED) {
        note_unresolved(drafts, site, site->why);
        return;
    }
    if (site->outcome != HF__SITE_READ)
        return;
    if (!put_site_key(site, &key, &name)) {
        note_unresolved(drafts, site, "its key cannot be written down");
        return;
    }
    hf__buf_printf(&remark, "%s:%u: %s%s", site->file, site->line, site->call,
                   site->key[0] == '\'' && site->derivation[0] == '\0'
                       ? "; check 'as': the source does not tell how it is hashed"
                       : "");
    add(drafts, &key, &name, site->file,
        strcmp(site->lifetime, "transaction") == 0 ? "transaction"
        : strcmp(site->lifetime, "session") == 0   ? "session"
                                                   : NULL,
        &remark);
}

static hf_status examine(const struct invocation *in, const hf_registry *registry, hf__lint **lint,
                         hf__lint_options *options, hf_error *err)
{
    hf__findings unused = {0};

    *options = (hf__lint_options){.registry = registry, .list = true};
    hf_status status = hf__lint_new(options, lint, err);
    if (status == HF_OK)
        status = hf__lint_paths(*lint, (const char *const *)in->operands, (size_t)in->count,
                                &unused, err);
    hf__findings_free(&unused);
    return status;
}

static hf_status read_source(const struct invocation *in, struct drafts *drafts, hf_error *err)
{
    hf__lint *lint = NULL;
    hf__lint_options options;
    hf_status status = in->count > 0 ? examine(in, NULL, &lint, &options, err) : HF_OK;

    if (status == HF_OK && lint != NULL) {
        const hf__sites *sites = hf__lint_sites_of(lint);
        for (size_t i = 0; i < sites->count; i++)
            add_site(drafts, &sites->items[i]);
        drafts->broken = drafts->broken || sites->broken;
    }
    hf__lint_free(lint);
    return status;
}

/* ---- from a store ---------------------------------------------------------------------------- */

/* The derivation that makes this key of the label; NULL: none that is known. */
static const char *derivation_of(const hf_lock_view *view)
{
    for (int i = 0; hf_derivation_name((hf_derivation)i) != NULL; i++) {
        hf_derivation derivation = (hf_derivation)i;
        int64_t key = 0;
        if (derivation != HF_FIXED && hf_derivation_space(derivation) == view->space &&
            hf_key_derive(derivation, view->label, strlen(view->label), &key, NULL) == HF_OK &&
            key == view->key)
            return hf_derivation_name(derivation);
    }
    return NULL;
}

/* Under such labels the programs lock what they do themselves, such as ranges of ledgers. */
static bool is_our_own(const hf_lock_view *view)
{
    return strncmp(view->label, "holdfast:", strlen("holdfast:")) == 0;
}

static void add_view(struct drafts *drafts, const hf_lock_view *view)
{
    hf__buf key = {0}, name = {0}, remark = {0}, pattern = {0};
    const char *derivation = view->label[0] != '\0' ? derivation_of(view) : NULL;
    const char *called = view->label[0] != '\0' ? view->label : view->known_as;
    char number[KEY_SHOWN_MAX];

    if (derivation != NULL)
        put_pattern(&key, view->label, strlen(view->label), derivation, &pattern);
    else if (view->space == HF_PAIR)
        hf__buf_printf(&key, "{ pair: [%" PRId32 ", %" PRId32 "] }", (int32_t)(view->key >> 32),
                       (int32_t)view->key);
    else
        hf__buf_printf(&key, "{ fixed: %" PRId64 " }", view->key);
    if (called[0] == '\0')
        hf__buf_puts(&name, "lock-");
    put_name(&name, called[0] != '\0' ? called : show_key(number, view));
    hf__buf_printf(&remark, "seen in the database%s%s",
                   view->application[0] != '\0' ? ", held by " : "", view->application);
    add(drafts, &key, &name, NULL, view->session_known ? lifetime_name(view->lifetime) : NULL,
        &remark);
    hf__buf_free(&pattern);
}

static hf_status read_store(const struct invocation *in, struct drafts *drafts, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_store *store = NULL;
    hf_lock_list *lists[2] = {NULL, NULL};

    options.application = "holdfast registry init";
    hf_status status = open_store(in, &options, &store, err);
    if (status == HF_OK)
        status = hf_lock_list_read(store, &lists[0], err);
    if (status == HF_OK && hf_store_has_records(store))
        status = hf_lock_list_read_past(store, -1, &lists[1], err);
    for (size_t l = 0; status == HF_OK && l < 2; l++)
        for (size_t i = 0; lists[l] != NULL && i < hf_lock_list_count(lists[l]); i++)
            if (!is_our_own(hf_lock_list_at(lists[l], i)))
                add_view(drafts, hf_lock_list_at(lists[l], i));
    hf_lock_list_free(lists[0]);
    hf_lock_list_free(lists[1]);
    hf_store_close(store);
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Several locks may be called alike: the second becomes name-2. */
static void put_unique(hf__buf *out, const struct drafts *drafts, size_t index)
{
    size_t before = 0;

    for (size_t i = 0; i < index; i++)
        before += !drafts->items[i].wrong &&
                  strcmp(drafts->items[i].name, drafts->items[index].name) == 0;
    hf__buf_puts(out, drafts->items[index].name);
    if (before > 0)
        hf__buf_printf(out, "-%zu", before + 1);
}

static void write_file(const struct drafts *drafts, hf__buf *out)
{
    hf__buf_puts(out,
                 "# yaml-language-server: $schema=" HOLDFAST_DATADIR "/holdfast/locks.schema.json\n"
                 "# A first registry, made by 'holdfast registry init'. Give the locks better "
                 "names, say what each is\n"
                 "# for and who owns it, and run 'holdfast registry check'.\nversion: 1\n");
    hf__buf_puts(out, drafts->count > 0 ? "locks:\n" : "locks: []\n");
    for (size_t i = 0; i < drafts->count; i++) {
        const struct draft *draft = &drafts->items[i];
        if (draft->wrong)
            continue;
        hf__buf_puts(out, "  # ");
        hf__yaml_comment_text(out, draft->remark, strlen(draft->remark));
        hf__buf_puts(out, "\n  - name: ");
        put_unique(out, drafts, i);
        hf__buf_printf(out, "\n    key: %s\n", draft->key);
        if (draft->lifetime != NULL)
            hf__buf_printf(out, "    lifetime: %s\n", draft->lifetime);
        if (draft->sources.length > 0)
            hf__buf_printf(out, "    source: [%s]\n", draft->sources.data);
    }
    if (drafts->unresolved_count > 0) {
        hf__buf_puts(out, "\n# Not in this file: the keys of these places cannot be read.\n");
        hf__buf_puts(out, drafts->unresolved.data);
    }
}

/* Takes out what the source, examined with the file, does not match: a class that was not told. */
static hf_status prove(const struct invocation *in, struct drafts *drafts, const char *yaml,
                       size_t size, bool *changed, hf_error *err)
{
    hf_registry *registry = NULL;
    hf__findings findings = {0};
    hf__lint *lint = NULL;
    hf__lint_options options;
    hf_status status =
        hf__registry_examine_text("locks.yaml", yaml, size, &registry, &findings, err);

    *changed = false;
    if (status == HF_OK && registry != NULL && in->count > 0)
        status = examine(in, registry, &lint, &options, err);
    for (size_t i = 0; status == HF_OK && lint != NULL && i < hf__lint_sites_of(lint)->count; i++) {
        const hf__site *site = &hf__lint_sites_of(lint)->items[i];
        hf__buf key = {0}, name = {0};
        if (site->outcome == HF__SITE_UNREGISTERED && put_site_key(site, &key, &name)) {
            struct draft *draft = key.broken ? NULL : find(drafts, key.data);
            if (draft != NULL && !draft->wrong) {
                draft->wrong = true;
                *changed = true;
                note_unresolved(drafts, site, "its key is not all told by the source");
            }
        }
        hf__buf_free(&key);
        hf__buf_free(&name);
    }
    hf__lint_free(lint);
    hf__findings_free(&findings);
    hf_registry_free(registry);
    return status;
}

static hf_status make(const struct invocation *in, struct drafts *drafts, hf__buf *yaml,
                      hf_error *err)
{
    hf_status status = HF_OK;
    bool changed = true;

    while (status == HF_OK && changed) {
        hf__buf_clear(yaml);
        write_file(drafts, yaml);
        if (drafts->broken || yaml->broken)
            return hf__no_memory(err);
        status = prove(in, drafts, yaml->data, yaml->length, &changed, err);
    }
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

struct init_values {
    const char *output;
    bool store;
};

static const struct option init_options[] = {
    {
        .letter = 'o',
        .name = "output",
        .value = "FILE",
        .help = "write to this file, which must not exist, instead of to standard output",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct init_values, output),
    },
    {
        .name = "store",
        .help = "add the locks that the store holds or has recorded",
        .offset = offsetof(struct init_values, store),
    },
    {0},
};

/* A registry that is there is not replaced. */
static hf_status write_new(const char *path, const hf__buf *text, hf_error *err)
{
    char shown[SHOWN_MAX];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    bool done = fd >= 0 && write(fd, text->data, text->length) == (ssize_t)text->length;
    int reason = errno;

    if (fd >= 0 && close(fd) != 0)
        done = false;
    if (done)
        return HF_OK;
    if (fd >= 0)
        (void)unlink(path); /* half a registry is worse than none */
    hf_status status =
        hf__fail_errno(err, HF_SYSTEM, reason, "cannot write %s", show_argument(shown, path));
    if (reason == EEXIST)
        hf__hint(err, "a registry that is there is not replaced: write to another file");
    return status;
}

static int init_main(const struct command *self, int argc, char **argv)
{
    struct init_values values = {0};
    struct invocation in = {0};
    struct drafts drafts = {0};
    hf__buf yaml = {0};
    hf_error err = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (in.count == 0 && !values.store)
        return report_usage(&in.report, self, "give the folder of the source, or --store, or both");
    hf_status status = load_libyaml(&err);
    if (status == HF_OK)
        status = load_libcrypto(&err);
    if (status == HF_OK)
        status = read_source(&in, &drafts, &err);
    if (status == HF_OK && values.store)
        status = read_store(&in, &drafts, &err);
    if (status == HF_OK)
        status = make(&in, &drafts, &yaml, &err);
    if (status == HF_OK && values.output != NULL)
        status = write_new(values.output, &yaml, &err);
    else if (status == HF_OK)
        fwrite(yaml.data, 1, yaml.length, stdout);
    if (status != HF_OK)
        code = report_error(&in.report, &err);
    else if (drafts.unresolved_count > 0)
        report_warning(&in.report, "%zu place%s of the source %s not in the registry: see its end",
                       drafts.unresolved_count, drafts.unresolved_count == 1 ? "" : "s",
                       drafts.unresolved_count == 1 ? "is" : "are");
    hf__buf_free(&yaml);
    drafts_free(&drafts);
    return code;
}

const struct command cmd_registry_init = {
    .name = "registry init",
    .summary = "Write a first registry from the source, the store, or both.",
    .usage = "[-o FILE] [--store] [PATH...]",
    .options = init_options,
    .takes_operands = true,
    .main = init_main,
};

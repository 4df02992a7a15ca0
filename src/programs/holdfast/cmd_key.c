#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/choice.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/print.h"
#include "programs/holdfast/commands.h"
#include "programs/holdfast/label.h"

struct key_values {
    const char *derivation;
    bool decode;
};

static const struct option key_options[] = {
    {
        .name = "as",
        .value = "DERIVATION",
        .help = "print only this key: sha256, hashtext, crc32, md5 …; see holdfast-key(1)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct key_values, derivation),
    },
    {
        .name = "decode",
        .help = "print the key that pg_locks shows as CLASSID and OBJID",
        .offset = offsetof(struct key_values, decode),
    },
    {0},
};

static const hf_derivation computed[] = {
    HF_SHA256,
    HF_FNV1A64,
    HF_FNV1A32,
    HF_FNV1A32_JS,
    HF_HASHTEXT,
    HF_HASHTEXTEXTENDED,
    HF_CRC32,
    HF_CRC32_SQLX,
    HF_MD5,
    HF_JAVA_HASHCODE,
    HF_WITH_ADVISORY_LOCK,
    HF_DISTRIBUTEDLOCK_ASCII,
    HF_DISTRIBUTEDLOCK_HASH,
};

enum { COMPUTED = sizeof computed / sizeof computed[0] };

enum { LABEL, DERIVATION, KEY, CLASSID, OBJID, SQL };

static const struct column columns[] = {
    [LABEL] = {.title = "LABEL", .may_be_cut = true},
    [DERIVATION] = {.title = "DERIVATION"},
    [KEY] = {.title = "KEY", .to_the_right = true},
    [CLASSID] = {.title = "CLASSID", .to_the_right = true},
    [OBJID] = {.title = "OBJID", .to_the_right = true},
    [SQL] = {.title = "SQL"},
    {0},
};

/* What is printed: numbers alone, a table, or JSON. */
struct output {
    const struct report *report;
    const hf_registry *registry; /* NULL: none */
    struct table *table;
    hf__json json;
};

static int out_of_memory(const struct report *report)
{
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the keys"};

    return report_error(report, &err);
}

static bool is_plain_text(const char *label)
{
    size_t size = strlen(label);
    bool plain = hf__utf8_valid(label, size);

    for (size_t i = 0; plain && i < size; i++)
        plain = (unsigned char)label[i] >= 0x20 && label[i] != 0x7f;
    return plain;
}

/* A key of two int4 is shown as both of them, as the functions take them. */
static const char *show_number(char out[32], hf_space space, int64_t key)
{
    uint32_t first, second;

    hf_key_split(key, &first, &second);
    if (space == HF_PAIR)
        snprintf(out, 32, "%" PRId32 ",%" PRId32, (int32_t)first, (int32_t)second);
    else
        snprintf(out, 32, "%" PRId64, key);
    return out;
}

/* PostgreSQL can compute hashtext itself, so its SQL has the label; other SQL has the number. */
static void write_sql(hf__buf *sql, hf_derivation derivation, const char *label, int64_t key)
{
    bool by_name =
        (derivation == HF_HASHTEXT || derivation == HF_HASHTEXTEXTENDED) && is_plain_text(label);

    if (!by_name) {
        char number[32];
        hf__buf_printf(sql, "SELECT pg_advisory_lock(%s)",
                       show_number(number, hf_derivation_space(derivation), key));
        return;
    }
    hf__buf_printf(sql, "SELECT pg_advisory_lock(%s('", hf_derivation_name(derivation));
    for (; *label != '\0'; label++) {
        if (*label == '\'')
            hf__buf_puts(sql, "'");
        hf__buf_add(sql, label, 1);
    }
    hf__buf_puts(sql, derivation == HF_HASHTEXT ? "'))" : "', 0))");
}

static void add_to_table(struct table *table, const char *label, hf_derivation derivation,
                         hf_space space, const int64_t *key, const char *sql)
{
    char text[32];
    uint32_t classid, objid;

    table_add_row(table);
    table_set(table, LABEL, label);
    table_set(table, DERIVATION, hf_derivation_name(derivation));
    if (key == NULL)
        return;
    hf_key_split(*key, &classid, &objid);
    table_set(table, KEY, show_number(text, space, *key));
    snprintf(text, sizeof text, "%" PRIu32, classid);
    table_set(table, CLASSID, text);
    snprintf(text, sizeof text, "%" PRIu32, objid);
    table_set(table, OBJID, text);
    table_set(table, SQL, sql);
}

static void add_halves(hf__json *json, int64_t key)
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    hf__json_put_big(json, "key", key);
    hf__json_put_integer(json, "classid", classid);
    hf__json_put_integer(json, "objid", objid);
}

static void add_pair(hf__json *json, int64_t key)
{
    uint32_t first, second;

    hf_key_split(key, &first, &second);
    hf__json_begin_array(json, "pair");
    hf__json_put_integer(json, NULL, (int32_t)first);
    hf__json_put_integer(json, NULL, (int32_t)second);
    hf__json_end_array(json);
}

static void add_to_json(hf__json *json, const char *name, const char *label,
                        hf_derivation derivation, hf_space space, const int64_t *key,
                        const char *sql)
{
    hf__json_begin_object(json, NULL);
    if (name != NULL)
        hf__json_put_string(json, "name", name);
    hf__json_put_string(json, "label", label);
    hf__json_put_string(json, "derivation", hf_derivation_name(derivation));
    if (key != NULL) {
        add_halves(json, *key);
        if (space == HF_PAIR)
            add_pair(json, *key);
        else
            hf__json_put_null(json, "pair");
        hf__json_put_string(json, "sql", sql);
    } else {
        hf__json_put_null(json, "key");
    }
    hf__json_end_object(json);
}

static void add_key_row(struct output *output, const char *label, hf_derivation derivation,
                        const int64_t *key)
{
    hf__buf sql = {0};

    if (key != NULL)
        write_sql(&sql, derivation, label, *key);
    if (output->table != NULL)
        add_to_table(output->table, label, derivation, hf_derivation_space(derivation), key,
                     sql.data);
    else
        add_to_json(&output->json, NULL, label, derivation, hf_derivation_space(derivation), key,
                    sql.data != NULL ? sql.data : "");
    hf__buf_free(&sql);
}

/* The one key of a registered lock, with the call that acquires it. */
static void add_registered(struct output *output, const struct named_lock *lock)
{
    const hf_target *target = &lock->target;
    const char *call = lock->entry->lifetime_given && lock->entry->lifetime == HF_TRANSACTION
                           ? "pg_advisory_xact_lock"
                           : "pg_advisory_lock";
    int64_t key = target->key;
    hf__buf sql = {0};

    if (target->space == HF_PAIR)
        hf__buf_printf(&sql, "SELECT %s(%" PRId32 ", %" PRId32 ")", call, target->pair[0],
                       target->pair[1]);
    else
        hf__buf_printf(&sql, "SELECT %s(%" PRId64 ")", call, key);
    if (target->space == HF_PAIR)
        key = hf_key_join((uint32_t)target->pair[0], (uint32_t)target->pair[1]);
    if (output->table != NULL)
        add_to_table(output->table, target->label, target->derivation, target->space, &key,
                     sql.data);
    else
        add_to_json(&output->json, lock->entry->name, target->label, target->derivation,
                    target->space, &key, sql.data != NULL ? sql.data : "");
    hf__buf_free(&sql);
}

/* A derivation that does not accept the label's bytes is left out; the others are still shown. */
static hf_status add_all_keys(struct output *output, const char *label, hf_error *err)
{
    hf_target target;
    hf_status status = target_label(label, NULL, &target, err);

    for (size_t i = 0; status == HF_OK && i < COMPUTED; i++) {
        int64_t key = 0;
        bool derived = hf_key_derive(computed[i], label, strlen(label), &key, NULL) == HF_OK;
        add_key_row(output, label, computed[i], derived ? &key : NULL);
    }
    return status;
}

/* Nothing is locked here, so that every label has its keys; but 'holdfast run' would refuse it. */
static void warn_of_stranger(const struct output *output, const hf_registry_entry *entry,
                             const char *label)
{
    hf_error err = {0};

    if (refuse_stranger(output->registry, entry, label, NULL, &err) != HF_OK)
        report_warning(output->report, "%s: %s", err.message, err.hint);
}

/* Looks in the registry first. *used is how many words that used; 0: it does not know the first. */
static hf_status ask_registry(struct output *output, char **words, int count, int *used,
                              hf_error *err)
{
    struct named_lock lock = {0};
    hf_status status = HF_OK;

    *used = 0;
    if (output->registry == NULL || words[0][0] == '\0')
        return HF_OK;
    status = read_lock_name(output->registry, words, count, NULL, &lock, used, err);
    if (status == HF_OK && lock.target.derivation == HF_MINTED) {
        status =
            hf__fail(err, HF_INVALID, "the key of '%s' is minted, not computed", lock.target.label);
        hf__hint(err, "'holdfast table show' tells it");
    }
    if (status == HF_OK && lock.entry != NULL)
        add_registered(output, &lock);
    else
        *used = 0;
    if (status == HF_OK)
        warn_of_stranger(output, lock.entry, words[0]);
    named_lock_free(&lock);
    return status;
}

static hf_status add_label(struct output *output, const struct key_values *values, char **words,
                           int count, int *used, hf_error *err)
{
    hf_target target;
    hf_status status = HF_OK;

    *used = 0;
    if (values->derivation == NULL)
        status = ask_registry(output, words, count, used, err);
    if (status != HF_OK || *used > 0)
        return status;
    *used = 1;
    if (values->derivation == NULL)
        return add_all_keys(output, words[0], err);
    status = target_label(words[0], values->derivation, &target, err);
    if (status == HF_OK)
        add_key_row(output, words[0], target.derivation, &target.key);
    return status;
}

static int print_json(const struct key_values *values, const struct invocation *in,
                      const hf_registry *registry)
{
    struct output output = {.report = &in->report, .registry = registry};
    int used = 0;
    hf_error err;

    hf__json_begin_object(&output.json, NULL);
    hf__json_begin_array(&output.json, "keys");
    for (int i = 0; i < in->count; i += used) {
        if (add_label(&output, values, in->operands + i, in->count - i, &used, &err) != HF_OK) {
            hf__buf_free(&output.json.text);
            return report_error(&in->report, &err);
        }
    }
    hf__json_end_array(&output.json);
    hf__json_put_text(&output.json, "registry", registry != NULL ? hf_registry_path(registry) : "");
    hf__json_end_object(&output.json);
    return print_document(&output.json, stdout) ? EXIT_OK : out_of_memory(&in->report);
}

static int print_table(const struct key_values *values, const struct invocation *in,
                       const hf_registry *registry)
{
    int code = EXIT_OK;
    int used = 0;
    hf_error err;

    prepare_for_tables();
    struct output output = {
        .report = &in->report, .registry = registry, .table = table_new(columns)};
    if (output.table == NULL)
        return out_of_memory(&in->report);
    for (int i = 0; code == EXIT_OK && i < in->count; i += used)
        if (add_label(&output, values, in->operands + i, in->count - i, &used, &err) != HF_OK)
            code = report_error(&in->report, &err);
    if (code == EXIT_OK && !table_print(output.table))
        code = out_of_memory(&in->report);
    table_free(output.table);
    return code;
}

/* All or nothing: prints no number before every label is known to be good. */
static int print_numbers(const struct key_values *values, const struct invocation *in)
{
    char number[32];
    hf_target target;
    hf_error err;

    for (int i = 0; i < in->count; i++)
        if (target_label(in->operands[i], values->derivation, &target, &err) != HF_OK)
            return report_error(&in->report, &err);
    for (int i = 0; i < in->count; i++)
        if (target_label(in->operands[i], values->derivation, &target, &err) == HF_OK)
            printf("%s\n", show_number(number, hf_derivation_space(target.derivation), target.key));
    return EXIT_OK;
}

static int decode(const struct command *self, const struct invocation *in)
{
    int64_t classid = 0;
    int64_t objid = 0;
    hf_error err;

    if (in->count != 2)
        return report_usage(&in->report, self, "--decode takes CLASSID and OBJID");
    if (hf__parse_int64(in->operands[0], "CLASSID", 0, UINT32_MAX, &classid, &err) != HF_OK ||
        hf__parse_int64(in->operands[1], "OBJID", 0, UINT32_MAX, &objid, &err) != HF_OK)
        return report_error(&in->report, &err);

    int64_t key = hf_key_join((uint32_t)classid, (uint32_t)objid);
    if (!in->common.json) {
        printf("%" PRId64 "\n", key);
        return EXIT_OK;
    }
    hf__json json = {0};
    hf__json_begin_object(&json, NULL);
    add_halves(&json, key);
    hf__json_end_object(&json);
    return print_document(&json, stdout) ? EXIT_OK : out_of_memory(&in->report);
}

/* With --as no registry is read, so a broken one does no harm. */
static int print_keys(const struct key_values *values, const struct invocation *in)
{
    hf_registry *registry = NULL;
    hf_error err;
    char shown[SHOWN_MAX];
    int code;

    if (values->derivation == NULL && open_registry(&in->common, &registry, &err) != HF_OK)
        return report_error(&in->report, &err);
    if (registry != NULL && !in->common.json && !in->common.verbose)
        report_note(&in->report, "registry: %s (%s)",
                    show_argument(shown, hf_registry_path(registry)),
                    registry_chooser(&in->common));
    if (in->common.json)
        code = print_json(values, in, registry);
    else if (values->derivation != NULL)
        code = print_numbers(values, in);
    else
        code = print_table(values, in, registry);
    hf_registry_free(registry);
    return code;
}

static int key_main(const struct command *self, int argc, char **argv)
{
    hf_error err;
    struct key_values values = {0};
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (values.decode && values.derivation != NULL)
        return report_usage(&in.report, self, "--decode and --as exclude each other");
    if (values.decode)
        return decode(self, &in);
    if (in.count == 0)
        return report_usage(&in.report, self, "LABEL is missing");
    if (load_libcrypto(&err) != HF_OK)
        return report_error(&in.report, &err);
    return print_keys(&values, &in);
}

const struct command cmd_key = {
    .name = "key",
    .summary = "Show the 64-bit keys of labels.",
    .usage = "[--as DERIVATION] LABEL...\nNAME [PLACEHOLDER=VALUE...]...\n--decode CLASSID OBJID",
    .options = key_options,
    .takes_operands = true,
    .main = key_main,
};

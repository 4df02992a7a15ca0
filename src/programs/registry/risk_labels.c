#include "programs/registry/risk_labels.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/load.h"
#include "cli/print.h"
#include "programs/registry/collisions.h"
#include "programs/registry/risk.h"

/* --- reading the list ----------------------------------------------------------------------- */

struct text {
    char *data;
    size_t size;
    size_t capacity;
};

static hf_status make_room(struct text *text, size_t capacity, hf_error *err)
{
    char *data = realloc(text->data, capacity);

    if (data == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory after %zu bytes of labels", text->size);
    text->data = data;
    text->capacity = capacity;
    return HF_OK;
}

static hf_status read_all(int fd, const char *name, struct text *text, hf_error *err)
{
    struct stat found;
    size_t expected = fstat(fd, &found) == 0 && found.st_size > 0 ? (size_t)found.st_size : 0;
    hf_status status = make_room(text, expected + 65536, err);

    while (status == HF_OK) {
        ssize_t size = read(fd, text->data + text->size, text->capacity - text->size);
        if (size == 0)
            return HF_OK;
        if (size < 0 && errno != EINTR)
            return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", name);
        text->size += size > 0 ? (size_t)size : 0;
        if (text->size == text->capacity)
            status = make_room(text, text->capacity * 2, err);
    }
    return status;
}

static hf_status read_labels(const char *path, const char *name, struct text *text, hf_error *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, name, text, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        hf_status status = hf__fail_errno(err, HF_BAD_DATA, errno, "cannot open %s", name);
        hf__hint(err, "give a file with one label a line, or - for standard input");
        return status;
    }
    hf_status status = read_all(fd, name, text, err);
    close(fd);
    return status;
}

/* Some editors put a byte order mark in front, which is not part of the first label. */
static struct hf__label_list list_of(const struct label_choice *choice, const char *name,
                                     const struct text *text)
{
    static const char mark[] = "\xEF\xBB\xBF";
    bool marked = !choice->null_separated && text->size >= sizeof mark - 1 &&
                  memcmp(text->data, mark, sizeof mark - 1) == 0;
    size_t skipped = marked ? sizeof mark - 1 : 0;

    return (struct hf__label_list){
        .name = name,
        .text = text->data + skipped,
        .size = text->size - skipped,
        .separator = choice->null_separated ? '\0' : '\n',
    };
}

/* --- as a table for people ------------------------------------------------------------------ */

enum { KEY, LINE, LABEL, TIMES, LOCK };

static const struct column columns[] = {
    [KEY] = {.title = "KEY", .to_the_right = true},
    [LINE] = {.title = "LINE", .to_the_right = true},
    [LABEL] = {.title = "LABEL", .may_be_cut = true},
    [TIMES] = {.title = "TIMES", .to_the_right = true},
    [LOCK] = {.title = "LOCK"},
    {0},
};

enum { NUMBER_MAX = 32, LABEL_SHOWN_MAX = 256 };

static const char *show_collision_key(char out[NUMBER_MAX], const struct hf__collision *collision)
{
    uint32_t high, low;

    hf_key_split(collision->key, &high, &low);
    if (collision->space == HF_PAIR)
        snprintf(out, NUMBER_MAX, "(%" PRId32 ", %" PRId32 ")", (int32_t)high, (int32_t)low);
    else
        snprintf(out, NUMBER_MAX, "%" PRId64, collision->key);
    return out;
}

static void add_row(struct table *table, const struct hf__collision *collision,
                    const struct hf__collider *collider)
{
    char number[NUMBER_MAX], label[LABEL_SHOWN_MAX];

    table_add_row(table);
    table_set(table, KEY, show_collision_key(number, collision));
    snprintf(number, sizeof number, "%" PRIu64, collider->line);
    table_set(table, LINE, collider->line > 0 ? number : "-");
    table_set(table, LABEL, hf__show(label, sizeof label, collider->label, collider->size));
    snprintf(number, sizeof number, "%" PRIu64, collider->times);
    table_set(table, TIMES, number);
    table_set(table, LOCK, collider->entry != NULL ? collider->entry->view.name : "-");
}

static bool print_table(const struct hf__collisions *found)
{
    prepare_for_tables();
    struct table *table = table_new(columns);
    for (size_t i = 0; i < found->kept; i++)
        for (size_t j = 0; j < found->items[i].kept; j++)
            add_row(table, &found->items[i], &found->items[i].colliders[j]);
    bool printed = table_print(table);
    table_free(table);
    return printed;
}

static bool is_cut(const struct hf__collisions *found)
{
    bool cut = found->count > found->kept;

    for (size_t i = 0; i < found->kept; i++)
        cut = cut || found->items[i].count > found->items[i].kept;
    return cut;
}

static void summarise(const struct report *report, const char *name,
                      const struct hf__collisions *found)
{
    char labels[NUMBER_MAX], repeated[NUMBER_MAX], keys[NUMBER_MAX];
    const char *outcome = found->count == 0   ? "no two share a key"
                          : found->count == 1 ? "one key is shared by different ones"
                                              : "keys are shared by different ones: ";

    hf__risk_count(keys, sizeof keys, found->count);
    report_note(report, "%s: %s labels, %s of them repeated; %s%s", name,
                hf__risk_count(labels, sizeof labels, found->labels),
                hf__risk_count(repeated, sizeof repeated, found->duplicates), outcome,
                found->count > 1 ? keys : "");
    if (found->minted > 0)
        report_note(report, "%s of them have minted keys, which are not computed",
                    hf__risk_count(labels, sizeof labels, found->minted));
    if (is_cut(found))
        report_note(report, "at most %d keys and %d labels of each are shown", HF__COLLISIONS_MAX,
                    HF__COLLIDERS_MAX);
}

/* --- as JSON -------------------------------------------------------------------------------- */

static void add_collider(hf__json *json, const struct hf__collider *collider)
{
    char *label = strndup(collider->label, collider->size);

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "label", label != NULL ? label : "");
    json->text.broken = json->text.broken || label == NULL;
    if (collider->line > 0)
        hf__json_put_integer(json, "line", (int64_t)collider->line);
    else
        hf__json_put_null(json, "line");
    hf__json_put_integer(json, "times", (int64_t)collider->times);
    hf__json_put_text(json, "lock", collider->entry != NULL ? collider->entry->view.name : NULL);
    hf__json_end_object(json);
    free(label);
}

static void add_collision(hf__json *json, const struct hf__collision *collision)
{
    uint32_t high, low;

    hf_key_split(collision->key, &high, &low);
    hf__json_begin_object(json, NULL);
    hf__json_put_big(json, "key", collision->key);
    if (collision->space == HF_PAIR) {
        hf__json_begin_array(json, "pair");
        hf__json_put_integer(json, NULL, (int32_t)high);
        hf__json_put_integer(json, NULL, (int32_t)low);
        hf__json_end_array(json);
    } else {
        hf__json_put_null(json, "pair");
    }
    hf__json_put_integer(json, "count", (int64_t)collision->count);
    hf__json_begin_array(json, "labels");
    for (size_t i = 0; i < collision->kept; i++)
        add_collider(json, &collision->colliders[i]);
    hf__json_end_array(json);
    hf__json_end_object(json);
}

static bool print_json(const char *name, const struct hf__collisions *found)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "file", name);
    hf__json_put_integer(&json, "labels", (int64_t)found->labels);
    hf__json_put_integer(&json, "duplicates", (int64_t)found->duplicates);
    hf__json_put_integer(&json, "minted", (int64_t)found->minted);
    hf__json_put_integer(&json, "shared_keys", (int64_t)found->count);
    hf__json_begin_array(&json, "collisions");
    for (size_t i = 0; i < found->kept; i++)
        add_collision(&json, &found->items[i]);
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

/* --- the command ---------------------------------------------------------------------------- */

static int print(const struct invocation *in, const char *name, const struct hf__collisions *found)
{
    if (!(in->common.json ? print_json(name, found) : print_table(found))) {
        hf_error err = {.code = HF_SYSTEM, .message = "cannot write the collisions"};
        return report_error(&in->report, &err);
    }
    if (!in->common.json)
        summarise(&in->report, name, found);
    return found->count > 0 ? EXIT_FINDINGS : EXIT_OK;
}

int examine_labels(const struct invocation *in, const struct label_choice *choice)
{
    char shown[SHOWN_MAX];
    const char *name =
        strcmp(choice->path, "-") == 0 ? "standard input" : show_argument(shown, choice->path);
    struct hf__own_labels own = {0};
    struct hf__collisions found = {0};
    struct text text = {0};
    hf_error err = {0};
    int code;

    hf_status status = load_libcrypto(&err);
    if (status == HF_OK)
        status = read_labels(choice->path, name, &text, &err);
    if (status == HF_OK && choice->registry != NULL)
        status = hf__own_labels_list(choice->registry, false, &own, &err);
    if (status == HF_OK) {
        struct hf__label_list list = list_of(choice, name, &text);
        status = hf__collisions_find(&list, choice->registry, &own, choice->as, &found, &err);
    }
    code = status == HF_OK ? print(in, name, &found) : report_error(&in->report, &err);
    hf__collisions_free(&found);
    hf__own_labels_free(&own);
    free(text.data);
    return code;
}

/*
 * /api/v1/registry: what the registry says about each lock, its state, and what is wrong with it.
 */
#include <string.h>

#include "programs/serve/api.h"

static const hf__shape now_shape[] = {
    HF__SHAPE("held_exclusive", "integer", "holders"),
    HF__SHAPE("held_shared", "integer", "holders"),
    HF__SHAPE("waiters", "integer", "who waits"),
    HF__SHAPE("longest_wait_ms", "integer", "of them; 0: nobody waits"),
    {0},
};

const hf__shape hf__registry_shape[] = {
    HF__SHAPE("name", "string", "of the lock"),
    HF__SHAPE_OR_NULL("pattern", "string", "of its labels"),
    HF__SHAPE("derivation", "string", "how a label becomes a key"),
    HF__SHAPE("space", "string", "bigint: one number of 64 bits; pair: two of 32"),
    HF__SHAPE_OR_NULL("key", "integer", "of a fixed one, 64 bits"),
    HF__SHAPE_OR_NULL("key_text", "string", "the same as text"),
    {"pair", "array", "both halves of a pair; with a pattern the first one counts", true, "integer",
     NULL},
    HF__SHAPE_OR_NULL("lifetime", "string", "session, transaction or lease"),
    HF__SHAPE("mode", "string", "exclusive or shared"),
    HF__SHAPE_OR_NULL("order", "integer", "smaller ones are taken first"),
    HF__SHAPE_OR_NULL("expected", "integer", "distinct labels alive at once"),
    HF__SHAPE("histogram", "boolean", "its wait and hold times are in the metrics"),
    HF__SHAPE_OR_NULL("scope", "string", "as the registry says"),
    HF__SHAPE_OR_NULL("component", "string", "as the registry says"),
    HF__SHAPE_OR_NULL("purpose", "string", "as the registry says"),
    HF__SHAPE_OR_NULL("owner", "string", "as the registry says"),
    HF__SHAPE_OR_NULL("runbook", "string", "as the registry says"),
    {"now", "object", "how it stands", false, NULL, now_shape},
    {0},
};

static const hf__shape finding_shape[] = {
    HF__SHAPE("rule", "string", "its id"),
    HF__SHAPE("severity", "string", "note, warning or error"),
    HF__SHAPE("file", "string", "where"),
    HF__SHAPE_OR_NULL("line", "integer", "from 1"),
    HF__SHAPE_OR_NULL("column", "integer", "from 1"),
    HF__SHAPE("message", "string", "what is wrong"),
    HF__SHAPE_OR_NULL("remedy", "string", "what to do about it"),
    {0},
};

const hf__shape hf__registry_extras[] = {
    HF__SHAPE_OR_NULL("path", "string", "of the registry; null: there is none"),
    {"findings", "array", "what is wrong with it", false, "object", finding_shape},
    {0},
};

static void put_fixed_key(hf__json *json, const hf_registry_entry *entry)
{
    bool is_number = entry->derivation == HF_FIXED && entry->space == HF_BIGINT;

    hf__json_put_string(json, "space", entry->space == HF_PAIR ? "pair" : "bigint");
    if (is_number) {
        hf__json_put_big(json, "key", entry->key);
    } else {
        hf__json_put_null(json, "key");
        hf__json_put_null(json, "key_text");
    }
    if (entry->space != HF_PAIR) {
        hf__json_put_null(json, "pair");
        return;
    }
    hf__json_begin_array(json, "pair");
    hf__json_put_integer(json, NULL, entry->pair[0]);
    hf__json_put_integer(json, NULL, entry->pair[1]);
    hf__json_end_array(json);
}

static void put_texts(hf__json *json, const hf_registry_entry *entry)
{
    hf__json_put_text(json, "scope", entry->scope);
    hf__json_put_text(json, "component", entry->component);
    hf__json_put_text(json, "purpose", entry->purpose);
    hf__json_put_text(json, "owner", entry->owner);
    hf__json_put_text(json, "runbook", entry->runbook);
}

static void put_now(hf__json *json, const hf__lock_meter *meter)
{
    hf__json_begin_object(json, "now");
    hf__json_put_integer(json, "held_exclusive", (int64_t)meter->held[HF_EXCLUSIVE]);
    hf__json_put_integer(json, "held_shared", (int64_t)meter->held[HF_SHARED]);
    hf__json_put_integer(json, "waiters", (int64_t)meter->waiters);
    hf__json_put_integer(json, "longest_wait_ms", meter->longest_wait_ms);
    hf__json_end_object(json);
}

static void put_entry(hf__json *json, const hf__lock_meter *meter)
{
    const hf_registry_entry *entry = meter->entry;

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "name", entry->name);
    hf__json_put_text(json, "pattern", entry->pattern);
    hf__json_put_string(json, "derivation", hf_derivation_name(entry->derivation));
    put_fixed_key(json, entry);
    hf__json_put_text(json, "lifetime",
                      entry->lifetime_given ? hf__lifetime_name(entry->lifetime) : "");
    hf__json_put_string(json, "mode", hf__mode_name(entry->mode));
    hf__put_maybe(json, "order", (hf__maybe){entry->has_order, entry->order});
    hf__put_positive(json, "expected", entry->expected);
    hf__json_put_boolean(json, "histogram", entry->histogram);
    put_texts(json, entry);
    put_now(json, meter);
    hf__json_end_object(json);
}

static void put_findings(hf__json *json, const hf__findings *findings)
{
    hf__json_begin_array(json, "findings");
    for (size_t i = 0; findings != NULL && i < findings->count; i++) {
        const hf__finding *finding = &findings->items[i];
        hf__json_begin_object(json, NULL);
        hf__json_put_string(json, "rule", finding->rule->id);
        hf__json_put_string(json, "severity", hf__severity_name(finding->rule->severity));
        hf__json_put_string(json, "file", finding->file);
        hf__put_positive(json, "line", finding->line);
        hf__put_positive(json, "column", finding->column);
        hf__json_put_string(json, "message", finding->message);
        hf__json_put_text(json, "remedy", finding->remedy);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
}

static bool fits(const hf__exchange *exchange, const hf_registry_entry *entry)
{
    const char *const texts[] = {entry->name,  entry->pattern,   entry->purpose,
                                 entry->owner, entry->component, entry->scope};
    const char *name = hf__asked(exchange, "name");

    return (name[0] == '\0' || strcmp(name, entry->name) == 0) &&
           hf__text_fits(hf__asked(exchange, "q"), texts, sizeof texts / sizeof texts[0]);
}

int hf__api_registry(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                     hf__problem *problem)
{
    hf__api_list list = hf__api_list_begin(exchange, snapshot);
    const char *path = snapshot->registry != NULL ? hf_registry_path(snapshot->registry) : "";

    (void)problem;
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        const hf__lock_meter *meter = &snapshot->meters[i];
        if (meter->entry != NULL && fits(exchange, meter->entry) && hf__api_list_takes(&list))
            put_entry(&list.json, meter);
    }
    hf__api_list_end_data(&list);
    hf__json_put_text(&list.json, "path", path);
    put_findings(&list.json, snapshot->findings);
    return hf__api_list_end(&list, NULL, out);
}

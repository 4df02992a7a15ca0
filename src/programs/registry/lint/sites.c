#include "programs/registry/lint/sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static const char *const outcome_names[HF__SITE_OUTCOMES] = {
    [HF__SITE_REGISTERED] = "registered",
    [HF__SITE_UNREGISTERED] = "unregistered",
    [HF__SITE_READ] = "read",
    [HF__SITE_UNRESOLVED] = "unresolved",
    [HF__SITE_PASSED_ON] = "passed on",
    [HF__SITE_IGNORED] = "ignored",
    [HF__SITE_RELEASE] = "release",
};

const char *hf__site_outcome_name(hf__site_outcome outcome)
{
    return outcome_names[outcome];
}

/* The texts of a site, which are copied and freed alike. */
static const size_t texts[] = {
    offsetof(hf__site, file),     offsetof(hf__site, call), offsetof(hf__site, mode),
    offsetof(hf__site, lifetime), offsetof(hf__site, key),  offsetof(hf__site, derivation),
    offsetof(hf__site, entry),    offsetof(hf__site, why),
};

enum { TEXTS = sizeof texts / sizeof texts[0] };

static char **text_of(hf__site *site, size_t index)
{
    return (char **)(void *)((char *)site + texts[index]);
}

static void free_texts(hf__site *site, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(*text_of(site, i));
}

static bool copy_texts(hf__site *site)
{
    for (size_t i = 0; i < TEXTS; i++) {
        char *copy = strdup(*text_of(site, i));
        if (copy == NULL) {
            free_texts(site, i);
            return false;
        }
        *text_of(site, i) = copy;
    }
    return true;
}

void hf__sites_add(hf__sites *ledger, const hf__site *site)
{
    hf__site copy = *site;

    ledger->counts[site->outcome]++;
    if (!ledger->keeps || ledger->broken || ledger->count == HF__SITES_MAX)
        return;
    if (!hf__grow(&ledger->items, &ledger->capacity, ledger->count + 1, sizeof *ledger->items) ||
        !copy_texts(&copy)) {
        ledger->broken = true;
        return;
    }
    ledger->items[ledger->count++] = copy;
}

void hf__sites_free(hf__sites *ledger)
{
    for (size_t i = 0; i < ledger->count; i++)
        free_texts(&ledger->items[i], TEXTS);
    free(ledger->items);
    *ledger = (hf__sites){0};
}

static size_t count_sites(const hf__sites *ledger)
{
    size_t sites = 0;

    for (size_t i = 0; i < HF__SITE_RELEASE; i++)
        sites += ledger->counts[i];
    return sites;
}

const char *hf__sites_show(const hf__sites *ledger, char out[HF__SITES_SHOWN])
{
    size_t sites = count_sites(ledger);
    int length = snprintf(out, HF__SITES_SHOWN, "%zu lock site%s", sites, sites == 1 ? "" : "s");
    const char *before = ": ";

    for (size_t i = 0; i < HF__SITE_RELEASE; i++) {
        if (ledger->counts[i] == 0 || length < 0 || length >= HF__SITES_SHOWN)
            continue;
        length += snprintf(out + length, (size_t)(HF__SITES_SHOWN - length), "%s%zu %s", before,
                           ledger->counts[i], outcome_names[i]);
        before = ", ";
    }
    return out;
}

void hf__sites_put_counts(hf__json *json, const hf__sites *ledger)
{
    hf__json_begin_object(json, "ledger");
    hf__json_put_integer(json, "sites", (int64_t)count_sites(ledger));
    for (size_t i = 0; i < HF__SITE_OUTCOMES; i++)
        hf__json_put_integer(json, i == HF__SITE_PASSED_ON ? "passed_on" : outcome_names[i],
                             (int64_t)ledger->counts[i]);
    hf__json_end_object(json);
}

static void put_use(hf__json *json, const hf__site *site)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "file", site->file);
    hf__json_put_integer(json, "line", site->line);
    hf__json_put_integer(json, "column", site->column);
    hf__json_put_string(json, "outcome", outcome_names[site->outcome]);
    hf__json_put_string(json, "call", site->call);
    hf__json_put_text(json, "mode", site->mode);
    hf__json_put_text(json, "lifetime", site->lifetime);
    hf__json_put_text(json, "key", site->key);
    hf__json_put_text(json, "derivation", site->derivation);
    hf__json_put_text(json, "name", site->entry);
    hf__json_put_text(json, "why", site->why);
    hf__json_end_object(json);
}

void hf__sites_put_uses(hf__json *json, const hf__sites *ledger)
{
    hf__json_begin_array(json, "uses");
    for (size_t i = 0; i < ledger->count; i++)
        put_use(json, &ledger->items[i]);
    hf__json_end_array(json);
}

#include "programs/registry/lint/baseline.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/vec.h"

enum { BASELINE_MAX = 64 * 1024 * 1024 };

static const char first_line[] =
    "# Accepted findings of 'holdfast registry lint': rule, file, message\n";

/* A message may name another line of the file, which moves; and no line of ours is broken. */
static void add_plain(hf__buf *line, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool number =
            isdigit((unsigned char)*at) && at - text >= 5 && memcmp(at - 5, "line ", 5) == 0;
        hf__buf_add(line, number ? "#" : (unsigned char)*at < ' ' ? " " : at, 1);
        while (number && isdigit((unsigned char)at[1]))
            at++;
    }
}

/* The line of a finding; NULL without memory. */
static char *line_of(const hf__finding *finding)
{
    hf__buf line = {0};

    hf__buf_puts(&line, finding->rule->id);
    hf__buf_puts(&line, "\t");
    add_plain(&line, strncmp(finding->file, "./", 2) == 0 ? finding->file + 2 : finding->file);
    hf__buf_puts(&line, "\t");
    add_plain(&line, finding->message);
    if (line.broken)
        hf__buf_free(&line);
    return line.data;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct baseline_entry *)a)->text,
                  ((const struct baseline_entry *)b)->text);
}

static hf_status add(struct baseline *baseline, char *text, hf_error *err)
{
    if (text == NULL || !hf__grow(&baseline->entries, &baseline->room, baseline->count + 1,
                                  sizeof *baseline->entries)) {
        free(text);
        return hf__no_memory(err);
    }
    baseline->entries[baseline->count++] = (struct baseline_entry){.text = text};
    return HF_OK;
}

static void sort(struct baseline *baseline)
{
    if (baseline->count > 1)
        qsort(baseline->entries, baseline->count, sizeof *baseline->entries, by_text);
}

void baseline_free(struct baseline *baseline)
{
    for (size_t i = 0; i < baseline->count; i++)
        free(baseline->entries[i].text);
    free(baseline->entries);
    *baseline = (struct baseline){0};
}

hf_status baseline_read(struct baseline *baseline, const char *path, hf_error *err)
{
    hf__buf text = {0};
    hf_status status = hf__read_file(path, BASELINE_MAX, &text, HF_BAD_DATA, err);
    unsigned number = 0;

    for (const char *at = text.data; status == HF_OK && at != NULL && *at != '\0';) {
        size_t size = strcspn(at, "\n");
        const char *tab = memchr(at, '\t', size);
        number++;
        if (size > 0 && *at != '#' &&
            (tab == NULL || memchr(tab + 1, '\t', size - (size_t)(tab + 1 - at)) == NULL))
            status = hf__fail(err, HF_BAD_DATA, "%s:%u:1: not a line of a baseline", path, number);
        else if (size > 0 && *at != '#')
            status = add(baseline, strndup(at, size), err);
        at += size + (at[size] == '\n');
    }
    if (status == HF_BAD_DATA)
        hf__hint(err, "holdfast registry lint --write-baseline FILE writes one");
    hf__buf_free(&text);
    sort(baseline);
    return status;
}

/* The first entry of that text that is not used yet. */
static struct baseline_entry *find(struct baseline *baseline, const char *text)
{
    size_t low = 0;
    size_t high = baseline->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(baseline->entries[middle].text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < baseline->count && strcmp(baseline->entries[low].text, text) == 0) {
        if (!baseline->entries[low].used)
            return &baseline->entries[low];
        low++;
    }
    return NULL;
}

hf_status baseline_apply(struct baseline *baseline, hf__findings *findings, hf_error *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < findings->count; i++) {
        hf__finding *finding = &findings->items[i];
        char *text = line_of(finding);
        if (text == NULL)
            return hf__no_memory(err);
        struct baseline_entry *entry = find(baseline, text);
        free(text);
        if (entry == NULL) {
            findings->items[kept++] = *finding;
            continue;
        }
        entry->used = true;
        baseline->accepted++;
        free(finding->message);
        free(finding->remedy);
        *finding = (hf__finding){0};
    }
    findings->count = kept;
    for (size_t i = 0; i < baseline->count; i++)
        baseline->gone += !baseline->entries[i].used;
    return HF_OK;
}

static hf_status write_lines(const char *path, const struct baseline *baseline, hf_error *err)
{
    FILE *out = fopen(path, "we");
    bool good = out != NULL && fputs(first_line, out) >= 0;

    for (size_t i = 0; good && i < baseline->count; i++)
        good = fprintf(out, "%s\n", baseline->entries[i].text) >= 0;
    if (out != NULL && fclose(out) != 0)
        good = false;
    return good ? HF_OK : hf__fail_errno(err, HF_SYSTEM, errno, "cannot write %s", path);
}

hf_status baseline_write(const char *path, const hf__findings *findings, hf_error *err)
{
    struct baseline baseline = {0};
    hf_status status = HF_OK;

    for (size_t i = 0; status == HF_OK && i < findings->count; i++)
        status = add(&baseline, line_of(&findings->items[i]), err);
    sort(&baseline);
    if (status == HF_OK)
        status = write_lines(path, &baseline, err);
    baseline_free(&baseline);
    return status;
}

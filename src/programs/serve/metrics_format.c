/*
 * Writes numbers without printf, which follows the locale and takes most of the time with 1 000
 * locks.
 */
#include "programs/serve/metrics.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

/* ---- labels ---- */

static void add_escaped(hf__buf *out, const char *value)
{
    const unsigned char *bytes = (const unsigned char *)value;
    size_t size = strlen(value);
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next(bytes, size, &at);
        if (point < 0)
            hf__buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD */
        else if (point == '\n')
            hf__buf_puts(out, "\\n");
        else if (point == '"' || point == '\\')
            hf__buf_printf(out, "\\%c", (char)point);
        else
            hf__buf_add(out, bytes + start, at - start);
    }
}

void hf__metric_labels_add(hf__metric_labels *labels, const char *name, const char *value)
{
    hf__buf_puts(&labels->text, name);
    hf__buf_puts(&labels->text, "=\"");
    add_escaped(&labels->text, value);
    hf__buf_puts(&labels->text, "\"");
    hf__buf_add(&labels->ends, &labels->text.length, sizeof labels->text.length);
}

static size_t end_of(const hf__metric_labels *labels, size_t at)
{
    size_t end = 0;
    memcpy(&end, labels->ends.data + at * sizeof end, sizeof end);
    return end;
}

hf__metric_text hf__metric_label_at(const hf__metric_labels *labels, size_t at)
{
    size_t begin = at > 0 ? end_of(labels, at - 1) : 0;
    return (hf__metric_text){labels->text.data + begin, end_of(labels, at) - begin};
}

bool hf__metric_labels_broken(const hf__metric_labels *labels)
{
    return labels->text.broken || labels->ends.broken;
}

void hf__metric_labels_free(hf__metric_labels *labels)
{
    hf__buf_free(&labels->text);
    hf__buf_free(&labels->ends);
}

/* ---- families ---- */

static void add_comment(hf__metrics *metrics, const char *keyword, const char *suffix,
                        const char *text)
{
    hf__buf_puts(metrics->out, keyword);
    hf__buf_add(metrics->out, metrics->name.text, metrics->name.size);
    hf__buf_puts(metrics->out, suffix);
    hf__buf_puts(metrics->out, " ");
    hf__buf_puts(metrics->out, text);
    hf__buf_puts(metrics->out, "\n");
}

static void add_mark(const hf__metrics *metrics)
{
    if (metrics->marks != NULL)
        hf__buf_add(metrics->marks, &metrics->out->length, sizeof metrics->out->length);
}

void hf__metric_family(hf__metrics *metrics, const char *name, hf__metric_type type,
                       const char *unit, const char *help)
{
    static const struct {
        const char *suffix, *text, *openmetrics;
    } types[] = {
        [HF__METRIC_GAUGE] = {"", "gauge", "gauge"},
        [HF__METRIC_COUNTER] = {"_total", "counter", "counter"},
        [HF__METRIC_HISTOGRAM] = {"", "histogram", "histogram"},
        [HF__METRIC_INFO] = {"_info", "gauge", "info"},
    };
    metrics->name = (hf__metric_text){name, strlen(name)};
    metrics->suffix = types[type].suffix;
    const char *suffix = metrics->openmetrics ? "" : metrics->suffix;
    add_mark(metrics);
    add_comment(metrics, "# HELP ", suffix, help);
    add_comment(metrics, "# TYPE ", suffix,
                metrics->openmetrics ? types[type].openmetrics : types[type].text);
    if (metrics->openmetrics && unit[0] != '\0')
        add_comment(metrics, "# UNIT ", suffix, unit);
    add_mark(metrics);
}

/* Where the heading of a family begins in a part, or, one further, where its samples do. */
static size_t mark_of(const hf__metric_part *part, size_t at)
{
    size_t mark = part->text.length;
    if (at < part->marks.length / sizeof mark)
        memcpy(&mark, part->marks.data + at * sizeof mark, sizeof mark);
    return mark;
}

static void add_piece(hf__buf *out, const hf__metric_part *part, size_t at)
{
    size_t begin = mark_of(part, at);
    hf__buf_add(out, part->text.data + begin, mark_of(part, at + 1) - begin);
}

/* A part that ends early has no samples of the families that follow. */
void hf__metrics_join(const hf__metric_part *parts, size_t count, hf__buf *out)
{
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].marks.length > parts[longest].marks.length)
            longest = i;
        out->broken = out->broken || parts[i].text.broken || parts[i].marks.broken;
    }
    size_t marks = out->broken ? 0 : parts[longest].marks.length / sizeof(size_t);
    for (size_t at = 0; at < marks; at += 2) {
        add_piece(out, &parts[longest], at);
        for (size_t i = 0; i < count; i++)
            add_piece(out, &parts[i], at + 1);
    }
}

/* ---- samples ---- */

void hf__metric_begin(hf__metrics *metrics, const char *suffix)
{
    hf__buf_add(metrics->out, metrics->name.text, metrics->name.size);
    hf__buf_puts(metrics->out, suffix[0] != '\0' ? suffix : metrics->suffix);
    metrics->has_labels = false;
    if (metrics->store[0] != '\0')
        hf__metric_word(metrics, "store", metrics->store);
}

void hf__metric_label(hf__metrics *metrics, hf__metric_text label)
{
    hf__buf_add(metrics->out, metrics->has_labels ? "," : "{", 1);
    hf__buf_add(metrics->out, label.text, label.size);
    metrics->has_labels = true;
}

static void begin_word(hf__metrics *metrics, const char *name)
{
    hf__metric_label(metrics, (hf__metric_text){name, strlen(name)});
    hf__buf_add(metrics->out, "=\"", 2);
}

void hf__metric_word(hf__metrics *metrics, const char *name, const char *word)
{
    begin_word(metrics, name);
    hf__buf_puts(metrics->out, word);
    hf__buf_add(metrics->out, "\"", 1);
}

static void begin_value(hf__metrics *metrics)
{
    hf__buf_add(metrics->out, metrics->has_labels ? "} " : " ", metrics->has_labels ? 2 : 1);
}

static void add_unsigned(hf__buf *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    hf__buf_add(out, digits + at, sizeof digits - at);
}

/* Writes value / 10^places exactly, with as few decimal places as possible but at least one. */
static void add_decimal(hf__buf *out, uint64_t value, size_t places)
{
    char digits[8] = "";
    for (size_t i = places; i > 0; i--) {
        digits[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    while (places > 1 && digits[places - 1] == '0')
        places--;
    add_unsigned(out, value);
    hf__buf_add(out, ".", 1);
    hf__buf_add(out, digits, places);
}

static void add_seconds(hf__buf *out, double seconds)
{
    double most = 9e12; /* in microseconds it still fits */
    add_decimal(out, seconds > 0 ? (uint64_t)llround(fmin(seconds, most) * 1e6) : 0, 6);
}

void hf__metric_bound(hf__metrics *metrics, double seconds)
{
    begin_word(metrics, "le");
    if (isinf(seconds))
        hf__buf_puts(metrics->out, "+Inf");
    else
        add_seconds(metrics->out, seconds);
    hf__buf_add(metrics->out, "\"", 1);
}

void hf__metric_count(hf__metrics *metrics, uint64_t value)
{
    begin_value(metrics);
    add_unsigned(metrics->out, value);
    hf__buf_add(metrics->out, "\n", 1);
}

void hf__metric_integer(hf__metrics *metrics, int64_t value)
{
    begin_value(metrics);
    if (value < 0)
        hf__buf_add(metrics->out, "-", 1);
    add_unsigned(metrics->out, value < 0 ? -(uint64_t)value : (uint64_t)value);
    hf__buf_add(metrics->out, "\n", 1);
}

void hf__metric_ms(hf__metrics *metrics, int64_t ms)
{
    begin_value(metrics);
    if (ms <= 0)
        hf__buf_add(metrics->out, "0", 1);
    else
        add_decimal(metrics->out, (uint64_t)ms, 3);
    hf__buf_add(metrics->out, "\n", 1);
}

void hf__metric_seconds(hf__metrics *metrics, double seconds)
{
    begin_value(metrics);
    add_seconds(metrics->out, seconds);
    hf__buf_add(metrics->out, "\n", 1);
}

void hf__metrics_end(hf__metrics *metrics)
{
    if (metrics->openmetrics)
        hf__buf_puts(metrics->out, "# EOF\n");
}

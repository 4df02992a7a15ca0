/*
 * Metrics: the families that are made of a snapshot (metrics.c), and how they are written in
 * Prometheus' text format 0.0.4 or in OpenMetrics 1.0.0 (metrics_format.c). Pure functions, for
 * any thread.
 */
#ifndef HF_SERVE_METRICS_H
#define HF_SERVE_METRICS_H

#include <stdint.h>

#include "base/buf.h"
#include "programs/view/snapshot.h"

/* A store, and what is known of it. */
typedef struct hf__metric_store {
    const char *name; /* the label `store` of all its samples; "": none of them has it */
    const hf__snapshot *seen;
} hf__metric_store;

/* All metrics of these stores. Without memory out is broken. */
void hf__render_metrics(const hf__metric_store *stores, size_t count, bool openmetrics,
                        hf__buf *out);

typedef enum hf__metric_type {
    HF__METRIC_GAUGE,
    HF__METRIC_COUNTER,   /* its samples end with _total */
    HF__METRIC_HISTOGRAM, /* with _bucket, _sum and _count */
    HF__METRIC_INFO,      /* with _info; the text format has none and calls it a gauge */
} hf__metric_type;

typedef struct hf__metric_text {
    const char *text;
    size_t size;
} hf__metric_text;

/* A list of NAME="VALUE", each escaped once for all the samples that have it. */
typedef struct hf__metric_labels {
    hf__buf text;
    hf__buf ends; /* size_t each */
} hf__metric_labels;
void hf__metric_labels_add(hf__metric_labels *labels, const char *name, const char *value);
hf__metric_text hf__metric_label_at(const hf__metric_labels *labels, size_t at);
bool hf__metric_labels_broken(const hf__metric_labels *labels); /* there was no memory */
void hf__metric_labels_free(hf__metric_labels *labels);

/* One document, or the part of one store in it. Without memory out is broken. */
typedef struct hf__metrics {
    hf__buf *out;
    bool openmetrics;
    const char *store; /* what `store` is in every sample; "": they have none */
    hf__buf *marks;    /* size_t each: where a family begins, and its samples; NULL: not needed */
    hf__metric_text name; /* of the family that is being written */
    const char *suffix;   /* of its plain samples */
    bool has_labels;      /* of the sample that is being written */
} hf__metrics;

/* Joins parts that have the same families, as a family must not come twice. */
typedef struct hf__metric_part {
    hf__buf text, marks;
} hf__metric_part;
void hf__metrics_join(const hf__metric_part *parts, size_t count, hf__buf *out);

/* Begins a family. name is without _total and _info; unit is "" or the end of the name. */
void hf__metric_family(hf__metrics *metrics, const char *name, hf__metric_type type,
                       const char *unit, const char *help);

/* A sample: begin, its labels, and its value. suffix is "" except in a histogram. */
void hf__metric_begin(hf__metrics *metrics, const char *suffix);
void hf__metric_label(hf__metrics *metrics, hf__metric_text label);
void hf__metric_word(hf__metrics *metrics, const char *name, const char *word); /* as it is */
void hf__metric_bound(hf__metrics *metrics, double seconds); /* le; INFINITY for the last */
void hf__metric_count(hf__metrics *metrics, uint64_t value);
void hf__metric_integer(hf__metrics *metrics, int64_t value);
void hf__metric_ms(hf__metrics *metrics, int64_t ms); /* as seconds */
void hf__metric_seconds(hf__metrics *metrics, double seconds);

void hf__metrics_end(hf__metrics *metrics);

#endif

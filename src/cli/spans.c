/* One line of OTLP in JSON for each span, as OpenTelemetry's file exporter writes it. */
#include "cli/spans.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"

enum { TRACE_AT = 3, TRACE_SIZE = 32, SPAN_AT = 36, SPAN_SIZE = 16 };

static void put_ids(hf__json *json, const char *traceparent)
{
    hf__json_put_bytes(json, "traceId", traceparent + TRACE_AT, TRACE_SIZE);
    hf__json_put_bytes(json, "spanId", traceparent + SPAN_AT, SPAN_SIZE);
}

/* OTLP writes 64 bits as text. */
static void put_big(hf__json *json, const char *key, int64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, value);
    hf__json_put_string(json, key, text);
}

static void begin_attribute(hf__json *json, const char *key)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "key", key);
    hf__json_begin_object(json, "value");
}

static void end_attribute(hf__json *json)
{
    hf__json_end_object(json);
    hf__json_end_object(json);
}

static void put_text(hf__json *json, const char *key, const char *value, size_t size)
{
    begin_attribute(json, key);
    hf__json_put_bytes(json, "stringValue", value, size);
    end_attribute(json);
}

static void put_number(hf__json *json, const char *key, int64_t value)
{
    begin_attribute(json, key);
    put_big(json, "intValue", value);
    end_attribute(json);
}

static void put_attributes(hf__json *json, const hf_span *span)
{
    hf__json_begin_array(json, "attributes");
    if (span->label)
        put_text(json, "holdfast.label", span->label, span->label_size);
    put_number(json, "holdfast.key", span->key);
    if (span->token)
        put_number(json, "holdfast.token", span->token);
    if (span->slot)
        put_number(json, "holdfast.slot", span->slot);
    hf__json_end_array(json);
}

static void put_span(hf__json *json, const hf_span *span)
{
    static const char *const names[] = {
        [HF_SPAN_WAIT] = "holdfast wait",
        [HF_SPAN_HOLD] = "holdfast hold",
        [HF_SPAN_TRANSACTION] = "holdfast transaction",
    };
    enum { INTERNAL = 1, ERROR = 2 };

    put_ids(json, span->traceparent);
    if (span->parent[0] != '\0')
        hf__json_put_bytes(json, "parentSpanId", span->parent + SPAN_AT, SPAN_SIZE);
    hf__json_put_string(json, "name", names[span->kind]);
    hf__json_put_integer(json, "kind", INTERNAL);
    put_big(json, "startTimeUnixNano", span->start_ns);
    put_big(json, "endTimeUnixNano", span->end_ns);
    put_attributes(json, span);
    if (span->link[0] != '\0') {
        hf__json_begin_array(json, "links");
        hf__json_begin_object(json, NULL);
        put_ids(json, span->link);
        hf__json_end_object(json);
        hf__json_end_array(json);
    }
    hf__json_begin_object(json, "status");
    if (span->status != HF_OK) {
        hf__json_put_integer(json, "code", ERROR);
        hf__json_put_string(json, "message", hf_status_name(span->status));
    }
    hf__json_end_object(json);
}

/* A trace has spans of one resource, which are in one scope. */
static void put_traces(hf__json *json, const hf_span *span)
{
    const char *service = getenv("OTEL_SERVICE_NAME");

    service = service != NULL && service[0] != '\0' ? service : "holdfast";
    hf__json_begin_object(json, NULL);
    hf__json_begin_array(json, "resourceSpans");
    hf__json_begin_object(json, NULL);
    hf__json_begin_object(json, "resource");
    hf__json_begin_array(json, "attributes");
    put_text(json, "service.name", service, strlen(service));
    hf__json_end_array(json);
    hf__json_end_object(json);
    hf__json_begin_array(json, "scopeSpans");
    hf__json_begin_object(json, NULL);
    hf__json_begin_object(json, "scope");
    hf__json_put_string(json, "name", "holdfast");
    hf__json_put_string(json, "version", hf_version());
    hf__json_end_object(json);
    hf__json_begin_array(json, "spans");
    hf__json_begin_object(json, NULL);
    put_span(json, span);
    hf__json_end_object(json);
    for (int open = 0; open < 2; open++) {
        hf__json_end_array(json);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
    hf__json_end_object(json);
}

/* One write, so that lines of several processes are whole. */
static void write_span(const hf_span *span, void *arg)
{
    const struct span_file *file = arg;
    hf__json json = {0};

    put_traces(&json, span);
    hf__buf_puts(&json.text, "\n");
    errno = EIO; /* a part of it was written */
    if (json.text.broken ||
        write(file->fd, json.text.data, json.text.length) != (ssize_t)json.text.length)
        report_warning(file->report, "a span could not be written to %s: %s", file->path,
                       strerror(errno));
    hf__buf_free(&json.text);
}

hf_status span_file_open(struct span_file *file, const char *path, const struct report *report,
                         hf_store_options *options, hf_error *err)
{
    char shown[SHOWN_MAX];

    if (path == NULL)
        return HF_OK;
    options->on_span = write_span;
    options->span_arg = file;
    if (file->path != NULL)
        return HF_OK;
    file->report = report;
    file->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file->fd < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot open the file %s",
                              show_argument(shown, path));
    file->path = path;
    return HF_OK;
}

void span_file_close(struct span_file *file)
{
    if (file->path != NULL)
        close(file->fd);
    file->path = NULL;
}

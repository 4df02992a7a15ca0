#include "programs/ingest/backfill_stream.h"

#include <string.h>

enum { NEAR = 64 }; /* ledgers that are sooner read over than sought */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

bool stream_spec_seeks(const char *spec)
{
    return strncmp(spec, "exec:", 5) != 0 && !ends_with(spec, ".gz") && !ends_with(spec, ".zst");
}

static bool can_go_on(const struct stream *stream, int64_t from)
{
    return stream->reader && stream->next <= from && from <= stream->to &&
           (!stream->seeks || from - stream->next <= NEAR);
}

hf_status stream_aim(struct stream *stream, int64_t from, int64_t until, hf_error *err)
{
    stream->from = from;
    if (can_go_on(stream, from))
        return HF_OK;
    stream_close(stream);
    stream->next = from;
    stream->to = until;
    return hf__reader_start(stream->options, from, until, stream->memory, stream->stop,
                            &stream->reader, err);
}

static bool is_passed_over(const struct stream *stream, const hf__read *read)
{
    if (read->kind == HF__READ_LEDGER)
        return read->ledger->sequence < stream->from;
    return read->kind == HF__READ_BAD && stream->next < stream->from &&
           read->bad.sequence < stream->from;
}

hf__read stream_take(struct stream *stream, int ms)
{
    for (;;) {
        hf__read read = hf__reader_take(stream->reader, ms);
        bool passed_over = is_passed_over(stream, &read);
        if (read.kind == HF__READ_LEDGER && read.ledger->sequence >= stream->next)
            stream->next = read.ledger->sequence + 1;
        if (!passed_over)
            return read;
        hf__read_free(&read);
    }
}

void stream_close(struct stream *stream)
{
    hf__reader_stop(stream->reader);
    stream->reader = NULL;
}

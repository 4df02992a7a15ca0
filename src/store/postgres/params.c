/* Claims as array parameters, and the names under which waiters listen. */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* 32 bits are enough: two keys that share a companion only wake each other for nothing. */
int32_t hf__pg_companion(int64_t wake)
{
    uint64_t mixed = (uint64_t)wake * UINT64_C(0x9E3779B97F4A7C15);
    return (int32_t)(uint32_t)(mixed >> 32);
}

void hf__pg_channel(char out[24], int64_t wake)
{
    (void)snprintf(out, 24, "hf_%016llx", (unsigned long long)wake);
}

static void separate(hf__buf *buf)
{
    hf__buf_puts(buf, buf->length ? "," : "{");
}

static void array_int(hf__buf *buf, int64_t value)
{
    separate(buf);
    hf__buf_printf(buf, "%lld", (long long)value);
}

void hf__pg_array_text(hf__buf *buf, const void *text, size_t size)
{
    const char *bytes = text;
    separate(buf);
    hf__buf_puts(buf, "\"");
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\')
            hf__buf_puts(buf, "\\");
        hf__buf_add(buf, bytes + i, 1);
    }
    hf__buf_puts(buf, "\"");
}

/* A label that is no UTF-8 cannot be stored as text: its escaped form can. */
static void array_label(hf__buf *buf, const hf__claim *claim)
{
    char shown[4 * 256];
    if (hf__utf8_valid(claim->label, claim->label_size)) {
        hf__pg_array_text(buf, claim->label, claim->label_size);
    } else {
        hf__show(shown, sizeof shown, claim->label, claim->label_size);
        hf__pg_array_text(buf, shown, strlen(shown));
    }
}

static void close_arrays(pg_arrays *arrays)
{
    hf__buf *all[] = {&arrays->keys,       &arrays->spaces,   &arrays->slots,
                      &arrays->companions, &arrays->channels, &arrays->labels,
                      &arrays->derivations};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i]->length)
            hf__buf_puts(all[i], "{");
        hf__buf_puts(all[i], "}");
    }
}

hf_status hf__pg_arrays_fill(pg_arrays *arrays, const hf__claim *claims, size_t count,
                             hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        char channel[24];
        hf__pg_channel(channel, claims[i].wake);
        array_int(&arrays->keys, claims[i].key);
        array_int(&arrays->spaces, claims[i].space);
        array_int(&arrays->slots, claims[i].slot);
        array_int(&arrays->companions, hf__pg_companion(claims[i].wake));
        hf__pg_array_text(&arrays->channels, channel, strlen(channel));
        if (claims[i].label) {
            const char *derivation = hf_derivation_name(claims[i].derivation);
            array_label(&arrays->labels, &claims[i]);
            hf__pg_array_text(&arrays->derivations, derivation, strlen(derivation));
        }
    }
    close_arrays(arrays);
    if (arrays->keys.broken || arrays->spaces.broken || arrays->slots.broken ||
        arrays->companions.broken || arrays->channels.broken || arrays->labels.broken ||
        arrays->derivations.broken)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    return HF_OK;
}

void hf__pg_arrays_free(pg_arrays *arrays)
{
    hf__buf_free(&arrays->keys);
    hf__buf_free(&arrays->spaces);
    hf__buf_free(&arrays->slots);
    hf__buf_free(&arrays->companions);
    hf__buf_free(&arrays->channels);
    hf__buf_free(&arrays->labels);
    hf__buf_free(&arrays->derivations);
}

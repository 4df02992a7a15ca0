/*
 * read_source SPEC NETWORK [--stop-fd N] [--line-max N] [--follow]: reads a source as it is told.
 * Each line of the standard input (extent, seek N, next) is answered by one line of JSON; notes go
 * to stderr. See source_reader.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/ingest/sources/source.h"

static void print_text(const char *text, size_t size)
{
    putchar('"');
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else if (byte < 0x20)
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void print_slice(const char *name, hf__slice slice)
{
    printf(",\"%s\":", name);
    if (slice.text == NULL)
        fputs("null", stdout);
    else
        print_text(slice.text, slice.size);
}

static void print_transaction(const hf__transaction *transaction)
{
    printf("{\"order\":%" PRId32, transaction->order);
    print_slice("hash", transaction->hash);
    print_slice("status", transaction->status);
    if (transaction->has_fee)
        printf(",\"fee\":%" PRId64, transaction->fee);
    fputs(",\"body\":", stdout);
    fwrite(transaction->body.text, 1, transaction->body.size, stdout);
    putchar('}');
}

static void print_ledger(const hf__ledger *ledger)
{
    printf(",\"ledger\":{\"sequence\":%" PRId64 ",\"closed_at_us\":%" PRId64 ",\"tip\":%" PRId64
           ",\"weight\":%zu",
           ledger->sequence, ledger->closed_at_us, ledger->tip, ledger->weight);
    print_slice("hash", ledger->hash);
    print_slice("previous_hash", ledger->previous_hash);
    fputs(",\"transactions\":[", stdout);
    for (size_t i = 0; i < ledger->transaction_count; i++) {
        if (i > 0)
            putchar(',');
        print_transaction(&ledger->transactions[i]);
    }
    fputs("]}", stdout);
}

static void print_bad(const hf__bad_ledger *bad)
{
    printf(",\"bad\":{\"sequence\":%" PRId64 ",\"where\":", bad->sequence);
    print_text(bad->where, strlen(bad->where));
    fputs(",\"bytes\":", stdout);
    print_text(bad->bytes != NULL ? bad->bytes : "", bad->size);
    putchar('}');
}

static void print_outcome(hf_status status, const hf_error *err)
{
    printf("{\"status\":\"%s\"", hf_status_name(status));
    if (status == HF_OK)
        return;
    fputs(",\"message\":", stdout);
    print_text(err->message, strlen(err->message));
    fputs(",\"hint\":", stdout);
    print_text(err->hint, strlen(err->hint));
}

static void do_next(hf__source *source)
{
    hf__ledger *ledger = NULL;
    hf__bad_ledger bad = {0};
    hf_error err = {0};
    hf_status status = source->ops->next(source, &ledger, &bad, &err);

    print_outcome(status, &err);
    if (status == HF_OK && ledger != NULL)
        print_ledger(ledger);
    if (status == HF_BAD_DATA)
        print_bad(&bad);
    hf__ledger_free(ledger);
    hf__bad_ledger_free(&bad);
}

static void do_command(hf__source *source, const char *command)
{
    int64_t oldest = 0, latest = 0;
    hf_error err = {0};

    if (strcmp(command, "next\n") == 0) {
        do_next(source);
    } else if (strcmp(command, "extent\n") == 0) {
        hf_status status = source->ops->extent(source, &oldest, &latest, &err);
        print_outcome(status, &err);
        printf(",\"oldest\":%" PRId64 ",\"latest\":%" PRId64, oldest, latest);
    } else if (strncmp(command, "seek ", 5) == 0) {
        print_outcome(source->ops->seek(source, strtoll(command + 5, NULL, 10), &err), &err);
    } else {
        fprintf(stderr, "error: unknown command %s", command);
        exit(2);
    }
    puts("}");
    fflush(stdout);
}

static void log_note(void *arg, hf_log_level level, const char *message)
{
    (void)arg;
    fprintf(stderr, "%s: %s\n", level == HF_LOG_WARNING ? "warning" : "note", message);
}

int main(int argc, char **argv)
{
    char command[256];
    hf__source *source = NULL;
    hf_error err = {0};

    if (argc < 3)
        return 2;
    hf__source_options options = {
        .spec = argv[1], .network = argv[2], .stop_fd = -1, .log = log_note};
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--follow") == 0)
            options.follow = true;
        else if (strcmp(argv[i], "--stop-fd") == 0 && i + 1 < argc)
            options.stop_fd = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--line-max") == 0 && i + 1 < argc)
            options.line_max = strtoul(argv[++i], NULL, 10);
        else
            return 2;
    }
    hf_status status = hf__source_open(&options, &source, &err);
    print_outcome(status, &err);
    fputs(",\"name\":", stdout);
    print_text(source != NULL ? source->name : "", source != NULL ? strlen(source->name) : 0);
    puts("}");
    fflush(stdout);
    while (status == HF_OK && fgets(command, sizeof command, stdin) != NULL)
        do_command(source, command);
    hf__source_close(source);
    return status == HF_OK ? 0 : 1;
}

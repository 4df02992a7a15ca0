#include "programs/holdfast/completion/offer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_read.h"
#include "base/text.h"
#include "cli/choice.h"
#include "cli/libexec.h"
#include "cli/options.h"
#include "cli/program.h"

enum {
    ANSWER_MAX = 64 * 1024, /* of one program; a longer answer is not from one of ours */
    STORE_SECONDS = 2,      /* nobody waits longer for a Tab */
};

/* ---- which words there are for a place ------------------------------------------------------- */

enum offer { NOTHING, WORDS, FILES, COMMANDS, LABELS, NETWORKS, DERIVATIONS, NAMES };

/* The first rule that applies counts. Where none does, nothing is offered. */
static const struct rule {
    const char *command; /* NULL: any */
    const char *place;   /* an option, the name of its value, the number of an operand, "*": any */
    enum offer offer;
    const char *words;
} rules[] = {
    {"append", "--format", WORDS, "JSONEachRow CSVWithNames TSV Native"},
    {"append", "--orphans", WORDS, "kill wait"},
    {"ingest", "--on-bad", WORDS, "stop quarantine"},
    {"locks", "--label", LABELS, NULL},
    {"registry lint", "--confidence", WORDS, "high medium low"},
    {"run", "--on-gain", COMMANDS, NULL},
    {"run", "--on-loss", COMMANDS, NULL},
    {"tx", "--isolation", WORDS, "serializable repeatable-read read-committed"},
    {NULL, "FORMAT", WORDS, "human json sarif github"},
    {NULL, "DERIVATION", DERIVATIONS, NULL},
    {NULL, "FILE", FILES, NULL},
    {NULL, "NET", NETWORKS, NULL},
    {"append", "1", NOTHING, NULL},
    {"append", "*", FILES, NULL},
    {"completion", "1", WORDS, "bash zsh fish"},
    {"cursor", "1", WORDS, "get set set-min advance swap list"},
    {"help", "1", NAMES, NULL},
    {"key", "*", LABELS, NULL},
    {"registry check", "1", FILES, NULL},
    {"registry import", "1", FILES, NULL},
    {"registry init", "*", FILES, NULL},
    {"registry lint", "*", FILES, NULL},
    {"run", "1", LABELS, NULL},
    {"run", "2", COMMANDS, NULL},
    {"run", "*", FILES, NULL},
    {"table", "1", WORDS, "register show list ref unref drop adopt leave"},
    {"tx", "*", LABELS, NULL},
    {"yield", "1", LABELS, NULL},
};

static const struct rule *find_rule(const char *command, const char *place, const char *other_place)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if ((rules[i].command == NULL || strcmp(rules[i].command, command) == 0) &&
            (strcmp(rules[i].place, place) == 0 || strcmp(rules[i].place, other_place) == 0))
            return &rules[i];
    return NULL;
}

/* ---- the line -------------------------------------------------------------------------------- */

struct line {
    const char *command;       /* "registry lint" */
    const char *options;       /* " -w=TIME --wait=TIME --json" */
    bool operands_end_options; /* of this command */
    const char *lead;          /* what stands before the value in its own word: "--network=" */
    const char *typed;         /* what the offers must begin with */
    struct common common;      /* url and registry, as the line has them */
};

static void offer(const struct line *line, const char *word)
{
    const unsigned char *bytes = (const unsigned char *)word;
    size_t size = strlen(word);

    if (strncmp(word, line->typed, strlen(line->typed)) != 0)
        return;
    for (size_t at = 0; at < size;) /* a shell would take some of these for the end of a word */
        if (hf__is_unsafe(hf__utf8_next(bytes, size, &at)))
            return;
    printf("%s%s\n", line->lead, word);
}

static void offer_words(const struct line *line, const char *words)
{
    char word[64];
    int used = 0;

    for (; sscanf(words, " %63s%n", word, &used) == 1; words += used)
        offer(line, word);
}

static void offer_names(const struct line *line)
{
    char **programs = find_programs();

    for (const struct command *const *c = holdfast_program.commands; *c != NULL; c++)
        if (!(*c)->hidden)
            offer(line, (*c)->name);
    for (char **name = programs; name != NULL && *name != NULL; name++)
        offer(line, *name);
    free_programs(programs);
}

/* Finds "-w" in " -w=TIME --wait=TIME"; value gets TIME, or "" for a flag. */
static bool find_option(const char *options, const char *name, size_t length, char value[64])
{
    char option[64];
    int used = 0;

    for (; sscanf(options, " %63[^= ]%n", option, &used) == 1;) {
        options += used;
        value[0] = '\0';
        if (sscanf(options, "=%63[^ ]%n", value, &used) == 1)
            options += used;
        if (strlen(option) == length && memcmp(option, name, length) == 0)
            return true;
    }
    return false;
}

static void offer_options(const struct line *line)
{
    char option[64];
    int used = 0;

    for (const char *at = line->options; sscanf(at, " %63[^= ]%n", option, &used) == 1;) {
        offer(line, option);
        at += used;
        at += strcspn(at, " ");
    }
}

/* ---- the store ------------------------------------------------------------------------------- */

/* To press Tab must not make a folder: only a store that is there is opened. */
static bool is_there(const char *url)
{
    return strncmp(url, "local:", 6) != 0 || access(url + 6, F_OK) == 0;
}

static void offer_labels_of(const struct line *line, const hf_registry *registry, hf_store *store)
{
    hf_lock_list *list = NULL;
    hf_status status = hf_lock_list_read_past(store, -1, &list, NULL);

    if (status == HF_NO_SCHEMA)
        status = hf_lock_list_read(store, &list, NULL);
    for (size_t i = 0; status == HF_OK && i < hf_lock_list_count(list); i++) {
        const hf_lock_view *view = hf_lock_list_at(list, i);
        if (view->label != NULL && view->label[0] != '\0' &&
            (registry == NULL || hf_registry_find(registry, view->label) == NULL))
            offer(line, view->label);
    }
    hf_lock_list_free(list);
}

/* The registry's names first: they are there, whatever becomes of the store. */
static void offer_labels(const struct line *line)
{
    struct invocation in = {.common = line->common, .report = report_to_stderr(false)};
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    struct store_choice choice = {0};
    hf_registry *registry = NULL;
    hf_store *store = NULL;

    if (open_registry(&in.common, &registry, NULL) == HF_OK && registry != NULL)
        for (size_t i = 0; i < hf_registry_count(registry); i++)
            offer(line, hf_registry_at(registry, i)->name);
    (void)fflush(stdout);
    options.application = "holdfast completion";
    if (prepare_store(&in, &options, &choice, NULL) == HF_OK && is_there(choice.url) &&
        hf_store_open(&options, &store, NULL) == HF_OK)
        offer_labels_of(line, registry, store);
    hf_store_close(store);
    store_choice_free(&choice);
    hf_registry_free(registry);
}

static void offer_networks_in(const struct line *line, const hf__buf *answer)
{
    hf__json_value document, networks, network, name;
    hf__json_walk walk;
    char text[64];

    if (hf__json_parse(answer->data, answer->length, &document, NULL) != HF_OK ||
        !hf__json_get(&document, "networks", &networks))
        return;
    hf__json_walk_begin(&walk, &networks);
    while (hf__json_walk_next(&walk, NULL, &network))
        if (hf__json_get(&network, "network", &name) && name.kind == HF__JSON_STRING &&
            !name.escaped && name.text.size < sizeof text) {
            (void)snprintf(text, sizeof text, "%.*s", (int)name.text.size, name.text.text);
            offer(line, text);
        }
}

/* Only the program `ingest` knows what a network looks like in a store. */
static void offer_networks(const struct line *line)
{
    struct invocation in = {.common = line->common, .report = report_to_stderr(false)};
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    struct store_choice choice = {0};
    hf__buf answer = {0};

    if (prepare_store(&in, &options, &choice, NULL) == HF_OK && is_there(choice.url)) {
        char *const arguments[] = {"status", "--json", "--url", choice.url, NULL};
        if (ask_program("ingest", arguments, &answer) && answer.length > 0)
            offer_networks_in(line, &answer);
    }
    hf__buf_free(&answer);
    store_choice_free(&choice);
}

/* ---- the offers for a place ------------------------------------------------------------------ */

static void offer_for(const struct line *line, const char *place, const char *other_place)
{
    const struct rule *rule = find_rule(line->command, place, other_place);

    (void)alarm(STORE_SECONDS);
    switch (rule != NULL ? rule->offer : NOTHING) {
    case NOTHING: break;
    case WORDS: offer_words(line, rule->words); break;
    case FILES: puts(":files"); break;
    case COMMANDS: puts(":commands"); break;
    case LABELS: offer_labels(line); break;
    case NETWORKS: offer_networks(line); break;
    case DERIVATIONS:
        for (hf_derivation d = HF_SHA256; hf_derivation_name(d) != NULL; d++)
            offer(line, hf_derivation_name(d));
        break;
    case NAMES: offer_names(line); break;
    }
}

/* What a program needs to know to look where the line says. */
static void note_value(struct line *line, const char *option, size_t length, const char *value)
{
    if (length == 5 && memcmp(option, "--url", 5) == 0)
        line->common.url = value;
    else if (length == 10 && memcmp(option, "--registry", 10) == 0)
        line->common.registry = value;
}

/* words are those behind the command; the last is being typed. */
static void offer_in(struct line *line, char *const *words, int count)
{
    const char *typed = words[count - 1];
    size_t length = strcspn(typed, "=");
    bool has_options = true;
    int operands = 0;
    char value[64], place[16];

    for (int i = 0; i < count - 1; i++) {
        size_t name = strcspn(words[i], "=");
        if (!has_options || words[i][0] != '-' || words[i][1] == '\0') {
            operands++;
            has_options = has_options && !line->operands_end_options;
        } else if (strcmp(words[i], "--") == 0) {
            has_options = false;
        } else if (words[i][name] == '=') {
            note_value(line, words[i], name, words[i] + name + 1);
        } else if (find_option(line->options, words[i], name, value) && value[0] != '\0') {
            if (i + 1 == count - 1) {
                line->typed = typed;
                offer_for(line, words[i], value);
                return;
            }
            note_value(line, words[i], name, words[i + 1]);
            i++;
        }
        if (operands == 1 && i + 1 < count - 1 && strcmp(words[i + 1], "--") == 0)
            i++; /* between a label and its command */
    }
    line->typed = typed;
    if (has_options && typed[0] == '-' && typed[length] == '=' &&
        find_option(line->options, typed, length, value) && value[0] != '\0') {
        char *lead = strndup(typed, length + 1);
        char *option = strndup(typed, length);
        line->typed = typed + length + 1;
        line->lead = lead;
        if (lead != NULL && option != NULL)
            offer_for(line, option, value);
        free(lead);
        free(option);
    } else if (has_options && typed[0] == '-') {
        offer_options(line);
    } else {
        (void)snprintf(place, sizeof place, "%d", operands + 1);
        offer_for(line, place, "*");
    }
}

/* ---- which command it is --------------------------------------------------------------------- */

static void offer_in_command(struct line *line, const struct command *command, char *const *words,
                             int count)
{
    char *options = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&options, &size);

    if (out == NULL)
        return;
    print_option_names(command->options, out);
    print_option_names(common_options, out);
    if (fclose(out) == 0) {
        line->command = command->name;
        line->options = options;
        line->operands_end_options = command->operands_end_options;
        offer_in(line, words, count);
    }
    free(options);
}

/* Is there nothing in it that does not belong there? */
static bool is_list_of_words(const hf__buf *answer)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-=_: \n";

    return answer->length > 0 && answer->length <= ANSWER_MAX &&
           answer->data[answer->length - 1] == '\n' &&
           strspn(answer->data, allowed) == answer->length;
}

/*
 * A program answers with one line for each command: its name, then its options. The name is "-"
 * for options without a command. Cuts the answer into its lines.
 */
static void offer_in_program(struct line *line, hf__buf *answer, char *const *words, int count)
{
    hf__buf command = {0};
    const char *own = NULL, *options = NULL;
    bool is_second_word = count == 2 && words[1][0] != '-';

    for (char *at = answer->data, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        size_t length = strcspn(at, " \n");
        bool is_own = length == 1 && at[0] == '-';
        *end = '\0';
        if (is_own)
            own = at + length;
        else if (count > 2 && strlen(words[1]) == length && memcmp(words[1], at, length) == 0)
            options = at + length;
        if (is_second_word && !is_own && length > 0) {
            at[length] = '\0';
            offer(line, at);
        }
    }
    hf__buf_printf(&command, options != NULL ? "%s %s" : "%s", words[0], words[1]);
    line->command = command.data;
    line->options = options != NULL ? options : own;
    if (line->options != NULL && !command.broken && !is_second_word)
        offer_in(line, words + (options != NULL ? 2 : 1), count - (options != NULL ? 2 : 1));
    hf__buf_free(&command);
}

void print_offers(char *const *words, int count)
{
    struct line line = {.lead = "", .typed = words[count - 1]};
    const struct command *command = find_command(&holdfast_program, words[0]);
    char *const arguments[] = {LIST_FOR_COMPLETION, NULL};
    hf__buf answer = {0};

    if (count == 1)
        offer_names(&line);
    else if (command != NULL)
        offer_in_command(&line, command, words + 1, count - 1);
    else if (ask_program(words[0], arguments, &answer) && is_list_of_words(&answer))
        offer_in_program(&line, &answer, words, count);
    hf__buf_free(&answer);
}

/* Defaults: x ?? 5, x or 5, options.get("key", 5): what is meant when nobody says otherwise. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "programs/registry/lint/values/value_eval.h"

struct alternative {
    const char *text;
    unsigned languages;
};

static const struct alternative alternatives[] = {
    {"??", HF__LANG_JS | HF__LANG_CSHARP | HF__LANG_PHP},
    {"||", HF__LANG_JS | HF__LANG_RUBY | HF__LANG_PERL | HF__LANG_ELIXIR},
    {"//", HF__LANG_PERL},
    {"?:", HF__LANG_PHP | HF__LANG_KOTLIN},
    {" or ", HF__LANG_PYTHON | HF__LANG_RUBY},
};

/* Calls whose last argument is the default: getenv("KEY", 5), Keyword.get(options, :key, 5). */
static const struct {
    const char *name;
    size_t arguments;
    unsigned languages;
} getters[] = {
    {"get", 2, HF__LANG_PYTHON},
    {"getenv", 2, HF__LANG_PYTHON},
    {"fetch", 2, HF__LANG_RUBY},
    {"get", 3, HF__LANG_ELIXIR},
    {"get_env", 3, HF__LANG_ELIXIR},
    {"pop", 2, HF__LANG_PYTHON},
    {"unwrap_or", 1, HF__LANG_RUST},
    {"orElse", 1, HF__LANG_JAVA | HF__LANG_KOTLIN},
    {"getOrDefault", 2, HF__LANG_JAVA | HF__LANG_KOTLIN},
    {"getattr", 3, HF__LANG_PYTHON},
    {"GetValueOrDefault", 1, HF__LANG_CSHARP},
};

static bool is_told(const hf__worth *value)
{
    const hf__buf *text = &value->text;

    return value->kind == HF__VALUE_NUMBER ||
           (value->kind == HF__VALUE_TEXT && text->length > 0 &&
            memchr(text->data, HF__LABEL_HOLE, text->length) == NULL &&
            memchr(text->data, HF__LABEL_PARAM, text->length) == NULL);
}

/* Notes what a parameter is when a caller passes nothing. */
void hf__note_otherwise(const hf__worth *fallback, hf__worth *out)
{
    if (fallback->kind == HF__VALUE_NUMBER)
        snprintf(out->otherwise, sizeof out->otherwise, "%" PRId64, fallback->number);
    else if (is_told(fallback) && fallback->text.length < sizeof out->otherwise)
        *(char *)mempcpy(out->otherwise, fallback->text.data, fallback->text.length) = '\0';
}

/* hash(name) || 1 is computed; an option, or a variable of the environment, may be absent. */
static bool may_be_absent(hf__piece given)
{
    static const char *const words[] = {"env", "config", "option", "opts", "setting", "param"};

    if (memchr(given.text, '(', given.size) == NULL)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (size_t at = 0; at + strlen(words[i]) <= given.size; at++)
            if (strncasecmp(given.text + at, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

/* What is given counts, if anybody can tell it; what callers may give is for them to say. */
static void choose(struct hf__eval *in, const hf__scope *scope, hf__piece given, hf__piece fallback,
                   unsigned depth, hf__worth *out)
{
    hf__worth other = {0};
    size_t none = *in->block;
    struct hf__eval aside = {
        .visits = in->visits, .steps = in->steps, .block = &none, .lambda = in->lambda};

    if (given.size > 0)
        hf__evaluate(in, scope, given, depth + 1, out);
    if (is_told(out) || out->kind == HF__VALUE_HASHED || !may_be_absent(given))
        return;
    hf__evaluate(&aside, scope, fallback, depth + 1, &other);
    in->steps = aside.steps;
    if (hf__value_param(out) >= 0) {
        hf__note_otherwise(&other, out);
        hf__value_free(&other);
        return;
    }
    hf__value_free(out);
    *in->block = none;
    *out = other;
}

bool hf__is_nothing(hf__piece piece)
{
    static const char *const words[] = {"null", "undefined", "None", "nil", "false", "\"\"", "''"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (piece.size == strlen(words[i]) && memcmp(piece.text, words[i], piece.size) == 0)
            return true;
    return piece.size == 0;
}

bool hf__evaluate_default(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out)
{
    for (size_t at = 0; at < piece.size && scope->code;
         at += hf__piece_step((hf__piece){piece.text + at, piece.size - at}, false)) {
        for (size_t i = 0; i < sizeof alternatives / sizeof alternatives[0]; i++) {
            size_t size = strlen(alternatives[i].text);
            if ((alternatives[i].languages & hf__eval_language(scope)) == 0 || at == 0 ||
                piece.size - at <= size || memcmp(piece.text + at, alternatives[i].text, size) != 0)
                continue;
            hf__piece given = hf__piece_trim((hf__piece){piece.text, at});
            hf__piece other = {piece.text + at + size, piece.size - at - size};
            choose(in, scope, hf__is_nothing(given) ? (hf__piece){"", 0} : given, other, depth,
                   out);
            return true;
        }
    }
    return false;
}

bool hf__evaluate_getter(struct hf__eval *in, const hf__scope *scope, hf__piece receiver,
                         hf__piece name, const hf__pieces *args, unsigned depth, hf__worth *out)
{
    for (size_t i = 0; i < sizeof getters / sizeof getters[0] && scope->code; i++) {
        if ((getters[i].languages & hf__eval_language(scope)) == 0 ||
            getters[i].arguments != args->count || name.size != strlen(getters[i].name) ||
            memcmp(name.text, getters[i].name, name.size) != 0)
            continue;
        bool whole = args->count == 1; /* x.unwrap_or(5): x itself is what is given */
        choose(in, scope, whole ? hf__piece_owner(receiver) : (hf__piece){"", 0},
               args->items[args->count - 1], depth, out);
        return true;
    }
    return false;
}

bool hf__evaluate_otherwise(const hf__worth *form, hf__worth *out)
{
    char *end = NULL;

    if (form->otherwise[0] == '\0')
        return false;
    out->kind = HF__VALUE_TEXT;
    hf__buf_puts(&out->text, form->otherwise);
    out->number = strtoll(form->otherwise, &end, 10);
    if (*end == '\0') {
        hf__buf_free(&out->text);
        out->kind = HF__VALUE_NUMBER;
    }
    return true;
}

#include "lib/patterns/patterns.h"

#include <stdlib.h>

#include "lib/patterns/automaton.h"
#include "lib/patterns/regex.h"

static hf_status fail_at(const hf__part *part, size_t at, hf_status code, const char *what,
                         const char *hint, hf_error *err)
{
    size_t position = hf__regex_position(part->text, at);
    hf_status status = hf__fail(err, code, "%s at character %zu of the text", what, position);

    hf__hint(err, "%s", hint);
    if (err != NULL)
        err->position = (int)position;
    return status;
}

static hf_status draft_failed(const hf__draft *draft, const hf__part *part, size_t at,
                              hf_error *err)
{
    if (draft->status == HF_QUOTA)
        return fail_at(part, at, HF_QUOTA, "the pattern has too many states", "shorten it", err);
    return fail_at(part, at, draft->status, "out of memory", "", err);
}

static hf_status read_text(hf__draft *draft, const hf__part *part, hf__fragment *fragment,
                           hf_error *err)
{
    *fragment = hf__draft_nothing(draft);
    for (size_t at = 0; at < part->size;) {
        size_t start = at;
        uint32_t character = hf__character_next(part->text, part->size, &at);
        if (character == HF__STRAY_BYTE)
            return fail_at(part, start, HF_INVALID, "a byte that is no UTF-8", "write it in UTF-8",
                           err);
        hf__fragment next = hf__draft_one_of(draft, &(hf__range){character, character}, 1);
        *fragment = hf__draft_then(draft, *fragment, next);
        if (draft->status != HF_OK)
            return draft_failed(draft, part, start, err);
    }
    return draft->status == HF_OK ? HF_OK : draft_failed(draft, part, 0, err);
}

static hf_status read_part(hf__draft *draft, const hf__part *part, hf__fragment *fragment,
                           hf_error *err)
{
    return part->is_regex ? hf__regex_read(draft, part->text, part->size, fragment, err)
                          : read_text(draft, part, fragment, err);
}

static hf_status read_parts(hf__draft *draft, const hf__part *parts, size_t count,
                            hf__fragment *whole, size_t *bad, hf_error *err)
{
    *whole = hf__draft_nothing(draft);
    for (size_t i = 0; i < count; i++) {
        hf__fragment fragment = {0};
        hf_status status = read_part(draft, &parts[i], &fragment, err);
        *bad = i;
        if (status != HF_OK)
            return status;
        *whole = hf__draft_then(draft, *whole, fragment);
    }
    return HF_OK;
}

static hf_status build(hf__language *language, const hf__part *parts, size_t count, size_t *bad,
                       hf_error *err)
{
    hf__draft draft = {0};
    hf__fragment whole = {0};
    hf_status status = read_parts(&draft, parts, count, &whole, bad, err);

    if (status == HF_OK) {
        status = hf__draft_finish(&draft, whole, &language->automaton);
        if (status == HF_OK)
            status = hf__dfa_build(&language->automaton, &language->dfa);
        if (status == HF_QUOTA)
            status = hf__fail(err, HF_QUOTA, "the pattern has more than %d states", HF__STATES_MAX);
        else if (status != HF_OK)
            status = hf__no_memory(err);
    }
    hf__draft_free(&draft);
    return status;
}

hf_status hf__language_build(const hf__part *parts, size_t count, hf__language **language,
                             size_t *bad, hf_error *err)
{
    *bad = 0;
    *language = calloc(1, sizeof **language);
    if (*language == NULL)
        return hf__no_memory(err);
    hf_status status = build(*language, parts, count, bad, err);
    if (status != HF_OK) {
        hf__language_free(*language);
        *language = NULL;
    }
    return status;
}

void hf__language_free(hf__language *language)
{
    if (language == NULL)
        return;
    hf__automaton_free(&language->automaton);
    hf__dfa_free(language->dfa);
    free(language);
}

hf_status hf__language_has(const hf__language *language, const char *text, size_t size, bool *has,
                           hf_error *err)
{
    if (language->dfa != NULL) {
        *has = hf__dfa_has(language->dfa, text, size);
        return HF_OK;
    }
    hf_status status = hf__automaton_run(&language->automaton, text, size, has);
    if (status == HF_QUOTA) {
        status =
            hf__fail(err, HF_QUOTA, "matching a label of %zu bytes takes too many steps", size);
        hf__hint(err, "make the expressions of the pattern simpler: fewer optional repetitions");
    } else if (status != HF_OK) {
        status = hf__no_memory(err);
    }
    return status;
}

#include "programs/registry/lint/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const confidence_names[] = {
    [HF__LOW] = "low",
    [HF__MEDIUM] = "medium",
    [HF__HIGH] = "high",
};

static bool is_wanted(hf__check *check, hf__lint_rule rule, unsigned line, int confidence)
{
    if (check->options->off[rule] ||
        (confidence != HF__CERTAIN && confidence < (int)check->options->least))
        return false;
    if (!hf__ignores_cover(check->ignores, rule, line))
        return true;
    check->totals->ignored++;
    return false;
}

void hf__check_report(hf__check *check, hf__lint_rule rule, size_t at, int confidence,
                      const char *remedy, const char *format, ...)
{
    unsigned line = hf__unit_line(check->unit, at);
    char message[512];
    va_list values;

    if (!is_wanted(check, rule, line, confidence))
        return;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);

    hf__finding *finding =
        hf__findings_add(check->findings, &hf__lint_rules[rule], check->unit->path, line,
                         hf__unit_column(check->unit, at), remedy, "%s", message);
    if (finding != NULL && confidence != HF__CERTAIN)
        finding->confidence = confidence_names[confidence];
}

/* The name as it is written, without quotes, schema and the parenthesis. */
const char *hf__show_call(const hf__check *check, const hf__use *use, char out[HF__CALL_SHOWN])
{
    const char *text = check->unit->text + use->at;
    size_t size = use->args - use->at;
    char name[64];
    char key[96];

    while (size > 0 && strchr("( \t\r\n\"\\',:", text[size - 1]) != NULL)
        size--;
    for (size_t i = size; i-- > 0;) {
        if (strchr(".\"': \n", text[i]) != NULL) {
            text += i + 1;
            size -= i + 1;
            break;
        }
    }
    hf__show(name, sizeof name, text, size);
    if (use->unlocks_all)
        snprintf(out, HF__CALL_SHOWN, "%s()", name);
    else if (hf__lock_key_show(&use->key, key, sizeof key) != NULL)
        snprintf(out, HF__CALL_SHOWN, "%s(%s%s%s)", name, use->key.uses_hashtext ? "hashtext(" : "",
                 key, use->key.uses_hashtext ? ")" : "");
    else
        snprintf(out, HF__CALL_SHOWN, "%s(…)", name);
    return out;
}

/* --- the comments themselves ------------------------------------------------------------------------ */

static bool is_on(const hf__check *check, hf__lint_rule rule)
{
    return !check->options->off[rule] &&
           (check->options->registry != NULL || !hf__lint_rule_needs_registry(rule));
}

void hf__check_ignores(hf__check *check)
{
    const hf__ignores *ignores = check->ignores;
    char shown[64];

    for (size_t i = 0; i < ignores->without_reason_count; i++)
        hf__check_report(check, HF__IGNORE_WITHOUT_REASON, ignores->without_reason[i], HF__CERTAIN,
                         "write why behind the rule: holdfast-ignore: RULE reason",
                         "the ignore comment gives no reason");
    for (size_t i = 0; i < ignores->count; i++) {
        const hf__ignored_rule *item = &ignores->items[i];
        if (item->rule == HF__LINT_RULES)
            hf__check_report(
                check, HF__UNKNOWN_RULE, item->at, HF__CERTAIN,
                "holdfast registry lint --list-rules shows the rules", "there is no rule '%s'",
                hf__show(shown, sizeof shown, check->unit->text + item->at, item->size));
        else if (!item->used && is_on(check, item->rule) && item->rule != HF__UNUSED_IGNORE)
            hf__check_report(check, HF__UNUSED_IGNORE, item->at, HF__CERTAIN,
                             "remove the rule from the comment, or the comment",
                             "nothing here breaks the rule %s that the comment asks to ignore",
                             hf__lint_rules[item->rule].id);
    }
}

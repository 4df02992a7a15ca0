#include "programs/ingest/keep.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "cli/report.h"

hf_status read_keep(const char *text, hf__keep *keep, hf_error *err)
{
    static const char suffix[] = "-ledgers";
    size_t size = strlen(text), tail = sizeof suffix - 1;
    char digits[24] = "", shown[SHOWN_MAX];
    hf_status status = HF_INVALID;

    *keep = (hf__keep){0};
    if (size > tail && strcmp(text + size - tail, suffix) == 0 && size - tail < sizeof digits) {
        memcpy(digits, text, size - tail);
        status = hf__parse_int64(digits, "--keep", 1, HF__LEDGER_MAX, &keep->ledgers, NULL);
    } else if (hf__parse_duration(text, &keep->age_ms, NULL) == HF_OK && keep->age_ms > 0) {
        status = HF_OK;
    }
    if (status == HF_OK)
        return HF_OK;
    status = hf__fail(err, HF_INVALID, "--keep cannot be '%s'", show_argument(shown, text));
    hf__hint(err, "give an age such as 30d, or a number such as 1000-ledgers");
    return status;
}

/* A statement that takes long: is it still running there, and how is it ended? */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "programs/append/http.h"
#include "programs/append/quote.h"

enum {
    LOOK_EVERY_MS = 1000,
    ANSWER_MS = 10000,
    SILENT_MS = 60000, /* a server that answers nothing for so long is gone */
};

static void write_look(hf__buf *sql, const hf__watch *watch)
{
    hf__buf_puts(sql, watch->is_kill ? "KILL QUERY WHERE query_id = "
                                     : "SELECT count() FROM system.processes WHERE query_id = ");
    hf__quote_text(sql, watch->query_id);
    if (watch->is_kill)
        hf__buf_puts(sql, " ASYNC");
}

static hf_status ask(hf__http *http, hf__watch *watch, hf_error *err)
{
    hf__call *side = &http->side;
    const hf__statement look = {.what = "look after the statement"};

    watch->is_kill = watch->kill_wanted && !watch->kill_sent;
    watch->kill_sent = watch->kill_sent || watch->is_kill;
    hf__buf_clear(&side->body);
    write_look(&side->body, watch);
    watch->answer_by = hf__deadline(ANSWER_MS);
    if (side->body.broken ||
        curl_easy_setopt(side->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)side->body.length) !=
            CURLE_OK ||
        curl_easy_setopt(side->easy, CURLOPT_POSTFIELDS, side->body.data) != CURLE_OK)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    return hf__call_begin(http, side, &look, "&default_format=TabSeparated", err);
}

/* A refusal is an answer too: the server lives, it only does not tell. */
static void take_answer(hf__http *http, hf__watch *watch)
{
    const hf__call *side = &http->side;
    bool answered = side->code == CURLE_OK;
    bool told = answered && side->response == 200 && side->exception_code == 0 &&
                side->answer.length > 0 && strspn(side->answer.data, "0123456789") > 0;

    hf__call_end(http, &http->side);
    watch->answer_by = 0;
    watch->next_ms = hf__now_ms() + LOOK_EVERY_MS;
    if (answered)
        watch->silent_since = 0;
    else if (watch->silent_since == 0)
        watch->silent_since = hf__now_ms();
    if (watch->is_kill || !told)
        return;
    if (strtol(side->answer.data, NULL, 10) > 0) {
        watch->was_seen = true;
        watch->missed = 0;
    } else {
        watch->missed++;
    }
}

hf_status hf__watch_tick(hf__http *http, hf__watch *watch, hf_error *err)
{
    int64_t now = hf__now_ms();

    if (watch->query_id == NULL)
        return HF_OK;
    if (watch->next_ms == 0)
        watch->next_ms = now + LOOK_EVERY_MS;
    if (watch->answer_by != 0 && !http->side.is_running) {
        take_answer(http, watch);
    } else if (watch->answer_by != 0 && now >= watch->answer_by) {
        http->side.code = CURLE_OPERATION_TIMEDOUT;
        take_answer(http, watch);
    }
    if (watch->silent_since != 0 && now - watch->silent_since > SILENT_MS) {
        http->base.fault.was_sent = true;
        return hf__fail(err, HF_UNREACHABLE, "%s: it has not answered anything for %d s",
                        http->base.name, SILENT_MS / 1000);
    }
    bool is_due = now >= watch->next_ms || (watch->kill_wanted && !watch->kill_sent);
    return watch->answer_by == 0 && is_due ? ask(http, watch, err) : HF_OK;
}

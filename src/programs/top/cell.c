#include "programs/top/cell.h"

#include <inttypes.h>
#include <time.h>

void hf__put_age(hf__buf *out, int64_t ms, bool bound)
{
    int64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60;

    if (ms < 0)
        return;
    if (bound)
        hf__buf_puts(out, "≤");
    if (ms < 1000)
        hf__buf_printf(out, "%" PRId64 "ms", ms);
    else if (seconds < 60)
        hf__buf_printf(out, "%" PRId64 "s", seconds);
    else if (minutes < 60)
        hf__buf_printf(out, "%" PRId64 "m %02" PRId64 "s", minutes, seconds % 60);
    else if (hours < 24)
        hf__buf_printf(out, "%" PRId64 "h %02" PRId64 "m", hours, minutes % 60);
    else
        hf__buf_printf(out, "%" PRId64 "d %" PRId64 "h", hours / 24, hours % 24);
}

void hf__cell_key(hf__buf *out, int64_t key, hf_space space)
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    if (space == HF_PAIR)
        hf__buf_printf(out, "(%" PRId32 ", %" PRId32 ")", (int32_t)classid, (int32_t)objid);
    else
        hf__buf_printf(out, "%" PRId64, key);
}

void hf__put_moment(hf__buf *out, int64_t at_ms, int64_t now_ms)
{
    time_t at = (time_t)(at_ms / 1000), now = (time_t)(now_ms / 1000);
    struct tm then, today;
    char text[32];

    if (at_ms == 0 || localtime_r(&at, &then) == NULL || localtime_r(&now, &today) == NULL)
        return;
    bool same_day = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
    if (strftime(text, sizeof text, same_day ? "%H:%M:%S" : "%m-%d %H:%M", &then) > 0)
        hf__buf_puts(out, text);
}

void hf__put_who(hf__buf *out, const char *application, const char *host, int pid)
{
    hf__buf_puts(out, application[0] != '\0' ? application : "somebody");
    if (host[0] != '\0')
        hf__buf_printf(out, " on %s", host);
    if (pid > 0)
        hf__buf_printf(out, ", pid %d", pid);
}

void hf__put_party(hf__buf *out, const hf__snapshot *snapshot, const hf__seen_party *party)
{
    hf__put_who(out, party->application, party->host, party->pid);
    if (!snapshot->local)
        hf__buf_printf(out, ", backend %d", party->id);
    else if (party->pid == 0)
        hf__buf_printf(out, ", pid %d", party->id);
}

void hf__put_title(hf__buf *out, const hf__seen_lock *lock)
{
    if (lock->label[0] != '\0')
        hf__buf_puts(out, lock->label);
    else
        hf__cell_key(out, lock->key, lock->space);
    if (lock->label[0] == '\0' && lock->known_as[0] != '\0')
        hf__buf_printf(out, " (%s?)", lock->known_as);
}

const char *hf__mode_word(hf_mode mode)
{
    return mode == HF_SHARED ? "shared" : "exclusive";
}

const hf__seen_lock *hf__find_lock(const hf__snapshot *snapshot, int64_t key, hf_space space)
{
    for (size_t i = 0; i < snapshot->lock_count; i++)
        if (snapshot->locks[i].key == key && snapshot->locks[i].space == space)
            return &snapshot->locks[i];
    return NULL;
}

const hf__seen_party *hf__find_party(const hf__snapshot *snapshot, int id)
{
    for (size_t i = 0; i < snapshot->party_count; i++)
        if (snapshot->parties[i].id == id)
            return &snapshot->parties[i];
    return NULL;
}

/* ---- coverage of a network ---- */

/* The range from the first to the last ledger that is there or wanted. */
static bool extent(const hf__seen_network *network, hf_range *whole)
{
    bool found = false;
    const hf_range *lists[] = {network->coverage, network->gaps};
    const size_t counts[] = {network->coverage_count, network->gap_count};

    for (size_t i = 0; i < 2; i++) {
        if (counts[i] == 0)
            continue;
        hf_range ends = {.from = lists[i][0].from, .to = lists[i][counts[i] - 1].to};
        if (!found || ends.from < whole->from)
            whole->from = ends.from;
        if (!found || ends.to > whole->to)
            whole->to = ends.to;
        found = true;
    }
    return found;
}

static size_t cell_of(const hf_range *whole, int64_t ledger, size_t cells)
{
    double length = (double)whole->to - (double)whole->from + 1;
    double at = ((double)ledger - (double)whole->from) / length * (double)cells;

    return at < (double)(cells - 1) ? (size_t)at : cells - 1;
}

/* The ranges are in ascending order: each cell has to look only at the next one. */
void hf__put_coverage(hf__buf *out, const hf__seen_network *network, size_t cells)
{
    hf_range whole = {0};
    size_t gap = 0;

    if (cells == 0 || !extent(network, &whole))
        return;
    for (size_t cell = 0; cell < cells; cell++) {
        while (gap < network->gap_count && cell_of(&whole, network->gaps[gap].to, cells) < cell)
            gap++;
        bool is_gap =
            gap < network->gap_count && cell_of(&whole, network->gaps[gap].from, cells) <= cell;
        hf__buf_puts(out, is_gap ? "░" : "█");
    }
}

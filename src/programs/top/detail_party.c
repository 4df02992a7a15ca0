#include <inttypes.h>

#include "programs/top/cell.h"
#include "programs/top/coverage.h"
#include "programs/top/detail.h"
#include "programs/top/list.h"

/* ---- a session or process ---------------------------------------------------------------------------- */

static void put_locks_of(const hf__top *top, hf__frame *frame, size_t party, bool waiting)
{
    const hf__snapshot *seen = top->snapshot;
    hf__buf age = {0}, text = {0};

    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        for (size_t j = lock->first; j < lock->first + lock->count; j++) {
            const hf_lock_view *view = seen->views[j];
            if (seen->view_party[j] != party || view->waiting != waiting)
                continue;
            hf__buf_clear(&age);
            hf__put_age(&age, view->age_ms, view->age_is_bound);
            hf__put_title(&text, lock);
            if (lock->waiters > 0 && !waiting)
                hf__buf_printf(&text, ", %zu waiting for it", lock->waiters);
            bool known = !age.broken && age.length > 0;
            hf__detail_made(frame, known ? age.data : "?", &text);
        }
    }
    hf__buf_free(&age);
    hf__buf_free(&text);
}

static void put_others(const hf__top *top, hf__frame *frame, size_t party, bool waiters)
{
    const hf__snapshot *seen = top->snapshot;
    hf__buf text = {0};

    for (size_t i = 0; i < seen->edge_count; i++) {
        const hf__seen_edge *edge = &seen->edges[i];
        if ((waiters ? edge->holder : edge->waiter) != party)
            continue;
        size_t other = waiters ? edge->waiter : edge->holder;
        hf__put_party(&text, seen, &seen->parties[other]);
        hf__buf_puts(&text, ", for ");
        hf__put_title(&text, &seen->locks[edge->lock]);
        hf__detail_made(frame, waiters ? "waits" : "blocks it", &text);
    }
    hf__buf_free(&text);
}

static void put_party(const hf__top *top, hf__frame *frame, const hf__seen_party *party)
{
    hf__buf text = {0};

    hf__put_party(&text, top->snapshot, party);
    hf__detail_made(frame, "who", &text);
    if (party->in_cycle)
        hf__detail_field(frame, "state", HF__INK_PROBLEM,
                         "deadlock: in the end it waits for itself");
    else if (party->root)
        hf__detail_field(frame, "state", HF__INK_WARNING,
                         "keeps others waiting and waits for nobody");
    if (party->kept > 0)
        hf__buf_printf(&text, "%zu, over others too", party->kept);
    hf__detail_made(frame, "behind it", &text);
    hf__detail_field(frame, "query", HF__INK_PLAIN, party->query);
    hf__buf_free(&text);
}

void hf__detail_party(const hf__top *top, hf__frame *frame)
{
    const hf__snapshot *seen = top->snapshot;
    const hf__seen_party *party = hf__find_party(seen, (int)top->detail.a);

    hf__detail_heading(frame, seen->local ? "Process" : "Session");
    if (party == NULL) {
        hf__detail_field(frame, "now", HF__INK_GOOD, "it neither holds nor waits any more");
        return;
    }
    size_t index = (size_t)(party - seen->parties);
    put_party(top, frame, party);
    if (party->waits_for != SIZE_MAX) {
        hf__detail_heading(frame, "Waits for");
        put_locks_of(top, frame, index, true);
        put_others(top, frame, index, false);
    }
    hf__detail_heading(frame, "Holds");
    put_locks_of(top, frame, index, false);
    if (party->blocking > 0) {
        hf__detail_heading(frame, "Keeps waiting");
        put_others(top, frame, index, true);
    }
}

/* ---- a network ---------------------------------------------------------------------------------------- */

static void put_number(hf__frame *frame, const char *name, hf__maybe number)
{
    hf__buf text = {0};

    if (number.known)
        hf__buf_printf(&text, "%" PRId64, number.value);
    hf__detail_made(frame, name, &text);
    hf__buf_free(&text);
}

static void put_lag(hf__frame *frame, const hf__seen_network *network)
{
    hf__buf text = {0};

    if (network->lag.known && network->lag.value < 0)
        hf__buf_printf(&text, "none: %" PRId64 " ahead of what the source said last",
                       -network->lag.value);
    else if (network->lag.known)
        hf__buf_printf(&text, "%" PRId64 " ledgers", network->lag.value);
    hf__detail_made(frame, "lag", &text);
    hf__buf_free(&text);
}

static void put_bar(hf__frame *frame, const hf__seen_network *network)
{
    size_t cells = frame->width < 120 ? frame->width - (frame->width > 20 ? 18 : 0) : 100;
    hf__buf text = {0};

    hf__put_coverage(&text, network, cells);
    if (!text.broken)
        hf__detail_field(frame, "coverage", HF__INK_GOOD, text.data);
    hf__buf_free(&text);
}

static void put_gaps(hf__frame *frame, const hf__seen_network *network)
{
    hf__buf text = {0};

    if (network->gap_count == 0)
        return;
    hf__detail_heading(frame, "Gaps");
    for (size_t i = 0; i < network->gap_count; i++) {
        const hf_range *gap = &network->gaps[i];
        hf__buf_printf(&text, "%" PRId64 " to %" PRId64 ", %" PRId64 " ledgers", gap->from, gap->to,
                       gap->to - gap->from + 1);
        hf__detail_made(frame, "missing", &text);
    }
    hf__buf_free(&text);
}

static void put_network(const hf__top *top, hf__frame *frame, const hf__seen_network *network)
{
    const hf__network_status *status = &network->status;
    hf__buf text = {0};

    hf__detail_field(frame, "network", HF__INK_BOLD, network->name);
    hf__detail_field(frame, "ingester",
                     network->ingester[0] != '\0' ? HF__INK_PLAIN : HF__INK_WARNING,
                     network->ingester[0] != '\0' ? network->ingester : "none runs");
    put_number(frame, "latest", status->latest);
    if (status->closed_at[0] != '\0') {
        hf__buf_printf(&text, "%s, ", status->closed_at);
        hf__put_age(&text, status->age_ms, false);
        hf__buf_puts(&text, " ago");
    }
    hf__detail_made(frame, "closed", &text);
    put_lag(frame, network);
    if (network->rate >= 0)
        hf__buf_printf(&text, "%.1f ledgers a second", network->rate);
    hf__detail_made(frame, "rate", &text);
    put_number(frame, "oldest", status->oldest);
    put_number(frame, "wanted from", status->wanted_from);
    put_number(frame, "kept from", status->floor);
    if (status->has_coverage)
        hf__buf_printf(&text, "%" PRId64 " ledgers in %zu ranges", status->covered, status->ranges);
    hf__detail_made(frame, "covered", &text);
    put_bar(frame, network);
    put_number(frame, "quarantined", status->quarantined);
    if (status->last_success_ms.known)
        hf__put_moment(&text, status->last_success_ms.value, top->snapshot->taken_ms);
    hf__detail_made(frame, "last commit", &text);
    if (status->disagrees)
        hf__detail_field(frame, "problem", HF__INK_PROBLEM,
                         "the cursor of the latest ledger claims what is not covered");
    hf__buf_free(&text);
    put_gaps(frame, network);
}

void hf__detail_network(const hf__top *top, hf__frame *frame)
{
    hf__detail_heading(frame, "Network");
    for (size_t i = 0; i < top->snapshot->network_count; i++) {
        hf__row_id id = hf__list_ingest.id(top, i);
        if (hf__same_row(&id, &top->detail)) {
            put_network(top, frame, &top->snapshot->networks[i]);
            return;
        }
    }
    hf__detail_field(frame, "now", HF__INK_DIM, "it is not in the store any more");
}

/* /api/v1/stores: which stores are served, and how each stands. */
#include "programs/serve/api.h"

static const hf__shape store_shape[] = {
    HF__SHAPE_OR_NULL("name", "string", "as the command line or the file has it"),
    HF__SHAPE("path", "string",
              "before the addresses of this store; empty where it is the only one"),
    HF__SHAPE("state", "string", "up, or down: the last refresh failed, or goes on for too long"),
    HF__SHAPE("kind", "string", "postgresql or local"),
    HF__SHAPE_OR_NULL("store", "string", "without a password; null: it was never opened"),
    HF__SHAPE_OR_NULL("problem", "string", "why the last refresh failed: the rest is old then"),
    HF__SHAPE_OR_NULL("problem_since", "string", "when that began"),
    HF__SHAPE_OR_NULL("taken_at", "string", "of the rest; null: nothing was ever read"),
    HF__SHAPE_OR_NULL("held", "integer", "locks"),
    HF__SHAPE_OR_NULL("waiting", "integer", "who wait"),
    HF__SHAPE_OR_NULL("longest_wait_ms", "integer", "of them; null: nobody waits"),
    HF__SHAPE_OR_NULL("losses_24h", "integer", "locks that were lost; null: not known"),
    HF__SHAPE_OR_NULL("gaps", "integer", "of its networks; null: not known of all"),
    HF__SHAPE("problems", "integer", "sentences on the page that are problems"),
    HF__SHAPE("warnings", "integer", "likewise warnings"),
    {0},
};

const hf__shape hf__stores_shape[] = {
    {"data", "array", "the stores, in the order in which they were given", false, "object",
     store_shape},
    {0},
};

static int64_t count_urgent(const hf__snapshot *seen, hf__urgency urgency)
{
    int64_t count = 0;

    for (size_t i = 0; i < seen->attention_count; i++)
        count += seen->attention[i].urgency == urgency;
    return count;
}

static void put_store(hf__json *json, const hf__exchange *exchange, const hf__served *served,
                      const hf__snapshot *seen)
{
    bool is_read = seen->taken_ms != 0, is_up = hf__is_up(exchange, served);
    const hf__server *server = exchange->server;

    hf__json_begin_object(json, NULL);
    hf__json_put_text(json, "name", served->name);
    hf__json_put_string(json, "path", server->store_count > 1 ? served->base : server->base);
    hf__json_put_string(json, "state", is_up ? "up" : "down");
    hf__json_put_string(json, "kind", seen->local ? "local" : "postgresql");
    hf__json_put_text(json, "store", seen->store);
    hf__json_put_text(json, "problem",
                      is_up || seen->problem[0] != '\0' ? seen->problem
                                                        : "a refresh goes on for too long");
    hf__put_when(json, "problem_since", seen->problem[0] != '\0' ? seen->problem_since_ms : 0);
    hf__put_when(json, "taken_at", seen->taken_ms);
    hf__put_maybe(json, "held", (hf__maybe){is_read, (int64_t)seen->held});
    hf__put_maybe(json, "waiting", (hf__maybe){is_read, (int64_t)seen->waiting});
    hf__put_maybe(json, "longest_wait_ms", (hf__maybe){seen->waiting > 0, seen->longest_wait_ms});
    hf__put_maybe(json, "losses_24h",
                  (hf__maybe){is_read && !seen->losses_unknown, (int64_t)seen->losses_24h});
    hf__put_maybe(json, "gaps", (hf__maybe){is_read && !seen->gaps_unknown, (int64_t)seen->gaps});
    hf__json_put_integer(json, "problems", count_urgent(seen, HF__URGENCY_PROBLEM));
    hf__json_put_integer(json, "warnings", count_urgent(seen, HF__URGENCY_WARNING));
    hf__json_end_object(json);
}

int hf__api_stores(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                   hf__problem *problem)
{
    hf__json json = {0};
    size_t count;
    const hf__served *served = hf__exchange_stores(exchange, &count);
    hf__snapshot *const *snapshots = hf__edition_snapshots(exchange->edition, &count);

    (void)snapshot;
    (void)problem;
    hf__json_begin_object(&json, NULL);
    hf__json_begin_array(&json, "data");
    for (size_t i = 0; i < count; i++)
        put_store(&json, exchange, &served[i], snapshots[i]);
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    *out = json.text;
    return 200;
}

#include "programs/top/cell.h"
#include "programs/top/list.h"

enum {
    INDENT_MOST = 12, /* levels; deeper ones show a number */
    LONG_WAIT_MS = 60000,
};

static const hf__tree_node *node_at(const hf__top *top, size_t row)
{
    return &top->tree.nodes[row];
}

static const hf__seen_party *party_at(const hf__top *top, size_t row)
{
    return &top->snapshot->parties[node_at(top, row)->party];
}

/* ---- the tree ---- */

static void put_levels(const hf__tree *tree, size_t node, hf__buf *out)
{
    size_t path[INDENT_MOST];
    size_t depth = 0;

    for (size_t at = tree->nodes[node].parent; at != SIZE_MAX && tree->nodes[at].depth > 0;
         at = tree->nodes[at].parent)
        path[depth++] = at;
    while (depth > 0)
        hf__buf_puts(out, tree->nodes[path[--depth]].is_last ? "   " : "│  ");
}

static void put_branch(const hf__tree *tree, size_t node, hf__buf *out)
{
    const hf__tree_node *at = &tree->nodes[node];

    if (at->depth == 0)
        return;
    if (at->depth <= INDENT_MOST)
        put_levels(tree, node, out);
    else
        hf__buf_printf(out, "… %zu deep ", at->depth);
    hf__buf_puts(out, at->is_last ? "└─ " : "├─ ");
}

static hf__ink ink_of(const hf__top *top, size_t row)
{
    const hf__tree_node *node = node_at(top, row);

    return node->in_cycle ? HF__INK_PROBLEM : node->depth == 0 ? HF__INK_BOLD : HF__INK_PLAIN;
}

static hf__value who(const hf__top *top, size_t row)
{
    return (hf__value){.text = party_at(top, row)->application, .ink = ink_of(top, row)};
}

static void show_who(const hf__top *top, size_t row, hf__buf *out)
{
    const hf__seen_party *party = party_at(top, row);
    const hf__tree_node *node = node_at(top, row);
    int pid = party->pid != 0 ? party->pid : party->id;

    put_branch(&top->tree, row, out);
    if (node->in_cycle)
        hf__buf_puts(out, "↻ ");
    hf__buf_printf(out, "%s (%d)", party->application[0] != '\0' ? party->application : "somebody",
                   pid);
    if (node->closes)
        hf__buf_puts(out, " closes the deadlock");
    else if (node->again)
        hf__buf_puts(out, " as above");
}

/* The lock that the party waits for; for a root, the lock that its first waiter wants. */
static const hf__seen_lock *lock_of(const hf__top *top, size_t row)
{
    const hf__snapshot *seen = top->snapshot;
    const hf__tree_node *node = node_at(top, row);
    size_t waits_for = party_at(top, row)->waits_for;

    if (node->edge != SIZE_MAX)
        return &seen->locks[seen->edges[node->edge].lock];
    if (waits_for != SIZE_MAX)
        return &seen->locks[waits_for];
    if (node->size > 1)
        return &seen->locks[seen->edges[node_at(top, row + 1)->edge].lock];
    return NULL;
}

static hf__value lock(const hf__top *top, size_t row)
{
    const hf__seen_lock *found = lock_of(top, row);

    return (hf__value){.text = found != NULL ? found->label : "", .ink = HF__INK_PLAIN};
}

static void show_lock(const hf__top *top, size_t row, hf__buf *out)
{
    const hf__seen_lock *found = lock_of(top, row);

    if (found == NULL)
        return;
    hf__buf_puts(out, node_at(top, row)->wait == SIZE_MAX ? "holds " : "waits for ");
    hf__put_title(out, found);
}

static void copy_lock(const hf__top *top, size_t row, hf__buf *out)
{
    const hf__seen_lock *found = lock_of(top, row);

    if (found != NULL)
        hf__put_title(out, found);
}

static hf__value since(const hf__top *top, size_t row)
{
    const hf__tree_node *node = node_at(top, row);
    const hf__seen_lock *found = lock_of(top, row);

    if (node->wait == SIZE_MAX)
        return (hf__value){.number = found != NULL ? found->held_ms : -1,
                           .bound = found != NULL && found->held_is_bound,
                           .ink = HF__INK_DIM};
    const hf_lock_view *view = top->snapshot->views[node->wait];
    return (hf__value){.number = view->age_ms,
                       .bound = view->age_is_bound,
                       .ink = view->age_ms >= LONG_WAIT_MS ? HF__INK_PROBLEM : HF__INK_WARNING};
}

/* How many a root keeps waiting; for others, how many are below them in the tree. */
static hf__value keeps(const hf__top *top, size_t row)
{
    const hf__seen_party *party = party_at(top, row);
    size_t number = party->kept > 0 ? party->kept : node_at(top, row)->size - 1;

    return (hf__value){.number = (int64_t)number,
                       .urgent = party->in_cycle,
                       .ink = number > 0 ? HF__INK_WARNING : HF__INK_DIM};
}

static hf__value host(const hf__top *top, size_t row)
{
    return (hf__value){.text = party_at(top, row)->host, .ink = HF__INK_DIM};
}

static hf__value backend(const hf__top *top, size_t row)
{
    return (hf__value){.number = party_at(top, row)->id, .ink = HF__INK_DIM};
}

static const hf__list_column columns[] = {
    {.title = "WHO", .word = "who", .least = 18, .stretches = true, .value = who, .show = show_who},
    {.title = "LOCK",
     .word = "lock",
     .least = 16,
     .stretches = true,
     .is_label = true,
     .rank = 1,
     .value = lock,
     .show = show_lock},
    {.title = "SINCE",
     .word = "since",
     .kind = HF__AGE,
     .least = 8,
     .rank = 3,
     .descending = true,
     .value = since},
    {.title = "KEEPS",
     .word = "keeps",
     .kind = HF__COUNT,
     .least = 7,
     .rank = 2,
     .descending = true,
     .value = keeps},
    {.title = "HOST", .word = "host", .least = 8, .rank = 5, .value = host},
    {.title = "SESSION",
     .word = "session",
     .kind = HF__COUNT,
     .least = 9,
     .rank = 4,
     .value = backend},
    {0},
};

static size_t count(const hf__top *top)
{
    return top->tree.count;
}

static size_t figure(const hf__top *top)
{
    return top->snapshot->waiting;
}

static size_t span(const hf__top *top, size_t row)
{
    return node_at(top, row)->size;
}

static bool matches(const hf__top *top, size_t row, const char *needle)
{
    const hf__seen_party *party = party_at(top, row);
    const hf__seen_lock *found = lock_of(top, row);
    hf__buf text = {0};

    if (found != NULL)
        hf__put_title(&text, found);
    bool is = hf__has(party->application, needle) || hf__has(party->host, needle) ||
              hf__has(text.data, needle) || (found != NULL && hf__has(found->name, needle));
    hf__buf_free(&text);
    return is;
}

static hf__row_id id(const hf__top *top, size_t row)
{
    const hf__tree_node *node = node_at(top, row);
    size_t parent = node->parent != SIZE_MAX ? top->tree.nodes[node->parent].party : SIZE_MAX;

    return (hf__row_id){.a = party_at(top, row)->id,
                        .b = parent != SIZE_MAX ? top->snapshot->parties[parent].id : -1,
                        .c = node->edge != SIZE_MAX ? lock_of(top, row)->key : 0};
}

const hf__list hf__list_waits = {
    .word = "waits",
    .title = "Waits",
    .columns = columns,
    .sort = 3,
    .empty = "Nobody waits.",
    .count = count,
    .figure = figure,
    .span = span,
    .matches = matches,
    .id = id,
    .copy = copy_lock,
};

#include "top_support.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "unit.h"

#include "programs/top/list.h"

struct scene *stage;
hf__top screen;

static void *room_for(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    assert_non_null(memory);
    return memory;
}

struct scene *scene_new(size_t room)
{
    struct scene *made = room_for(1, sizeof *made);
    hf__snapshot *seen = &made->seen;

    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    made->room = room;
    made->views = room_for(room, sizeof *made->views);
    seen->views = room_for(room, sizeof(hf_lock_view *));
    seen->view_party = room_for(room, sizeof(size_t));
    seen->locks = room_for(room, sizeof *seen->locks);
    seen->parties = room_for(room, sizeof *seen->parties);
    seen->edges = room_for(room * 4, sizeof *seen->edges);
    seen->events = room_for(room, sizeof *seen->events);
    seen->networks = room_for(room, sizeof *seen->networks);
    seen->number = 1;
    seen->taken_ms = 1700000000000;
    seen->store = "postgresql://app@db1:5432/prod";
    seen->has_records = true;
    seen->problem = "";
    seen->registry = (const hf_registry *)made; /* there is one, and nobody looks into it */
    return made;
}

void scene_free(struct scene *scene)
{
    free(scene->views);
    free((void *)scene->seen.views);
    free(scene->seen.view_party);
    free(scene->seen.locks);
    free(scene->seen.parties);
    free(scene->seen.edges);
    free(scene->seen.events);
    free(scene->seen.networks);
    free(scene);
}

void add_lock(struct scene *scene, const char *label, int64_t key)
{
    hf__snapshot *seen = &scene->seen;

    assert_true(seen->lock_count < scene->room);
    seen->locks[seen->lock_count++] = (hf__seen_lock){
        .key = key,
        .label = label,
        .name = "",
        .first = seen->view_count,
        .held_ms = -1,
        .longest_wait_ms = -1,
    };
}

size_t add_party(struct scene *scene, const char *application, const char *host, int id)
{
    hf__snapshot *seen = &scene->seen;

    assert_true(seen->party_count < scene->room);
    seen->parties[seen->party_count] = (hf__seen_party){
        .id = id,
        .application = application,
        .host = host,
        .pid = id + 1000,
        .waits_for = SIZE_MAX,
        .query = "",
    };
    return seen->party_count++;
}

static void add_view(struct scene *scene, size_t party, int64_t age_ms, bool waiting)
{
    hf__snapshot *seen = &scene->seen;
    hf__seen_lock *lock = &seen->locks[seen->lock_count - 1];
    hf_lock_view *view = &scene->views[seen->view_count];

    assert_true(seen->view_count < scene->room);
    *view = (hf_lock_view){
        .key = lock->key,
        .waiting = waiting,
        .ours = true,
        .label = lock->label,
        .application = seen->parties[party].application,
        .host = seen->parties[party].host,
        .pid = seen->parties[party].pid,
        .backend_pid = seen->parties[party].id,
        .age_ms = age_ms,
        .blocked_by = "",
        .name = "",
        .pattern = "",
    };
    seen->views[seen->view_count] = view;
    seen->view_party[seen->view_count++] = party;
    lock->count++;
}

void hold(struct scene *scene, size_t party, int64_t age_ms)
{
    hf__seen_lock *lock = &scene->seen.locks[scene->seen.lock_count - 1];

    add_view(scene, party, age_ms, false);
    lock->holders++;
    lock->held_ms = age_ms > lock->held_ms ? age_ms : lock->held_ms;
}

void await(struct scene *scene, size_t party, int64_t age_ms)
{
    hf__seen_lock *lock = &scene->seen.locks[scene->seen.lock_count - 1];

    add_view(scene, party, age_ms, true);
    lock->waiters++;
    lock->longest_wait_ms = age_ms > lock->longest_wait_ms ? age_ms : lock->longest_wait_ms;
    scene->seen.parties[party].waits_for = scene->seen.lock_count - 1;
}

void add_event(struct scene *scene, int64_t id, const char *event, const char *label, int64_t key)
{
    hf__snapshot *seen = &scene->seen;

    assert_true(seen->event_count < scene->room);
    seen->events[seen->event_count++] = (hf__seen_event){
        .id = id,
        .at_ms = seen->taken_ms - id * 1000,
        .event = event,
        .key = key,
        .label = label,
        .name = "",
        .wait_ms = -1,
        .hold_ms = -1,
        .application = "nightly",
        .host = "db1",
        .detail = "",
    };
}

hf__seen_network *add_network(struct scene *scene, const char *name)
{
    hf__seen_network *network = &scene->seen.networks[scene->seen.network_count++];

    *network = (hf__seen_network){.name = name, .rate = -1, .ingester = ""};
    return network;
}

/* ---- the graph --------------------------------------------------------------------------------------- */

static void draw_edges(hf__snapshot *seen)
{
    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        for (size_t w = lock->first; w < lock->first + lock->count; w++)
            for (size_t h = lock->first; h < lock->first + lock->count; h++) {
                if (!seen->views[w]->waiting || seen->views[h]->waiting)
                    continue;
                size_t waiter = seen->view_party[w], holder = seen->view_party[h];
                seen->edges[seen->edge_count++] = (hf__seen_edge){waiter, holder, i};
                seen->parties[waiter].blockers++;
                seen->parties[holder].blocking++;
            }
    }
}

/* Everybody who waits for the party in the end, itself included if it does; by flooding. */
static size_t behind(const hf__snapshot *seen, size_t party, bool *self)
{
    bool *reached = room_for(seen->party_count, sizeof *reached);
    size_t count = 0;

    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < seen->edge_count; i++) {
            const hf__seen_edge *edge = &seen->edges[i];
            if ((edge->holder == party || reached[edge->holder]) && !reached[edge->waiter]) {
                reached[edge->waiter] = more = true;
                count++;
            }
        }
    }
    *self = reached[party];
    free(reached);
    return count;
}

void finish(struct scene *scene)
{
    hf__snapshot *seen = &scene->seen;

    draw_edges(seen);
    for (size_t i = 0; i < seen->party_count && seen->edge_count < 1000; i++) {
        hf__seen_party *party = &seen->parties[i];
        size_t count = behind(seen, i, &party->in_cycle);
        party->root = party->blocking > 0 && party->waits_for == SIZE_MAX;
        party->kept = party->root ? count : 0;
    }
    for (size_t i = 0; i < seen->lock_count; i++) {
        seen->held += seen->locks[i].holders > 0;
        seen->waiting += seen->locks[i].waiters;
        if (seen->locks[i].longest_wait_ms > seen->longest_wait_ms)
            seen->longest_wait_ms = seen->locks[i].longest_wait_ms;
    }
}

/* ---- what is seen -------------------------------------------------------------------------------------- */

void look_at(hf__top *top, const struct scene *scene)
{
    hf__top_init(top);
    top->now_ms = scene->seen.taken_ms;
    hf__top_see(top, &scene->seen);
}

int look_away(void **state)
{
    (void)state;
    hf__top_free(&screen);
    scene_free(stage);
    return 0;
}

/* Not as the frame counts them, but as the C library does. */
static size_t terminal_cells(const char *text)
{
    wchar_t wide[4096];
    size_t count = mbstowcs(wide, text, 4096);

    assert_true(count < 4096);
    int cells = wcswidth(wide, count);
    assert_true(cells >= 0);
    return (size_t)cells;
}

static char *text_of(hf__frame *frame)
{
    hf__buf text = {0};

    assert_false(frame->broken);
    for (size_t i = 0; i < frame->count; i++) {
        const hf__frame_line *line = &frame->lines[i];
        size_t length = line->text.length, spans = 0;
        for (size_t j = 0; j < line->span_count; j++)
            spans += line->spans[j].size;
        assert_int_equal(spans, line->text.length);
        if (line->text.length > 0)
            assert_int_equal(line->cells, terminal_cells(line->text.data));
        assert_true(line->cells <= frame->width);
        while (length > 0 && line->text.data[length - 1] == ' ')
            length--;
        hf__buf_add(&text, length > 0 ? line->text.data : "", length);
        hf__buf_puts(&text, "\n");
    }
    hf__frame_free(frame);
    assert_false(text.broken);
    return text.data != NULL ? text.data : strdup("");
}

char *drawn(hf__top *top, size_t width, size_t height)
{
    hf__frame frame = {0};

    hf__top_draw(top, width, height, &frame);
    assert_true(frame.count <= height);
    return text_of(&frame);
}

char *printed(hf__top *top, size_t width)
{
    hf__frame frame = {0};

    hf__top_print(top, width, &frame);
    return text_of(&frame);
}

char *rows_of(const hf__top *top)
{
    hf__buf text = {0}, row = {0};

    hf__buf_puts(&text, "");
    for (size_t i = 0; i < top->row_count; i++) {
        hf__list_show(top, &hf__list_of(top)->columns[0], top->rows[i], &row);
        hf__buf_printf(&text, "%s%s", i > 0 ? "|" : "", row.data);
    }
    hf__buf_free(&row);
    return text.data;
}

void expect_text(char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL)
        fail_msg("no '%s' in:\n%s", wanted, text);
    free(text);
}

void expect_no_text(char *text, const char *unwanted)
{
    if (strstr(text, unwanted) != NULL)
        fail_msg("'%s' in:\n%s", unwanted, text);
    free(text);
}

void press(hf__top *top, const char *keys)
{
    for (; *keys != '\0'; keys++)
        (void)hf__top_press(top, *keys);
}

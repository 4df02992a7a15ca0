/* Lists of locks as the store gives them, for the tests of src/view. */
#ifndef TESTS_VIEW_SUPPORT_H
#define TESTS_VIEW_SUPPORT_H

#include "programs/view/parts.h"
#include "unit.h"

hf_lock_list *empty_list(void);
/* One row; strings that are NULL become "". Ages make the order of waiters. */
void add_row(hf_lock_list **list, hf_lock_view view);
void add_holder(hf_lock_list **list, int64_t key, int session, hf_mode mode);
void add_waiter(hf_lock_list **list, int64_t key, int session, hf_mode mode,
                const char *blocked_by);

/* Takes the list over. */
hf__view_draft *draft_of(hf_lock_list *list, const hf_registry *registry);
void drop(hf__view_draft *draft);

/* The party with that id; fails the test when there is none. */
const hf__seen_party *party(const hf__view_draft *draft, int id);
bool has_edge(const hf__view_draft *draft, int waiter, int holder, int64_t key);

#endif

/* What the tests of the local transactions share: a store with two accounts, and its calls. */
#ifndef TESTS_LOCAL_TX_SUPPORT_H
#define TESTS_LOCAL_TX_SUPPORT_H

#include "local_store.h"

#include "lib/backend/attempt.h"

#define ACCOUNTS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

extern hf__backend *store;

extern const hf__attempt_plan writing;
extern const hf__attempt_plan reading;

int set_up(void **state);
int tear_down(void **state);

hf__attempt *begin(const hf__attempt_plan *plan);
void finish(hf__attempt *attempt);

hf_status query(hf__attempt *attempt, const hf__attempt_plan *plan, const char *sql, hf_error *err);
void must(hf__attempt *attempt, const char *sql);
void must_queue(hf__attempt *attempt, const char *sql, size_t count, const hf_value *values);
void must_commit(hf__attempt *attempt, const hf__attempt_plan *plan);
void run(const char *sql);

hf_rows *ask(hf__attempt *attempt, const hf__attempt_plan *plan, const char *sql, bool binary);
const char *value(const hf_rows *rows, size_t row, size_t column);

/* The only value of a SELECT, in a transaction of its own. */
int64_t number(const char *sql);

/* What the statement alone fails with. */
hf_status failure(const hf__attempt_plan *plan, const char *sql, size_t count,
                  const hf_value *values, hf__attempt_fault *fault, hf_error *err);

/* A process of its own that is killed when it says so, with whatever it has open. */
void kill_after(void (*act)(void));

#endif

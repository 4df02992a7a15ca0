/* What the tests of the local store share: its calls, processes to talk to. */
#ifndef TESTS_LOCAL_STORE_H
#define TESTS_LOCAL_STORE_H

#include "unit.h"

#include <sys/types.h>

#include "folder.h"
#include "lib/backend/backend.h"

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)

hf_status open_at(const char *path, hf_records records, hf__backend **store, hf_error *err);
hf__backend *open_store(void);
void close_store(hf__backend *store);

hf__claim claim_of(int64_t key, hf_mode mode);
hf__claim labelled(int64_t key, const char *label);

/* wait_ms 0: only tries. The session and the token are in *request. */
hf_status take(hf__backend *store, hf__request *request, const hf__claim *claims, size_t count,
               int64_t wait_ms, hf_error *err);
hf_status give_back(const hf__request *request, hf_error *err);
hf_status take_key(hf__backend *store, int64_t key, hf_mode mode, int64_t wait_ms);

/* Takes and gives back at once: is it free? */
bool is_free(int64_t key, hf_mode mode);

int64_t next_token(hf__backend *store);

void pause_ms(long ms);

/* A process that runs act with a store of its own; words go over pipes. */
typedef struct peer {
    pid_t pid;
    int hears; /* the parent's end */
    int says;
} peer;

typedef void act_fn(int hear, int say);

void write_word(int fd, int64_t word);
int64_t read_word(int fd);
peer spawn(act_fn *act);
int reap(peer child);
void kill_and_reap(peer child);

/* Holds key 7 from the first word it says until it hears one. */
void hold_seven(int hear, int say);

void wait_for_seven(int hear, int say);

#endif

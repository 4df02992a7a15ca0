/* `holdfast table`: cmd_table.c reads the command line, cmd_table_list.c shows tables. */
#ifndef HF_CLI_CMD_TABLE_H
#define HF_CLI_CMD_TABLE_H

#include "cli/options.h"
#include "holdfast/holdfast.h"

struct table_values {
    bool all;
    bool no_wait;
    struct number wait;
    bool force;
    const char *from;
    const char *file;
    const char *cluster;
    const char *database;
    bool dry_run;
    bool constrain;
};

struct table_request {
    const struct invocation *in;
    const struct table_values *values;
    hf_store *store;
    hf_table_name name;
    const char *context;
};

/* Each prints its result, or reports its failure, and returns the exit code. */
int table_list(const struct table_request *request);
int table_show(const struct table_request *request);

/* Reports that standard output cannot be written. Returns the exit code. */
int table_cannot_write(const struct table_request *request);

#endif

/* Rows for chdb through a named pipe, written by a thread of their own. */
#ifndef HF_APPEND_CHDB_FEED_H
#define HF_APPEND_CHDB_FEED_H

#include "programs/append/target.h"

typedef struct hf__chdb_feed hf__chdb_feed;

/* The pipe is made in the folder. input is the thread's until hf__chdb_feed_end. */
HF_MUST_CHECK hf_status hf__chdb_feed_start(const char *folder, const hf__format *format,
                                            hf__input *input, const hf__flow *flow,
                                            const hf__halt *halt, hf__chdb_feed **feed,
                                            hf_error *err);
const char *hf__chdb_feed_path(const hf__chdb_feed *feed);

/* Ends the thread and frees it. status is that of the INSERT; returns it, or the input's own failure. */
HF_MUST_CHECK hf_status hf__chdb_feed_end(hf__chdb_feed *feed, hf_status status, hf_error *err);

#endif

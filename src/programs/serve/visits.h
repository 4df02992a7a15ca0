/* Connections, and how long each may take for what it does. */
#ifndef HF_SERVE_VISITS_H
#define HF_SERVE_VISITS_H

#include <microhttpd.h>
#include <pthread.h>

#include "base/error.h"

typedef struct hf__visits hf__visits;
typedef struct hf__visit hf__visit;

typedef enum hf__visit_step {
    HF__VISIT_IDLE,     /* the next request may come */
    HF__VISIT_REQUESTS, /* its first line is there */
    HF__VISIT_ANSWERED, /* all of it is */
} hf__visit_step;

HF_MUST_CHECK hf_status hf__visits_open(hf__visits **visits, hf_error *err);
void hf__visits_close(hf__visits *visits); /* NULL is safe; no connection is left */

void hf__visits_step(hf__visits *visits, struct MHD_Connection *connection, hf__visit_step step);

/* For MHD_OPTION_NOTIFY_CONNECTION, with the visits. */
void hf__visits_notify(void *arg, struct MHD_Connection *connection, void **state,
                       enum MHD_ConnectionNotificationCode code);

#endif

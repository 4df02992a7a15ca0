#ifndef HF_SERVE_EXCHANGE_H
#define HF_SERVE_EXCHANGE_H

#include "programs/serve/http.h"

/* NULL: out of memory. target is the URL as it came. */
hf__exchange *hf__exchange_make(hf__server *server, const char *target,
                                struct MHD_Connection *connection);
void hf__exchange_free(hf__exchange *exchange); /* NULL is safe */

/* Once the headers are there. False: answer hf__exchange_refuse at once, the body is not to be read. */
bool hf__exchange_begin(hf__exchange *exchange, const char *method, const char *version);
bool hf__exchange_take(hf__exchange *exchange, const char *data, size_t size); /* false: too much */

/* NULL, with exchange->suspended: it goes on later. NULL otherwise: out of memory. */
hf__answer *hf__exchange_answer(hf__exchange *exchange, const char *method);
hf__answer *hf__exchange_refuse(hf__exchange *exchange);

/* Of a route that renders: into the edition, from which others have it then. */
hf__answer *hf__exchange_render(hf__exchange *exchange, hf__problem *problem);

#endif

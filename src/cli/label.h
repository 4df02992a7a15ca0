#ifndef HF_CLI_LABEL_H
#define HF_CLI_LABEL_H

#include "holdfast/holdfast.h"

/* Refuses what no lock may be called, before a store is opened. */
HF_MUST_CHECK hf_status check_label(const char *label, hf_error *err);

/* Fills target from a label and the name of a derivation (NULL: the default), for any bytes. */
HF_MUST_CHECK hf_status target_label(const char *label, const char *derivation, hf_target *target,
                                     hf_error *err);

#endif

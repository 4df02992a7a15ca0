/* What one file teaches about the project: wrappers, and values of names that others need. */
#ifndef HF_LINT_WRAPPERS_H
#define HF_LINT_WRAPPERS_H

#include "lib/registry/registry.h"
#include "programs/registry/lint/uses.h"

/* Adds the project's own functions that the registry declares. */
void hf__wrappers_declare(hf__project *project, const hf_registry *registry);

/* Notes each function of the file that takes a lock from its parameters, and marks its uses. */
void hf__wrappers_learn(hf__project *project, const hf__file_facts *facts, hf__uses *uses);

/* Notes what wanted names stand for, where this file tells. */
void hf__definitions_learn(const hf__scope *scope);

/* Adds the calls of wrappers to the uses of a file. */
HF_MUST_CHECK hf_status hf__wrapper_calls_find(const hf__scope *scope, hf__uses *uses,
                                               hf_error *err);

#endif

/*
 * A YAML file as a tree in which every value knows its place. A file that is too large, or whose
 * aliases repeat too much, is refused.
 */
#ifndef HF_REGISTRY_DOCUMENT_H
#define HF_REGISTRY_DOCUMENT_H

#include "lib/registry/registry.h"

enum {
    HF__FILE_MAX = 8 * 1024 * 1024,
    HF__NODES_MAX = 500000, /* values; one that an alias repeats counts again */
    HF__DEPTH_MAX = 32,
    HF__FIELDS_MAX = 256, /* of one mapping */
    HF__ANCHORS_MAX = 256,
};

typedef enum hf__node_kind { HF__SCALAR, HF__LIST, HF__MAPPING } hf__node_kind;

typedef struct hf__node {
    hf__node_kind kind;
    hf__place at;
    char *text; /* of a scalar: valid UTF-8 without a NUL inside */
    bool quoted;
    struct hf__node **items; /* of a list; of a mapping, keys and values in turn */
    size_t count;            /* of items: twice the fields of a mapping */
    size_t capacity;
    size_t weight; /* how many values it stands for, itself included */
    bool complete;
    char *anchor;
    struct hf__node *next; /* in the list of all nodes */
} hf__node;

typedef struct hf__document {
    hf__node *root;  /* NULL: the file cannot be read, and findings say why */
    hf__node *nodes; /* the list of all nodes, which owns them */
    size_t weight;
} hf__document;

/*
 * Reads the text, which may be freed afterwards; path is for the findings. Every fault of the file
 * is a finding, so that HF_NO_MEMORY is the only failure. Call hf__document_free in any case.
 */
HF_MUST_CHECK hf_status hf__document_read(hf__document *document, const char *path,
                                          const char *text, size_t size, hf__findings *findings,
                                          hf_error *err);
void hf__document_free(hf__document *document);

const char *hf__node_kind_name(const hf__node *node); /* "a list" */

#endif

#include "cli/load.h"

#include <yaml.h>

/* clang-format off */
#define LIBYAML_CALLS(ASK, DO) \
    DO(yaml_event_delete, (yaml_event_t *event), (event)) \
    DO(yaml_parser_delete, (yaml_parser_t *parser), (parser)) \
    ASK(int, yaml_parser_initialize, (yaml_parser_t *parser), (parser)) \
    ASK(int, yaml_parser_parse, (yaml_parser_t *parser, yaml_event_t *event), (parser, event)) \
    DO(yaml_parser_set_encoding, (yaml_parser_t *parser, yaml_encoding_t encoding), \
        (parser, encoding)) \
    DO(yaml_parser_set_input_string, (yaml_parser_t *parser, const unsigned char *input, \
        size_t size), (parser, input, size))
/* clang-format on */

LAZY_LIBRARY(LIBYAML_CALLS)

hf_status load_libyaml(hf_error *err)
{
    return lazy.yaml_parser_parse ? HF_OK
                                  : load_library("libyaml-0.so.2", "libyaml-0-2", lazy_calls, err);
}

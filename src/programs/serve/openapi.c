/* Writes the OpenAPI 3 document from the table of routes and the shapes of their answers. */
#include <stdio.h>
#include <string.h>

#include "programs/serve/api.h"

static void put_members(hf__json *json, const hf__shape *shapes, const hf__shape *more);

static void put_items(hf__json *json, const hf__shape *shape)
{
    hf__json_begin_object(json, "items");
    hf__json_put_string(json, "type", shape->item);
    if (shape->of != NULL)
        put_members(json, shape->of, NULL);
    hf__json_end_object(json);
}

static void put_shape(hf__json *json, const hf__shape *shape)
{
    hf__json_begin_object(json, shape->name);
    if (strcmp(shape->type, "any") != 0)
        hf__json_put_string(json, "type", shape->type);
    if (shape->nullable)
        hf__json_put_boolean(json, "nullable", true);
    if (strcmp(shape->type, "integer") == 0)
        hf__json_put_string(json, "format", "int64");
    if (shape->about != NULL)
        hf__json_put_string(json, "description", shape->about);
    if (strcmp(shape->type, "array") == 0)
        put_items(json, shape);
    else if (shape->of != NULL)
        put_members(json, shape->of, NULL);
    hf__json_end_object(json);
}

/* Every member is required, and others are not allowed. */
static void put_members(hf__json *json, const hf__shape *shapes, const hf__shape *more)
{
    const hf__shape *const lists[] = {shapes, more};

    hf__json_begin_object(json, "properties");
    for (size_t i = 0; i < 2; i++)
        for (const hf__shape *shape = lists[i]; shape != NULL && shape->name != NULL; shape++)
            put_shape(json, shape);
    hf__json_end_object(json);
    hf__json_begin_array(json, "required");
    for (size_t i = 0; i < 2; i++)
        for (const hf__shape *shape = lists[i]; shape != NULL && shape->name != NULL; shape++)
            hf__json_put_string(json, NULL, shape->name);
    hf__json_end_array(json);
    hf__json_put_boolean(json, "additionalProperties", false);
}

static const hf__shape page_shape[] = {
    HF__SHAPE("limit", "integer", "rows of a page"),
    HF__SHAPE_OR_NULL("offset", "integer", "rows passed over"),
    HF__SHAPE_OR_NULL("cursor", "string", "where this page begins; ledgers and transactions"),
    HF__SHAPE_OR_NULL("total", "integer", "rows that fit; not counted with a cursor"),
    HF__SHAPE_OR_NULL("next", "string", "URL of the next page"),
    {0},
};

static const hf__shape snapshot_shape[] = {
    HF__SHAPE("number", "integer", "of the refresh, from 1"),
    HF__SHAPE("taken_at", "string", "of the data, RFC 3339"),
    HF__SHAPE("took_ms", "integer", "to read it"),
    HF__SHAPE("store", "string", "without a password"),
    HF__SHAPE_OR_NULL("problem", "string", "why the last refresh failed: the data is old"),
    HF__SHAPE_OR_NULL("problem_since", "string", "when that began"),
    {0},
};

static const hf__shape error_shape[] = {
    HF__SHAPE("status", "integer", "of HTTP"),
    HF__SHAPE("title", "string", "of the status"),
    HF__SHAPE("detail", "string", "what is wrong"),
    {0},
};

/* ---- parameters ---- */

static void put_parameter_schema(hf__json *json, const hf__parameter *parameter)
{
    bool is_number = parameter->type == HF__PARAMETER_NUMBER;

    hf__json_begin_object(json, "schema");
    hf__json_put_string(json, "type", is_number ? "integer" : "string");
    if (is_number) {
        hf__json_put_string(json, "format", "int64");
        hf__json_put_integer(json, "minimum", parameter->low);
        hf__json_put_integer(json, "maximum", parameter->high);
        if (!parameter->required && parameter->fallback != 0)
            hf__json_put_integer(json, "default", parameter->fallback);
    }
    if (parameter->type == HF__PARAMETER_CHOICE) {
        hf__json_begin_array(json, "enum");
        for (const char *const *choice = parameter->choices; *choice != NULL; choice++)
            hf__json_put_string(json, NULL, *choice);
        hf__json_end_array(json);
    }
    hf__json_end_object(json);
}

static void put_parameter(hf__json *json, const char *name, const char *place, const char *about,
                          const hf__parameter *parameter)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "name", name);
    hf__json_put_string(json, "in", place);
    hf__json_put_boolean(json, "required", parameter == NULL || parameter->required);
    hf__json_put_string(json, "description", about);
    if (parameter != NULL) {
        put_parameter_schema(json, parameter);
    } else {
        hf__json_begin_object(json, "schema");
        hf__json_put_string(json, "type", "string");
        hf__json_end_object(json);
    }
    hf__json_end_object(json);
}

static void put_parameters(hf__json *json, const hf__route *route, bool of_store)
{
    const char *brace = strchr(route->path, '{');
    char name[HF__SEGMENT_MAX];

    hf__json_begin_array(json, "parameters");
    if (of_store)
        put_parameter(json, "store", "path", "a name of /api/v1/stores", NULL);
    if (brace != NULL) {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(brace + 1, "}"), brace + 1);
        put_parameter(json, name, "path", "part of the path", NULL);
    }
    if (strcmp(route->method, "GET") == 0)
        for (const hf__parameter *p = route->parameters; p != NULL && p->name != NULL; p++)
            put_parameter(json, p->name, "query", p->about, p);
    hf__json_end_array(json);
}

static void put_form(hf__json *json, const hf__route *route)
{
    hf__json_begin_object(json, "requestBody");
    hf__json_put_boolean(json, "required", true);
    hf__json_begin_object(json, "content");
    hf__json_begin_object(json, "application/x-www-form-urlencoded");
    hf__json_begin_object(json, "schema");
    hf__json_put_string(json, "type", "object");
    hf__json_begin_object(json, "properties");
    for (const hf__parameter *p = route->parameters; p != NULL && p->name != NULL; p++) {
        hf__json_begin_object(json, p->name);
        hf__json_put_string(json, "type", "string");
        hf__json_put_string(json, "description", p->about);
        hf__json_end_object(json);
    }
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
}

/* ---- answers ---- */

static void put_list_schema(hf__json *json, const hf__route *route)
{
    const hf__shape list[] = {
        {"data", "array", route->summary, false, "object", route->shape},
        {"page", "object", "which part of it this is", false, NULL, page_shape},
        {"snapshot", "object", "what it was made of", false, NULL, snapshot_shape},
        {0},
    };

    put_members(json, list, route->extras);
}

/* A media type without its parameters. */
static const char *bare_type(const char *type, char *out, size_t size)
{
    (void)snprintf(out, size, "%.*s", (int)strcspn(type, ";"), type);
    return out;
}

static void put_content(hf__json *json, const hf__route *route)
{
    char type[64];

    hf__json_begin_object(json, "content");
    hf__json_begin_object(json, bare_type(route->type, type, sizeof type));
    hf__json_begin_object(json, "schema");
    hf__json_put_string(json, "type", strcmp(type, "application/json") == 0 ? "object" : "string");
    if (route->is_list)
        put_list_schema(json, route);
    else if (route->shape != NULL)
        put_members(json, route->shape, NULL);
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
}

static void put_responses(hf__json *json, const hf__route *route)
{
    hf__json_begin_object(json, "responses");
    hf__json_begin_object(json, "200");
    hf__json_put_string(json, "description", route->summary);
    put_content(json, route);
    hf__json_end_object(json);
    hf__json_begin_object(json, "default");
    hf__json_put_string(json, "description", "why not");
    hf__json_begin_object(json, "content");
    hf__json_begin_object(json, "application/json");
    hf__json_begin_object(json, "schema");
    hf__json_put_string(json, "$ref", "#/components/schemas/Error");
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
}

static void put_operation(hf__json *json, const hf__route *route, bool of_store)
{
    bool is_get = strcmp(route->method, "GET") == 0;

    hf__json_begin_object(json, is_get ? "get" : "post");
    hf__json_put_string(json, "summary", route->summary);
    put_parameters(json, route, of_store);
    if (!is_get)
        put_form(json, route);
    put_responses(json, route);
    if (route->is_open) {
        hf__json_begin_array(json, "security");
        hf__json_end_array(json);
    }
    hf__json_end_object(json);
}

/* ---- the document ---- */

static bool is_first_of_path(const hf__route *route)
{
    for (const hf__route *earlier = hf__routes; earlier != route; earlier++)
        if (strcmp(earlier->path, route->path) == 0)
            return false;
    return true;
}

static void put_path(hf__json *json, const hf__route *route, bool of_store)
{
    char path[96];

    (void)snprintf(path, sizeof path, "%s%s", of_store ? "/stores/{store}" : "", route->path);
    hf__json_begin_object(json, path);
    for (const hf__route *same = route; same->method != NULL; same++)
        if (strcmp(same->path, route->path) == 0)
            put_operation(json, same, of_store);
    hf__json_end_object(json);
}

static void put_paths(hf__json *json, bool has_several)
{
    hf__json_begin_object(json, "paths");
    for (const hf__route *route = hf__routes; route->method != NULL; route++) {
        if (!is_first_of_path(route))
            continue;
        if (!has_several || route->scope != HF__SCOPE_STORE)
            put_path(json, route, false);
        if (has_several && route->scope != HF__SCOPE_SERVER)
            put_path(json, route, true);
    }
    hf__json_end_object(json);
}

static void put_components(hf__json *json)
{
    const hf__shape error[] = {{"error", "object", "what is wrong", false, NULL, error_shape}, {0}};

    hf__json_begin_object(json, "components");
    hf__json_begin_object(json, "schemas");
    hf__json_begin_object(json, "Error");
    hf__json_put_string(json, "type", "object");
    put_members(json, error, NULL);
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_begin_object(json, "securitySchemes");
    hf__json_begin_object(json, "token");
    hf__json_put_string(json, "type", "http");
    hf__json_put_string(json, "scheme", "bearer");
    hf__json_put_string(json, "description", "of --token-file, where there is one");
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
}

void hf__openapi_write(const char *base, bool has_several, hf__buf *out)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "openapi", "3.0.3");
    hf__json_begin_object(&json, "info");
    hf__json_put_string(&json, "title", "Holdfast");
    hf__json_put_string(&json, "version", HF_VERSION);
    hf__json_put_string(&json, "description",
                        "What `holdfast serve` shows of a store. Numbers of 64 bits come as text "
                        "too, under a name that ends in _text.");
    hf__json_end_object(&json);
    hf__json_begin_array(&json, "servers");
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "url", base[0] != '\0' ? base : "/");
    hf__json_end_object(&json);
    hf__json_end_array(&json);
    hf__json_begin_array(&json, "security");
    hf__json_begin_object(&json, NULL);
    hf__json_begin_array(&json, "token");
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    hf__json_begin_object(&json, NULL);
    hf__json_end_object(&json);
    hf__json_end_array(&json);
    put_paths(&json, has_several);
    put_components(&json);
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    *out = json.text;
}

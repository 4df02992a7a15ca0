/* Workflow commands, which GitHub shows beside the lines of a change. */
#include "programs/registry/findings.h"

#include <string.h>

/* Inside a property ':' and ',' have a meaning too. */
static void put_escaped(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (strchr(special, *text) != NULL)
            printf("%%%02X", (unsigned char)*text);
        else
            putchar(*text);
    }
}

static void put_command(const hf__finding *finding)
{
    hf__severity severity = finding->rule->severity;

    printf("::%s file=", severity == HF__SEVERITY_NOTE ? "notice" : hf__severity_name(severity));
    put_escaped(finding->file, "%\r\n:,");
    if (finding->line > 0)
        printf(",line=%u", finding->line);
    if (finding->line > 0 && finding->column > 0)
        printf(",col=%u", finding->column);
    printf(",title=%s::", finding->rule->id);
    put_escaped(finding->message, "%\r\n");
    if (finding->remedy[0] != '\0') {
        fputs("%0A", stdout);
        put_escaped(finding->remedy, "%\r\n");
    }
    putchar('\n');
}

void print_findings_for_github(const hf__findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        put_command(&findings->items[i]);
}

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static void print_names(const struct option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (options->letter != 0)
            printf(" -%c", options->letter);
        printf(" --%s", options->name);
    }
}

static void print_command_names(void)
{
    for (const struct command *const *c = commands; *c != NULL; c++)
        if (!(*c)->hidden)
            printf(" %s", (*c)->name);
}

/* Options are offered up to the first operand that ends them, then commands and files. */
static void print_bash(void)
{
    fputs("# bash completion for holdfast; made by 'holdfast completion bash'\n"
          "_holdfast()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} options=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          stdout);
    print_command_names();
    fputs("' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", stdout);
    for (const struct command *const *c = commands; *c != NULL; c++) {
        printf("    %s) options='", (*c)->name);
        print_names((*c)->options);
        print_names(common_options);
        fputs("' ;;\n", stdout);
    }
    fputs("    esac\n"
          "    case ${COMP_WORDS[COMP_CWORD-1]} in\n"
          "    --as) COMPREPLY=($(compgen -W '",
          stdout);
    for (hf_derivation d = HF_SHA256; d <= HF_FIXED; d++)
        printf(" %s", hf_derivation_name(d));
    fputs("' -- \"$word\")); return ;;\n"
          "    --isolation) COMPREPLY=($(compgen -W 'serializable repeatable-read read-committed'"
          " -- \"$word\")); return ;;\n"
          "    help) COMPREPLY=($(compgen -W '",
          stdout);
    print_command_names();
    fputs("' -- \"$word\")); return ;;\n"
          "    esac\n"
          "    case $word in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
          "    *) COMPREPLY=($(compgen -c -f -- \"$word\")) ;;\n"
          "    esac\n}\n"
          "complete -F _holdfast holdfast\n",
          stdout);
}

static int completion_main(const struct command *self, int argc, char **argv)
{
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, NULL, &in, &code))
        return code;
    if (in.count != 1 || strcmp(in.operands[0], "bash") != 0)
        return report_usage(&in.report, self, "the only shell known is bash");
    print_bash();
    return EXIT_OK;
}

const struct command cmd_completion = {
    .name = "completion",
    .summary = "Write completion for a shell.",
    .usage = "bash",
    .takes_operands = true,
    .hidden = true,
    .main = completion_main,
};

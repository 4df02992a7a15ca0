#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/libexec.h"
#include "cli/options.h"
#include "cli/program.h"
#include "programs/holdfast/commands.h"

enum { WORDS_MAX = 64 * 1024 }; /* of one program; a longer answer is not from one of ours */

static void print_command_names(void)
{
    for (const struct command *const *c = holdfast_program.commands; *c != NULL; c++)
        if (!(*c)->hidden)
            printf(" %s", (*c)->name);
}

static void print_all_names(char *const *programs)
{
    print_command_names();
    for (; *programs != NULL; programs++)
        printf(" %s", *programs);
}

/* Is there nothing in it that bash would take for more than words? */
static bool is_list_of_words(const hf__buf *answer)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789- \n";

    return answer->length > 0 && answer->length <= WORDS_MAX &&
           answer->data[answer->length - 1] == '\n' &&
           strspn(answer->data, allowed) == answer->length;
}

/* The answer is one line of options: the program has no commands. */
static bool has_no_commands(const hf__buf *answer)
{
    return answer->data[0] == '-' &&
           strchr(answer->data, '\n') == answer->data + answer->length - 1;
}

/* A program answers with one line for each command: its name, then its options. */
static void print_program(const char *name, hf__buf *answer)
{
    hf__buf words = {0}, own = {0};

    if (has_no_commands(answer)) {
        printf("    '%s '*) options='%.*s' ;;\n", name, (int)answer->length - 2, answer->data + 1);
        return;
    }
    for (char *line = answer->data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        size_t length = strcspn(line, " \n");
        bool is_fallback = line[0] == '-'; /* the program's own options */
        printf("    '%s %.*s'%s) options='%.*s' ;;\n", name, (int)length, line,
               is_fallback ? "*" : "", (int)(end - line - (ptrdiff_t)length), line + length);
        hf__buf_puts(is_fallback ? &own : &words, " ");
        if (is_fallback) /* they may stand behind an operand, too */
            hf__buf_add(&own, line + length, (size_t)(end - line) - length);
        else
            hf__buf_add(&words, line, length);
    }
    if (!words.broken && !own.broken)
        printf("    '%s '*) commands='%s' options='%s' ;;\n", name, words.data,
               own.data != NULL ? own.data : "");
    hf__buf_free(&words);
    hf__buf_free(&own);
}

static void print_programs(char *const *programs)
{
    for (; *programs != NULL; programs++) {
        hf__buf answer = {0};
        if (ask_program(*programs, LIST_FOR_COMPLETION, &answer) && is_list_of_words(&answer))
            print_program(*programs, &answer);
        hf__buf_free(&answer);
    }
}

/* Prints cases that set options, or commands where the program's command is not typed yet. */
static void print_cases(char *const *programs)
{
    fputs("    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n", stdout);
    print_programs(programs);
    for (const struct command *const *c = holdfast_program.commands; *c != NULL; c++) {
        printf("    '%s '*) options='", (*c)->name);
        print_option_names((*c)->options, stdout);
        print_option_names(common_options, stdout);
        fputs("' ;;\n", stdout);
    }
    fputs("    esac\n", stdout);
}

/* Bash offers options up to the first operand, then commands and files. */
static void print_bash(char *const *programs)
{
    fputs("# bash completion for holdfast; made by 'holdfast completion bash'\n"
          "_holdfast()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} options= commands=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          stdout);
    print_all_names(programs);
    fputs("' -- \"$word\"))\n        return\n    fi\n", stdout);
    print_cases(programs);
    fputs("    if [ \"$COMP_CWORD\" -eq 2 ] && [ -n \"$commands\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
          "        return\n    fi\n"
          "    case ${COMP_WORDS[COMP_CWORD-1]} in\n"
          "    --as) COMPREPLY=($(compgen -W '",
          stdout);
    for (hf_derivation d = HF_SHA256; d <= HF_FIXED; d++)
        printf(" %s", hf_derivation_name(d));
    fputs("' -- \"$word\")); return ;;\n"
          "    --isolation) COMPREPLY=($(compgen -W 'serializable repeatable-read read-committed'"
          " -- \"$word\")); return ;;\n"
          "    --format) COMPREPLY=($(compgen -W 'human json sarif github' -- \"$word\")); return "
          ";;\n"
          "    help) COMPREPLY=($(compgen -W '",
          stdout);
    print_all_names(programs);
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
    char **programs = find_programs();
    if (programs == NULL) {
        const hf_error err = {.code = HF_NO_MEMORY, .message = "out of memory"};
        return report_error(&in.report, &err);
    }
    print_bash(programs);
    free_programs(programs);
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

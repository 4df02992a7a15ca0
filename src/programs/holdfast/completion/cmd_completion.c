#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "programs/holdfast/commands.h"
#include "programs/holdfast/completion/offer.h"

/*
 * Each script asks `holdfast completion offer WORD...` at every Tab, so all shells offer the same,
 * and what the option tables, the registry and the store have at that time.
 */
static const struct {
    const char *shell;
    const char *script;
} scripts[] = {
    /* Bash ends words at = and : as well. What no space separates is put together again, and of an
     * offer only what follows the last of them replaces what was typed. */
    {"bash",
     "# completion of holdfast for bash; made by 'holdfast completion bash'\n"
     "_holdfast()\n"
     "{\n"
     "    local rest=$COMP_LINE words=() offers=() word gap i\n"
     "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
     "        word=${COMP_WORDS[i]}\n"
     "        gap=$rest\n"
     "        [ -z \"$word\" ] || gap=${rest%%\"$word\"*}\n"
     "        rest=${rest#*\"$word\"}\n"
     "        if [ \"$i\" -gt 0 ] && [ -z \"$gap\" ]; then\n"
     "            words[${#words[@]}-1]+=$word\n"
     "        else\n"
     "            words+=(\"$word\")\n"
     "        fi\n"
     "    done\n"
     "    case $word in\n"
     "    [:=]) gap=${words[${#words[@]}-1]} ;;\n"
     "    *) gap=${words[${#words[@]}-1]%\"$word\"} ;;\n"
     "    esac\n"
     "    for i in \"${!words[@]}\"; do\n"
     "        word=${words[i]#[\\\"\\']}\n"
     "        words[i]=${word%[\\\"\\']}\n"
     "    done\n"
     "    mapfile -t offers < <(\"${words[0]}\" completion offer \"${words[@]:1}\" 2>/dev/null)\n"
     "    COMPREPLY=()\n"
     "    case ${offers[0]-} in\n"
     "    :files) compopt -o default 2>/dev/null ;;\n"
     "    :commands)\n"
     "        compopt -o default 2>/dev/null\n"
     "        mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
     "        ;;\n"
     "    *)\n"
     "        for word in \"${offers[@]}\"; do\n"
     "            printf -v word %q \"${word#\"$gap\"}\"\n"
     "            COMPREPLY+=(\"$word\")\n"
     "        done\n"
     "        ;;\n"
     "    esac\n"
     "}\n"
     "complete -F _holdfast holdfast\n"},
    {"zsh",
     "#compdef holdfast\n"
     "# completion of holdfast for zsh; made by 'holdfast completion zsh'\n"
     "_holdfast()\n"
     "{\n"
     "    local -a offers\n"
     "    offers=(\"${(@f)$(${(Q)words[1]} completion offer \"${(@Q)words[2,CURRENT-1]}\""
     " \"${(Q)PREFIX}\" 2>/dev/null)}\")\n"
     "    case $offers[1] in\n"
     "    :files) _files ;;\n"
     "    :commands) _command_names -e || _files ;;\n"
     "    ?*) compadd -- \"${offers[@]}\" ;;\n"
     "    esac\n"
     "}\n"
     "if [ \"$funcstack[1]\" = _holdfast ]; then\n" /* loaded by its first Tab, from $fpath */
     "    _holdfast \"$@\"\n"
     "else\n"
     "    compdef _holdfast holdfast\n"
     "fi\n"},
    {"fish", "# completion of holdfast for fish; made by 'holdfast completion fish'\n"
             "function __holdfast_offers\n"
             "    set -l words (commandline -opc) \"$(commandline -ct)\"\n"
             "    set -l offers (command $words[1] completion offer $words[2..] 2>/dev/null)\n"
             "    switch \"$offers[1]\"\n"
             "        case :files\n"
             "            __fish_complete_path $words[-1]\n"
             "        case :commands\n"
             "            complete -C \"$words[-1]\"\n"
             "        case '*'\n"
             "            printf '%s\\n' $offers\n"
             "    end\n"
             "end\n"
             "complete -c holdfast -f -a '(__holdfast_offers)'\n"},
};

static int completion_main(const struct command *self, int argc, char **argv)
{
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, NULL, &in, &code))
        return code;
    if (in.count > 1 && strcmp(in.operands[0], "offer") == 0) {
        print_offers(in.operands + 1, in.count - 1);
        return EXIT_OK;
    }
    for (size_t i = 0; in.count == 1 && i < sizeof scripts / sizeof scripts[0]; i++)
        if (strcmp(in.operands[0], scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return EXIT_OK;
        }
    return report_usage(&in.report, self, "the shells known are bash, zsh and fish");
}

const struct command cmd_completion = {
    .name = "completion",
    .summary = "Write completion for a shell.",
    .usage = "bash|zsh|fish",
    .takes_operands = true,
    .operands_end_options = true,
    .hidden = true,
    .main = completion_main,
};

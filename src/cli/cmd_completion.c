/* sheaf completion: a script that makes a shell complete command lines, written from the table of
 * options.
 *
 * Every command lists its options as for --help (cli/cli_options.h). The candidates of a value
 * follow from its name in the help, which is the same everywhere. */
#include <stdio.h>
#include <string.h>

#include "cli/cli_options.h"
#include "cluster/device_library.h"

/* The kind of a value, or of an operand. */
enum { NOTHING, FILES, FOLDERS, WORDS, WORDS_OR_FILES };

static const struct meaning {
    const char *value;
    int kind;
    const char *words; /* where they are not found below */
} meanings[] = {
    {"FILE", FILES, NULL},
    {"PLAN", FILES, NULL},
    {"OTHER", FILES, NULL},
    {"STEP", FILES, NULL},
    {"PROBLEM", FILES, NULL},
    {"INIT", FILES, NULL},
    {"PATH", WORDS_OR_FILES, "synthetic"},
    {"DIR", FOLDERS, NULL},
    {"[=DIR]", FOLDERS, NULL},
    {"CLUSTER", WORDS_OR_FILES, NULL},
    {"RECIPE", WORDS, NULL},
    {"SCHEDULE", WORDS_OR_FILES, "1f1b gpipe zb-h1 zb-v chimera dualpipe"},
    {"ENGINE", WORDS, "cpu cuda oracle"},
    {"LUA", FILES, NULL},
    {"WAY", WORDS, "sim run"},
    {"ALGORITHM", WORDS, "model exhaustive"},
    {"ORDER", WORDS, "shuffled sequential"},
    {"TYPE", WORDS, "u8 u16 u32"},
    {"LEVEL", WORDS, "2 3"},
    {"SHELL", WORDS, "bash zsh fish"},
};

static const struct meaning *meaning_of(const char *value)
{
    static const struct meaning none = {"", NOTHING, NULL};
    for (size_t i = 0; value && i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(meanings[i].value, value) == 0)
            return &meanings[i];
    return &none;
}

static void print_words(const struct meaning *meaning)
{
    const char *name;
    if (meaning->words)
        fputs(meaning->words, stdout);
    else if (strcmp(meaning->value, "RECIPE") == 0)
        for (int i = 0; (name = sf_recipe_name(i)); i++)
            printf("%s%s", i ? " " : "", name);
    else
        for (int i = 0; sf_library_bed_nth(i); i++)
            printf("%s%s", i ? " " : "", sf_library_bed_nth(i)->name);
}

static bool has_words(const struct meaning *meaning)
{
    return meaning->kind == WORDS || meaning->kind == WORDS_OR_FILES;
}

/* Text inside of single quotes; zsh has uses of its own for brackets and colons. */
static void print_quoted(const char *text, bool zsh)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(zsh ? "'\\''" : "\\'", stdout);
        else if (*text == '\\')
            fputs("\\\\", stdout);
        else if (zsh && strchr("[]:", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

/* bash ------------------------------------------------------------------------------------------- */

static void list_for_bash(const sf_cli_command *command, const sf_cli_table *table)
{
    printf("    %s) options=\"", command->name);
    for (int i = 0; i < table->count; i++)
        printf("%s--%s", i ? " " : "", sf_cli_spec_of(table->options[i].id)->name);
    const struct meaning *operand = meaning_of(command->operand);
    printf("\" words=\"");
    if (has_words(operand))
        print_words(operand);
    printf("\" ;;\n");
}

/* An option takes the same values in all commands. */
static void print_bash_values(void)
{
    for (int id = 0; id < SF_OPTIONS; id++) {
        const sf_cli_spec *spec = sf_cli_spec_of((sf_cli_id)id);
        const struct meaning *meaning = meaning_of(spec->value);
        if (!spec->value || spec->kind == SF_CLI_MAYBE)
            continue;
        printf("    --%s", spec->name);
        if (spec->letter)
            printf(" | -%c", spec->letter);
        if (!has_words(meaning)) {
            printf(") return ;;\n");
            continue;
        }
        printf(") COMPREPLY=($(compgen -W \"");
        print_words(meaning);
        printf("\" -- \"$word\")); return ;;\n");
    }
}

static void print_bash(sf_cli_listing *list_commands)
{
    printf("# Shell completion of sheaf for bash. What is not known here, the shell completes as a "
           "file.\n"
           "_sheaf() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options= "
           "words= commands=\"");
    list_commands(NULL);
    printf("\"\n    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"$commands help --help --version\" -- \"$word\"))\n"
           "        return\n    fi\n"
           "    if [ \"$word\" = = ]; then\n        word=\n"
           "    elif [ \"$before\" = = ]; then\n"
           "        before=${COMP_WORDS[COMP_CWORD - 2]}\n    fi\n"
           "    case $before in\n");
    print_bash_values();
    printf("    esac\n    case ${COMP_WORDS[1]} in\n    help) words=$commands ;;\n");
    list_commands(list_for_bash);
    printf("    esac\n    [[ $word == -* ]] && words=$options\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
           "complete -o default -F _sheaf sheaf\n");
}

/* zsh -------------------------------------------------------------------------------------------- */

static void print_zsh_action(const char *value)
{
    const struct meaning *meaning = meaning_of(value);
    putchar(':');
    print_quoted(strcmp(value, "[=DIR]") == 0 ? "DIR" : value, true);
    putchar(':');
    if (meaning->kind == FILES || meaning->kind == FOLDERS) {
        fputs(meaning->kind == FILES ? "_files" : "_files -/", stdout);
    } else if (meaning->kind == WORDS) {
        putchar('(');
        print_words(meaning);
        putchar(')');
    } else if (meaning->kind == WORDS_OR_FILES) {
        fputs("{_alternative \"names:name:(", stdout);
        print_words(meaning);
        fputs(")\" \"files:file:_files\"}", stdout);
    }
}

static void print_zsh_option(const sf_cli_command *command, const sf_cli_option *option)
{
    const sf_cli_spec *spec = sf_cli_spec_of(option->id);
    char letter = sf_cli_letter(command, spec);
    const char *takes = spec->kind == SF_CLI_MAYBE ? "=-" : spec->value ? "=" : "";
    fputs(" \\\n            ", stdout);
    if (spec->kind == SF_CLI_LIST)
        fputs("'*'", stdout);
    else if (letter)
        printf("'(-%c --%s)'", letter, spec->name);
    if (letter)
        printf("{-%c%s,--%s%s}", letter, spec->value ? "+" : "", spec->name, takes);
    else
        printf("'--%s%s'", spec->name, takes);
    fputs("'[", stdout);
    print_quoted(option->help, true);
    putchar(']');
    if (spec->kind == SF_CLI_MAYBE)
        putchar(':');
    if (spec->value)
        print_zsh_action(spec->value);
    putchar('\'');
}

static void list_for_zsh(const sf_cli_command *command, const sf_cli_table *table)
{
    printf("    %s)\n        _arguments -s", command->name);
    for (int i = 0; i < table->count; i++)
        print_zsh_option(command, &table->options[i]);
    const char *operands[] = {command->operand, command->second};
    for (int i = 0; i < 2 && operands[i]; i++) {
        printf(" \\\n            '%d", i + 1);
        print_zsh_action(operands[i]);
        putchar('\'');
    }
    printf("\n        ;;\n");
}

static void print_zsh(sf_cli_listing *list_commands)
{
    printf("#compdef sheaf\n# Shell completion of sheaf for zsh.\n_sheaf() {\n"
           "    local -a commands=(");
    list_commands(NULL);
    printf(" help)\n"
           "    if (( CURRENT == 2 )); then\n"
           "        compadd -- $commands --help --version\n        return\n    fi\n"
           "    shift words\n    (( CURRENT-- ))\n"
           "    case $words[1] in\n    help) compadd -- $commands ;;\n");
    list_commands(list_for_zsh);
    printf("    esac\n}\n"
           "if [ \"$funcstack[1]\" = _sheaf ]; then\n    _sheaf \"$@\"\nelse\n"
           "    compdef _sheaf sheaf\nfi\n");
}

/* fish ------------------------------------------------------------------------------------------- */

static void print_fish_values(const struct meaning *meaning)
{
    printf(meaning->kind == FILES || meaning->kind == WORDS_OR_FILES ? " -F"
           : meaning->kind == FOLDERS ? " -f -a '(__fish_complete_directories)'"
                                      : " -f");
    if (!has_words(meaning))
        return;
    fputs(" -a '", stdout);
    print_words(meaning);
    putchar('\'');
}

static void list_for_fish(const sf_cli_command *command, const sf_cli_table *table)
{
    for (int i = 0; i < table->count; i++) {
        const sf_cli_spec *spec = sf_cli_spec_of(table->options[i].id);
        printf("complete -c sheaf -n '__fish_seen_subcommand_from %s' -l %s", command->name,
               spec->name);
        if (sf_cli_letter(command, spec))
            printf(" -s %c", spec->letter);
        if (spec->value && spec->kind != SF_CLI_MAYBE) {
            fputs(" -r", stdout);
            print_fish_values(meaning_of(spec->value));
        }
        fputs(" -d '", stdout);
        print_quoted(table->options[i].help, false);
        puts("'");
    }
    if (has_words(meaning_of(command->operand))) {
        printf("complete -c sheaf -n '__fish_seen_subcommand_from %s'", command->name);
        print_fish_values(meaning_of(command->operand));
        putchar('\n');
    }
}

static void print_fish(sf_cli_listing *list_commands)
{
    printf("# Shell completion of sheaf for fish.\n"
           "complete -c sheaf -n __fish_use_subcommand -f -a '");
    list_commands(NULL);
    printf(" help'\ncomplete -c sheaf -n __fish_use_subcommand -l help -d 'the commands'\n"
           "complete -c sheaf -n __fish_use_subcommand -l version -d 'the version'\n");
    list_commands(list_for_fish);
}

int sf_cli_completion(int argc, char **argv, sf_cli_listing *list_commands)
{
    static const struct {
        const char *name;
        void (*print)(sf_cli_listing *list_commands);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    const char *shell = NULL;
    const sf_cli_command command = {
        .name = "completion",
        .synopsis = "bash | zsh | fish",
        .about = "Prints a script that makes the shell complete commands, options and values. make "
                 "install puts it where shells look for it; elsewhere, source <(sheaf completion "
                 "bash) does it.",
        .operand = "SHELL",
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &shell, &exit_code))
        return exit_code;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print(list_commands);
            return SF_EXIT_GOOD;
        }
    return sf_cli_misuse(command.name, "the shell is bash, zsh or fish, not '%s'", shell);
}

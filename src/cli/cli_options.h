/* Options: the table of all, and those of one command. Parsing, help and shell completion share
 * them. */
#ifndef SF_CLI_CLI_OPTIONS_H
#define SF_CLI_CLI_OPTIONS_H

#include "cli/cli.h"

/* One row of cli_options.def. */
typedef struct sf_cli_spec {
    const char *name; /* without the dashes */
    char letter;      /* or 0 */
    sf_cli_kind kind;
    const char *value; /* the name of its value in the help; NULL for a flag */
} sf_cli_spec;

const sf_cli_spec *sf_cli_spec_of(sf_cli_id id);

enum { SF_CLI_MOST_OPTIONS = 48 };

/* The options of a command, followed by those of all commands. */
typedef struct sf_cli_table {
    int count;
    sf_cli_option options[SF_CLI_MOST_OPTIONS];
    int64_t unroll, input;
    bool help;
} sf_cli_table;

/* The letter of an option in a command; 0 where it has none there, because the letter was that of another option in the
 * last version. */
char sf_cli_letter(const sf_cli_command *command, const sf_cli_spec *spec);

/* The option of a letter in the last version's command, if that was another option; else NULL. */
const sf_cli_spec *sf_cli_former(const sf_cli_command *command, int letter);

void sf_cli_add_option(sf_cli_table *table, const sf_cli_option *option);

/* Those of commands that make a plan. */
void sf_cli_add_making(sf_cli_table *table, sf_cli_making *making);

void sf_cli_make_table(const sf_cli_command *command, sf_cli_table *table);

void sf_cli_print_help(const sf_cli_command *command, const sf_cli_table *table);

/* If set, commands do not run: their options are passed to this function. */
typedef void sf_cli_lister(const sf_cli_command *command, const sf_cli_table *table);
extern sf_cli_lister *sf_cli_list_options;

/* Calls it for all commands; NULL: prints their names, with a space between them. */
typedef void sf_cli_listing(sf_cli_lister *lister);
int sf_cli_completion(int argc, char **argv, sf_cli_listing *list_commands);

#endif

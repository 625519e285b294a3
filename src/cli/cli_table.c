/* The table of all options, and that of a command: for parsing, --help and shell completion. */
#include <string.h>

#include "cli/cli_options.h"

static const sf_cli_spec specs[] = {
#define SF_LETTERED(id, name, letter, kind, value) {name, #letter[0], SF_CLI_##kind, value},
#define SF_UNLETTERED(id, name, kind, value) {name, 0, SF_CLI_##kind, value},
#include "cli/cli_options.def"
#undef SF_LETTERED
#undef SF_UNLETTERED
};

/* A letter that two options have is declared twice here. */
enum {
#define SF_LETTERED(id, name, letter, kind, value) LETTER_##letter,
#define SF_UNLETTERED(id, name, kind, value)
#include "cli/cli_options.def"
#undef SF_LETTERED
#undef SF_UNLETTERED
    LETTERS
};

/* Letters that had other options up to version 0.1.0: their use is an error with a message, so that
 * no unintended option applies. For one version; then these are as free as others. */
static const struct former {
    const char *command;
    char letter;
    sf_cli_id now;
} formers[] = {
    {"show", 'd', SF_OPT_DEPTH},     {"show", 'p', SF_OPT_PROGRAM},
    {"verify", 'a', SF_OPT_AGAINST}, {"verify", 't', SF_OPT_TOLERANCE},
    {"verify", 'i', SF_OPT_INIT},    {"train", 'i', SF_OPT_INIT},
    {"train", 's', SF_OPT_SAVE},     {"train", 'r', SF_OPT_RESUME},
    {"pin", 'p', SF_OPT_PIN},        {"plan", 'p', SF_OPT_PIN},
    {"plan", 'r', SF_OPT_RECIPES},   {"explain", 's', SF_OPT_STEP},
    {"diff", 's', SF_OPT_STEP},
};
enum { FORMERS = sizeof formers / sizeof *formers };

const sf_cli_spec *sf_cli_spec_of(sf_cli_id id)
{
    return &specs[id];
}

const sf_cli_spec *sf_cli_former(const sf_cli_command *command, int letter)
{
    for (int i = 0; i < FORMERS; i++)
        if (formers[i].letter == letter && strcmp(formers[i].command, command->name) == 0)
            return &specs[formers[i].now];
    return NULL;
}

char sf_cli_letter(const sf_cli_command *command, const sf_cli_spec *spec)
{
    return sf_cli_former(command, spec->letter) ? 0 : spec->letter;
}

void sf_cli_add_option(sf_cli_table *table, const sf_cli_option *option)
{
    if (table->count < SF_CLI_MOST_OPTIONS)
        table->options[table->count++] = *option;
}

static void add_load(sf_cli_table *table, sf_load_options *load)
{
    load->size = sizeof *load;
    const sf_cli_option shared[] = {
        {SF_OPT_UNROLL, &table->unroll,
         "unroll loops of up to N iterations (0: none; default: 256, and 2048 where that makes at "
         "most 100,000 ops)"},
        {SF_OPT_ASSUME_TRIP_COUNT, &load->assume_trip_count,
         "trip count to assume for loops whose trip count the text does not say (default 1)"},
        {SF_OPT_MAX_NODES, &load->most_nodes,
         "refuse a step with more than N nodes (default 4000000)"},
        {SF_OPT_SIDECAR, &load->sidecar,
         "JSON with the roles of the arguments, or none (default: NAME.json beside the step, if it "
         "exists)"},
        {SF_OPT_STATE, &load->state,
         "which result becomes which argument of the next step: ARGUMENT=RESULT,... (numbers or "
         "names), or none"},
        {SF_OPT_STRICT, &load->strict,
         "exit with 1 if there is a warning; a guess of roles or state against the sidecar or the "
         "text is an error"},
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        sf_cli_add_option(table, &shared[i]);
}

void sf_cli_make_table(const sf_cli_command *command, sf_cli_table *table)
{
    *table = (sf_cli_table){.unroll = -1};
    for (int i = 0; i < command->noptions; i++)
        sf_cli_add_option(table, &command->options[i]);
    if (command->making)
        sf_cli_add_making(table, command->making);
    if (command->load)
        add_load(table, command->load);
    if (command->operand)
        sf_cli_add_option(table,
                          &(sf_cli_option){SF_OPT_MAX_INPUT, &table->input,
                                           "refuse a file with more bytes, unpacked (default: 1G; "
                                           "for tensors, what fits in memory)"});
    sf_cli_add_option(table, &(sf_cli_option){SF_OPT_HELP, &table->help, "print this help"});
}

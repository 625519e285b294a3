/* The table of all options, and that of a command: it is parsed, printed by --help and told to completion. */
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

/* Letters that were those of other options up to version 0.1.0: who uses them is told, and nothing is done that they did
 * not mean. For one version; then these are as free as others. */
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

static void add_option(sf_cli_table *table, const sf_cli_option *option)
{
    if (table->count < SF_CLI_MOST_OPTIONS)
        table->options[table->count++] = *option;
}

static void add_making(sf_cli_table *table, sf_cli_making *making)
{
    const sf_cli_option shared[] = {
        {SF_OPT_MESH, &making->mesh, "the ranks, such as data=2,model=4"},
        {SF_OPT_PIN, &making->pins,
         "PATTERN=SHARE@AXIS, such as 'batch/*=S(0)@data'; the axis may be *, and !S(0) forbids. "
         "May be given many times, the first that matches a tensor counts"},
        {SF_OPT_OUTPUT, &making->output, "where to write the plan, as JSON"},
        {SF_OPT_JSON, &making->show.json, "the summary for machines"},
        {SF_OPT_STRICT, &making->strict,
         "exit with 1 where there is a warning: a step that cannot be run here, a plan that "
         "repeats "
         "much of its compute"},
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        add_option(table, &shared[i]);
}

static void add_load(sf_cli_table *table, sf_load_options *load)
{
    const sf_cli_option shared[] = {
        {SF_OPT_UNROLL, &table->unroll,
         "unroll loops of up to N iterations (0: none; default: 256, more where the body is "
         "small)"},
        {SF_OPT_ASSUME_TRIP_COUNT, &load->assume_trip_count,
         "count loops as if they turned N times where the text does not say how often (default: "
         "once)"},
        {SF_OPT_MAX_NODES, &load->most_nodes, "refuse a step of more nodes (default 4000000)"},
        {SF_OPT_SIDECAR, &load->sidecar,
         "JSON with the roles of arguments, or none (default: NAME.json beside the step, if any)"},
        {SF_OPT_STATE, &load->state,
         "which result becomes which argument: ARGUMENT=RESULT,... or none"},
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        add_option(table, &shared[i]);
}

void sf_cli_make_table(const sf_cli_command *command, sf_cli_table *table)
{
    *table = (sf_cli_table){.unroll = -1};
    for (int i = 0; i < command->noptions; i++)
        add_option(table, &command->options[i]);
    if (command->making)
        add_making(table, command->making);
    if (command->load)
        add_load(table, command->load);
    if (command->operand)
        add_option(table, &(sf_cli_option){SF_OPT_MAX_INPUT, &table->input,
                                           "refuse a file of more bytes, unpacked (default 1G; of "
                                           "tensors, what fits into memory)"});
    add_option(table, &(sf_cli_option){SF_OPT_HELP, &table->help, "print this and stop"});
}

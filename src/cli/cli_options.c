/* Parsing the options of a command, by getopt_long. */
#include "cli/cli_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/nearest.h"
#include "base/number.h"

enum { FIRST_LONG = 256 };

sf_cli_lister *sf_cli_list_options;

/* Names that options had before, which are still taken. */
static const struct {
    const char *name;
    sf_cli_id now;
} old_names[] = {{"outputs", SF_OPT_OUTPUT}};
enum { OLD_NAMES = sizeof old_names / sizeof *old_names };

/* The same, as getopt_long wants it. */
struct syntax {
    int count;
    struct option longs[SF_CLI_MOST_OPTIONS * (1 + OLD_NAMES) + 1];
    char letters[3 * SF_CLI_MOST_OPTIONS + 2];
};

static int takes_value(sf_cli_kind kind)
{
    return kind == SF_CLI_FLAG    ? no_argument
           : kind == SF_CLI_MAYBE ? optional_argument
                                  : required_argument;
}

static void make_syntax(const sf_cli_command *command, const sf_cli_table *table,
                        struct syntax *syntax)
{
    *syntax = (struct syntax){0};
    char *at = syntax->letters;
    *at++ = ':'; /* getopt then distinguishes a missing value from an unknown option */
    for (int i = 0; i < table->count; i++) {
        const sf_cli_spec *spec = sf_cli_spec_of(table->options[i].id);
        char letter = sf_cli_letter(command, spec);
        int takes = takes_value(spec->kind);
        struct option named = {spec->name, takes, NULL, FIRST_LONG + i};
        syntax->longs[syntax->count++] = named;
        for (int o = 0; o < OLD_NAMES; o++)
            if (old_names[o].now == table->options[i].id) {
                named.name = old_names[o].name;
                syntax->longs[syntax->count++] = named;
            }
        if (letter)
            *at++ = letter;
        for (int colons = 0; letter && colons < takes; colons++)
            *at++ = ':'; /* one for a value, two for one that may be left out */
    }
}

/* "100k", "7.5G": digits, perhaps a point and digits, perhaps a unit. */
static bool parse_size(const char *text, int64_t *out)
{
    static const char units[] = "kKmMgGtT", digits[] = "0123456789";
    size_t whole = strspn(text, digits), length = whole;
    if (text[length] == '.')
        length += 1 + strspn(text + length + 1, digits);
    const char *unit = text[length] ? strchr(units, text[length]) : NULL;
    if (whole == 0 || text[length - 1] == '.' || text[length + (unit != NULL)])
        return false;
    int64_t scale = unit ? (int64_t)1 << (10 * ((unit - units) / 2 + 1)) : 1, count;
    if (sf_number_int((sf_str){text, length}, &count))
        return count > 0 && sf_mul(count, scale, out);
    double value = sf_number_double((sf_str){text, length}) * (double)scale;
    if (value < 1 || value >= 0x1p63)
        return false;
    *out = (int64_t)value;
    return true;
}

static bool add_listed(sf_cli_list *list, const char *value)
{
    if (list->count == SF_CLI_MOST_LISTED)
        return false;
    list->at[list->count++] = value;
    return true;
}

/* One that is not negative. */
static bool parse_number(const char *text, double *out)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(value) || value < 0)
        return false;
    *out = value;
    return true;
}

/* NULL when the value was taken, else a description of valid ones. */
static const char *take(const sf_cli_option *option, const char *value)
{
    sf_cli_kind kind = sf_cli_spec_of(option->id)->kind;
    int64_t integer = 0;
    double number = 0;
    switch (kind) {
    case SF_CLI_FLAG:
        *(bool *)option->into = true;
        return NULL;
    case SF_CLI_MAYBE:
        *(const char **)option->into = value ? value : "";
        return NULL;
    case SF_CLI_TEXT:
        *(const char **)option->into = value;
        return NULL;
    case SF_CLI_LIST:
        return add_listed(option->into, value) ? NULL : "to be given no more than 1024 times";
    case SF_CLI_COUNT:
    case SF_CLI_INT:
        if (!sf_number_int(sf_str_of(value), &integer))
            return "an integer";
        if (kind == SF_CLI_COUNT && integer < 0)
            return "an integer that is not negative";
        *(int64_t *)option->into = integer;
        return NULL;
    case SF_CLI_ROOM:
    case SF_CLI_SIZE:
        if (kind == SF_CLI_ROOM && strcmp(value, "0") == 0) {
            *(int64_t *)option->into = -1;
            return NULL;
        }
        return parse_size(value, option->into)
                   ? NULL
                   : "a size such as 512M or 7.5G, with K, M, G or T for powers of 1024";
    case SF_CLI_NUMBER:
        if (!parse_number(value, &number) || number == 0)
            return "a positive number";
        *(double *)option->into = number;
        return NULL;
    case SF_CLI_SHARE:
        if (!parse_number(value, &number))
            return "a percentage";
        *(double *)option->into = number / 100;
        return NULL;
    }
    return NULL;
}

/* The option of getopt_long's result; it never returns letters without an option here. */
static const sf_cli_option *find(const sf_cli_table *table, int code)
{
    for (int i = 0; i < table->count; i++)
        if (code == FIRST_LONG + i ||
            (code != 0 && code == sf_cli_spec_of(table->options[i].id)->letter))
            return &table->options[i];
    return NULL;
}

/* An option that getopt does not know, or one whose beginning several share: which ones. */
static int unknown_option(const sf_cli_command *command, const sf_cli_table *table,
                          const char *argument)
{
    char list[256] = "";
    int found = 0;
    size_t used = 0, length = strcspn(argument, "=");
    sf_nearest nearest = {.text = {argument + 2, length < 2 ? 0 : length - 2}};
    for (int i = 0; i < table->count; i++) {
        const char *name = sf_cli_spec_of(table->options[i].id)->name;
        sf_nearest_try(&nearest, name);
        if (length < 3 || strncmp(argument + 2, name, length - 2) != 0 || used >= sizeof list)
            continue;
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s--%s", found++ ? ", " : "", name);
    }
    if (found > 1)
        return sf_cli_misuse(command->name, "%.*s is short for several options: %s", (int)length,
                             argument, list);
    return nearest.best ? sf_cli_misuse(command->name, "unknown option: %s; did you mean --%s?",
                                        argument, nearest.best)
                        : sf_cli_misuse(command->name, "unknown option: %s", argument);
}

/* The argument that getopt rejected: a letter, or else the whole argument. */
static int bad_option(const sf_cli_command *command, const char *what, char **argv)
{
    if (optopt > 0 && optopt < FIRST_LONG)
        return sf_cli_misuse(command->name, "%s: -%c", what, optopt);
    return sf_cli_misuse(command->name, "%s: %s", what, argv[optind - 1]);
}

static int unknown_letter(const sf_cli_command *command, char **argv)
{
    const sf_cli_spec *now = sf_cli_former(command, optopt);
    if (!now)
        return bad_option(command, "unknown option", argv);
    if (now->letter)
        return sf_cli_misuse(command->name, "-%c is not --%s any more: write -%c or --%s", optopt,
                             now->name, now->letter, now->name);
    return sf_cli_misuse(command->name, "-%c is not --%s any more: write --%s", optopt, now->name,
                         now->name);
}

static bool parse_options(const sf_cli_command *command, const sf_cli_table *table, int argc,
                          char **argv, int *exit_code)
{
    struct syntax syntax;
    make_syntax(command, table, &syntax);
    opterr = 0;
    optind = 0; /* glibc and musl: start over */
    for (;;) {
        int code = getopt_long(argc, argv, syntax.letters, syntax.longs, NULL);
        if (code == -1)
            return true;
        const sf_cli_option *option = find(table, code);
        const char *wanted = option ? take(option, optarg) : NULL;
        if (code == ':')
            *exit_code = bad_option(command, "a value is missing after", argv);
        else if (!option && optopt >= FIRST_LONG)
            *exit_code = bad_option(command, "this option takes no value", argv);
        else if (!option && optopt > 0)
            *exit_code = unknown_letter(command, argv);
        else if (!option)
            *exit_code = unknown_option(command, table, argv[optind - 1]);
        else if (wanted)
            *exit_code = sf_cli_misuse(command->name, "--%s wants %s, not '%s'",
                                       sf_cli_spec_of(option->id)->name, wanted, optarg);
        else
            continue;
        return false;
    }
}

static bool take_operands(const sf_cli_command *command, int found, char **at, const char **operand,
                          int *exit_code)
{
    int most = command->second ? 2 : command->operand ? 1 : 0;
    int least = most - (most == 2 ? command->second_optional : most == 1 && command->optional);
    if (found > most)
        *exit_code = sf_cli_misuse(command->name, "one argument too many: '%s'", at[most]);
    else if (found < least)
        *exit_code = sf_cli_misuse(command->name, "%s is missing",
                                   found == 0 ? command->operand : command->second);
    if (found > most || found < least)
        return false;
    if (found > 0)
        *operand = at[0];
    if (found > 1)
        *command->second_into = at[1];
    return true;
}

bool sf_cli_parse(const sf_cli_command *command, int argc, char **argv, const char **operand,
                  int *exit_code)
{
    sf_cli_table table;
    sf_cli_make_table(command, &table);
    if (sf_cli_list_options) {
        sf_cli_list_options(command, &table);
        *exit_code = SF_EXIT_GOOD;
        return false;
    }
    if (!parse_options(command, &table, argc, argv, exit_code))
        return false;
    if (table.help) {
        sf_cli_print_help(command, &table);
        *exit_code = SF_EXIT_GOOD;
        return false;
    }
    if (!take_operands(command, argc - optind, argv + optind, operand, exit_code))
        return false;
    sf_limit_input(table.input);
    /* In sf_load_options 0 means the default. */
    if (command->load && table.unroll >= 0)
        command->load->unroll = table.unroll == 0 ? -1 : table.unroll;
    if (command->load)
        sf_cli_be_strict(command->load->strict);
    return true;
}

/* Options of a command: one table is parsed by getopt_long and printed by --help. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "cli/cli.h"

enum { MOST_OPTIONS = 32, FIRST_LONG = 256, HELP_COLUMN = 26, HELP_WIDTH = 80 };

/* The table of a command with what all commands share behind it. */
struct table {
    int count;
    sf_cli_option options[MOST_OPTIONS];
    struct option longs[MOST_OPTIONS + 1];
    char letters[3 * MOST_OPTIONS + 2];
    int64_t unroll;
    bool help;
};

static void add_option(struct table *table, const sf_cli_option *option)
{
    if (table->count < MOST_OPTIONS)
        table->options[table->count++] = *option;
}

static void add_making(struct table *table, sf_cli_making *making)
{
    const sf_cli_option shared[] = {
        {"mesh", 'M', SF_CLI_TEXT, &making->mesh, "AXES", "the ranks, such as data=2,model=4"},
        {"pin", 'p', SF_CLI_LIST, &making->pins, "PIN",
         "PATTERN=SHARE@AXIS, such as 'batch/*=S(0)@data'; the axis may be *, and !S(0) forbids. "
         "May be given many times, the first that matches a tensor counts"},
        {"output", 'o', SF_CLI_TEXT, &making->output, "FILE", "where to write the plan, as JSON"},
        {"json", 0, SF_CLI_FLAG, &making->show.json, NULL, "the summary for machines"},
        {"strict", 0, SF_CLI_FLAG, &making->strict, NULL,
         "exit with 1 where there is a warning: a step that cannot be run here, a plan that "
         "repeats "
         "much of its compute"},
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        add_option(table, &shared[i]);
}

static void add_load(struct table *table, sf_load_options *load)
{
    const sf_cli_option shared[] = {
        {"unroll", 0, SF_CLI_COUNT, &table->unroll, "N",
         "unroll loops of up to N iterations (0: none; default: 256, more where the body is "
         "small)"},
        {"max-nodes", 0, SF_CLI_COUNT, &load->most_nodes, "N",
         "refuse a step of more nodes (default 4000000)"},
        {"sidecar", 0, SF_CLI_TEXT, &load->sidecar, "FILE",
         "JSON with the roles of arguments, or none (default: NAME.json beside the step, if any)"},
        {"state", 0, SF_CLI_TEXT, &load->state, "LIST",
         "which result becomes which argument: ARGUMENT=RESULT,... or none"},
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        add_option(table, &shared[i]);
}

static void make_table(const sf_cli_command *command, struct table *table)
{
    *table = (struct table){.unroll = -1};
    for (int i = 0; i < command->noptions; i++)
        add_option(table, &command->options[i]);
    if (command->making)
        add_making(table, command->making);
    if (command->load)
        add_load(table, command->load);
    add_option(table, &(sf_cli_option){"help", 'h', SF_CLI_FLAG, &table->help, NULL,
                                       "print this and stop"});
    char *letter = table->letters;
    *letter++ = ':'; /* getopt then tells a missing value from an unknown option */
    for (int i = 0; i < table->count; i++) {
        const sf_cli_option *option = &table->options[i];
        bool flag = option->kind == SF_CLI_FLAG;
        int takes = flag                           ? no_argument
                    : option->kind == SF_CLI_MAYBE ? optional_argument
                                                   : required_argument;
        table->longs[i] = (struct option){option->name, takes, NULL, FIRST_LONG + i};
        if (option->letter)
            *letter++ = option->letter;
        for (int colons = 0; option->letter && colons < takes; colons++)
            *letter++ = ':'; /* one for a value, two for one that may be left out */
    }
}

static void print_wrapped(const char *text, size_t indent, size_t column)
{
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > HELP_WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        fwrite(text, 1, word, stdout);
        column += word;
        text += word;
        while (*text == ' ')
            text++;
    }
    putchar('\n');
}

static void print_help(const sf_cli_command *command, const struct table *table)
{
    printf("usage: sheaf %s%s%s\n\n", command->name, *command->synopsis ? " " : "",
           command->synopsis);
    print_wrapped(command->about, 0, 0);
    printf("\noptions:\n");
    for (int i = 0; i < table->count; i++) {
        const sf_cli_option *option = &table->options[i];
        char text[64], letter[8] = "    ";
        if (option->letter)
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        int length = snprintf(text, sizeof text, "  %s--%s%s%s", letter, option->name,
                              option->value && option->kind != SF_CLI_MAYBE ? " " : "",
                              option->value ? option->value : "");
        printf("%-*s", HELP_COLUMN, text);
        if (length >= HELP_COLUMN)
            printf("\n%*s", HELP_COLUMN, "");
        print_wrapped(option->help, HELP_COLUMN, HELP_COLUMN);
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

/* NULL when the value was taken, else what it should have been. */
static const char *take(const sf_cli_option *option, const char *value)
{
    int64_t integer = 0;
    double number = 0;
    switch (option->kind) {
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
        if (option->kind == SF_CLI_COUNT && integer < 0)
            return "an integer that is not negative";
        *(int64_t *)option->into = integer;
        return NULL;
    case SF_CLI_SIZE:
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

static const sf_cli_option *find(const struct table *table, int code)
{
    for (int i = 0; i < table->count; i++)
        if (code == FIRST_LONG + i || (code == table->options[i].letter && code != 0))
            return &table->options[i];
    return NULL;
}

/* An option that getopt does not know, or one whose beginning several share: which ones. */
static int unknown_option(const sf_cli_command *command, const struct table *table,
                          const char *argument)
{
    char list[256] = "";
    int found = 0;
    size_t used = 0, length = strcspn(argument, "=");
    for (int i = 0; i < table->count && used < sizeof list; i++) {
        const char *name = table->options[i].name;
        if (length < 3 || strncmp(argument + 2, name, length - 2) != 0)
            continue;
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s--%s", found++ ? ", " : "", name);
    }
    if (found > 1)
        return sf_cli_misuse(command->name, "%.*s is short for several options: %s", (int)length,
                             argument, list);
    return sf_cli_misuse(command->name, "unknown option: %s", argument);
}

/* What getopt stumbled over: a letter, or else the whole argument. */
static int bad_option(const sf_cli_command *command, const char *what, char **argv)
{
    if (optopt > 0 && optopt < FIRST_LONG)
        return sf_cli_misuse(command->name, "%s: -%c", what, optopt);
    return sf_cli_misuse(command->name, "%s: %s", what, argv[optind - 1]);
}

static bool parse_options(const sf_cli_command *command, struct table *table, int argc, char **argv,
                          int *exit_code)
{
    opterr = 0;
    optind = 0; /* glibc and musl: start over */
    for (;;) {
        int code = getopt_long(argc, argv, table->letters, table->longs, NULL);
        if (code == -1)
            return true;
        const sf_cli_option *option = find(table, code);
        const char *wanted = option ? take(option, optarg) : NULL;
        if (code == ':')
            *exit_code = bad_option(command, "a value is missing after", argv);
        else if (!option && optopt >= FIRST_LONG)
            *exit_code = bad_option(command, "this option takes no value", argv);
        else if (!option && optopt > 0)
            *exit_code = bad_option(command, "unknown option", argv);
        else if (!option)
            *exit_code = unknown_option(command, table, argv[optind - 1]);
        else if (wanted)
            *exit_code = sf_cli_misuse(command->name, "--%s wants %s, not '%s'", option->name,
                                       wanted, optarg);
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
    struct table table;
    make_table(command, &table);
    if (!parse_options(command, &table, argc, argv, exit_code))
        return false;
    if (table.help) {
        print_help(command, &table);
        *exit_code = SF_EXIT_GOOD;
        return false;
    }
    if (!take_operands(command, argc - optind, argv + optind, operand, exit_code))
        return false;
    /* In sf_load_options 0 stands for the default. */
    if (command->load && table.unroll >= 0)
        command->load->unroll = table.unroll == 0 ? -1 : table.unroll;
    return true;
}

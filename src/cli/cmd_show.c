/* sheaf show: describes a step and its costs; sheaf show --ops: lists the ops. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

/* Columns of the terminal on standard output; 0 when it is none, whose lines are never cut. */
static int terminal_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return 0;
    const char *columns = getenv("COLUMNS");
    char *end;
    long width = columns ? strtol(columns, &end, 10) : 0;
    if (width > 0 && width < INT_MAX && *end == '\0')
        return (int)width;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        return size.ws_col;
    return 0;
}

static sf_status show_step(const char *file, const sf_load_options *load,
                           const sf_show_options *options, bool program, sf_diag *diag)
{
    sf_graph *graph;
    sf_status status = sf_load(file, load, diag, &graph);
    if (status != SF_OK)
        return status;
    status = program ? sf_show_program(graph, NULL, diag) : sf_show(graph, options, NULL, diag);
    sf_graph_free(graph);
    return status;
}

/* `--ops` replaces the step, so it is looked for before the operand; but --help comes first. */
static bool is_ops(int argc, char **argv)
{
    bool ops = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return false;
        size_t length = strlen(argv[i]);
        ops = ops || (length > 2 && length <= 5 && strncmp(argv[i], "--ops", length) == 0);
    }
    return ops;
}

int sf_cli_show(int argc, char **argv)
{
    sf_load_options load = {.size = sizeof load};
    sf_show_options options = {.size = sizeof options};
    int64_t depth = 0;
    bool ops = false, program = false;
    const sf_cli_option list[] = {
        {SF_OPT_ALL, &options.all, "print every argument, state link, op and scope; fold nothing"},
        {SF_OPT_DEPTH, &depth, "levels of scopes to print (default 3)"},
        {SF_OPT_JSON, &options.json, "print JSON; always complete"},
        {SF_OPT_PROGRAM, &program,
         "print the program for one device instead: instructions, buffers, memory"},
        {SF_OPT_OPS, &ops, "print the table of known ops as Markdown; takes no STEP"},
    };
    const sf_cli_command command = {
        .name = "show",
        .synopsis = "STEP [--all] [--depth N] [--json] | STEP --program | --ops",
        .about = "Prints what a step is: its arguments by role, its results and state, and the "
                 "cost of its ops, phases and scopes.",
        .operand = "STEP",
        .options = list,
        .noptions = sizeof list / sizeof *list,
        .load = &load,
    };
    if (is_ops(argc, argv)) {
        if (argc > 2)
            return sf_cli_misuse("show", "--ops takes no STEP and no other options");
        sf_diag *diag = sf_cli_diag();
        return sf_cli_finish(sf_show_ops(NULL, diag), diag);
    }
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &options.file, &exit_code))
        return exit_code;
    if (program && (options.json || options.all || depth != 0))
        return sf_cli_misuse("show", "--program goes with none of --json, --all and --depth");
    options.depth = depth > INT_MAX ? INT_MAX : (int)depth;
    options.width = terminal_width();
    options.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(show_step(options.file, &load, &options, program, diag), diag);
}

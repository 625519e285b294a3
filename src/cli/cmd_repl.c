/* sheaf repl: a schedule, line by line. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    const char *step;
    sf_load_options load;
    sf_script_options with;
};

static bool is_in_name(char c)
{
    return c == '.' || c == '/' || c == '_' || c == '-' || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Lists the modules whose names go on from the word in front of the tab. */
static void complete(const sf_primitives *list, const char *line, size_t length)
{
    enum { MOST = 64 };
    const char *found[MOST];
    char pattern[SF_CLI_SHOWN], shown[SF_CLI_SHOWN];
    size_t first = length;
    while (first > 0 && is_in_name(line[first - 1]))
        first--;
    snprintf(pattern, sizeof pattern, "%.*s*", (int)(length - first), line + first);
    int count = sf_primitives_modules(list, pattern, MOST, found);
    for (int i = 0; i < count && i < MOST; i++)
        printf("%s\n", sf_cli_shown(found[i], shown));
    if (count > MOST)
        printf("and %d more\n", count - MOST);
    fflush(stdout);
}

static void print_failure(sf_diag *diag)
{
    for (int i = 0; i < sf_diag_count(diag); i++)
        if (sf_diag_text(diag, i))
            fprintf(stderr, "%s\n", sf_diag_text(diag, i));
    sf_diag_clear(diag);
}

/* Until the end of the input; whether a line failed. */
static bool read_lines(sf_console *console, const sf_primitives *list, sf_diag *diag)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    bool failed = false, terminal = isatty(STDIN_FILENO);
    while ((terminal ? fputs("> ", stderr) : 0) >= 0 &&
           (length = getline(&line, &room, stdin)) >= 0) {
        const char *tab = memchr(line, '\t', (size_t)length);
        if (tab) {
            complete(list, line, (size_t)(tab - line));
        } else if (sf_console_run(console, line, (size_t)length, diag) != SF_OK) {
            print_failure(diag);
            failed = true;
        }
    }
    free(line);
    return failed;
}

static sf_status run_console(const struct job *job, sf_primitives *list, sf_diag *diag)
{
    sf_console *console;
    SF_TRY(sf_console_new("line", &job->with, list, diag, &console));
    bool failed = read_lines(console, list, diag);
    sf_console_free(console);
    for (int i = 0; i < sf_primitives_count(list); i++)
        printf("%s\n", sf_primitives_text(list, i));
    return failed && !isatty(STDIN_FILENO)
               ? sf_fail(diag, SF_EMISMATCH, SF_NOWHERE, "not all lines could be applied")
               : SF_OK;
}

static sf_status open_step(const struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_primitives *list = NULL;
    SF_TRY(sf_load(job->step, &job->load, diag, &graph));
    sf_status status = sf_primitives_new(graph, diag, &list);
    if (status == SF_OK)
        status = run_console(job, list, diag);
    sf_primitives_free(list);
    sf_graph_free(graph);
    return status;
}

int sf_cli_repl(int argc, char **argv)
{
    struct job job = {0};
    int64_t ranks = 0;
    const sf_cli_option options[] = {
        {SF_OPT_RANKS, &ranks, "sheaf.ranks"},
        {SF_OPT_UNSAFE, &job.with.unsafe, "let lines use files and run programs"},
    };
    const sf_cli_command command = {
        .name = "repl",
        .synopsis = "STEP [-n N] [--unsafe]",
        .about = "Reads a schedule from standard input, line by line, applies each to the step, "
                 "and says "
                 "at the end what was applied. A line that is an expression has its value printed. "
                 "A tab "
                 "behind the beginning of a module's name lists those that go on so.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.step, &exit_code))
        return exit_code;
    if (ranks > INT_MAX)
        return sf_cli_misuse("repl", "--ranks is too large");
    if (strcmp(job.step, "-") == 0)
        return sf_cli_misuse("repl", "the step is in a file: standard input is for lines");
    job.with.ranks = (int)ranks;
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(open_step(&job, diag), diag);
}

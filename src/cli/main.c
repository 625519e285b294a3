/* The command line: finds the command and sees to it that nothing that was printed is lost unsaid.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/cli_options.h"

static int print_completion(int argc, char **argv);

static const struct command {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"show", "print what a step is and what it costs", sf_cli_show},
    {"convert", "write a step as canonical StableHLO", sf_cli_convert},
    {"eval", "run a step once with the reference kernels", sf_cli_eval},
    {"verify", "compare a step with expected results, or a split step with the unsplit one",
     sf_cli_verify},
    {"run", "time a step or a plan on synthetic data", sf_cli_run},
    {"train", "train with a step: batches in, checkpoints out", sf_cli_train},
    {"pin", "make a plan by hand, from pins and recipes", sf_cli_pin},
    {"plan", "search for the fastest plan for a cluster", sf_cli_plan},
    {"tune", "find the best values of a schedule's variables", sf_cli_tune},
    {"repl", "apply a schedule line by line", sf_cli_repl},
    {"explain", "print what a plan costs, where and why", sf_cli_explain},
    {"sim", "simulate a plan: where the time of a step goes", sf_cli_sim},
    {"report", "write an HTML page about a plan", sf_cli_report},
    {"diff", "compare two plans", sf_cli_diff},
    {"passes", "list the passes that rewrite programs", sf_cli_passes},
    {"cluster", "print what a cluster is and its collective times", sf_cli_cluster},
    {"calibrate", "measure this machine and write its cluster file", sf_cli_calibrate},
    {"cache", "print or clear what is cached between runs", sf_cli_cache},
    {"solve", "solve an optimal strategy selection problem", sf_cli_solve},
    {"completion", "print a shell completion script", print_completion},
    {"version", "print version, compiler, target and features", sf_cli_version},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *file)
{
    fprintf(file, "usage: sheaf COMMAND [ARGUMENT...]\n\ncommands:\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].what);
    fprintf(file, "\nsheaf COMMAND --help lists the options of a command; sheaf --version prints "
                  "the version.\n");
}

static const struct command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    sf_nearest nearest = {.text = sf_str_of(name)};
    char shown[SF_CLI_SHOWN];
    if (!sf_cli_speaks())
        return SF_EXIT_USAGE;
    for (int i = 0; i < COMMANDS; i++)
        sf_nearest_try(&nearest, commands[i].name);
    fprintf(stderr, "sheaf: there is no command '%s'", sf_cli_shown(name, shown));
    if (nearest.best)
        fprintf(stderr, "; did you mean '%s'?", nearest.best);
    fprintf(stderr, "\ntry: sheaf --help\n");
    return SF_EXIT_USAGE;
}

static void list_commands(sf_cli_lister *lister)
{
    for (int i = 0; i < COMMANDS; i++) {
        char name[16];
        char *arguments[] = {name, NULL};
        snprintf(name, sizeof name, "%s", commands[i].name);
        if (!lister)
            printf("%s%s", i ? " " : "", name);
        sf_cli_list_options = lister;
        if (lister)
            commands[i].run(1, arguments);
        sf_cli_list_options = NULL;
    }
}

static int print_completion(int argc, char **argv)
{
    return sf_cli_completion(argc, argv, list_commands);
}

static int help(int argc, char **argv)
{
    const struct command *command = argc > 1 ? find(argv[1]) : NULL;
    if (argc > 1 && !command)
        return unknown(argv[1]);
    if (!command) {
        print_usage(stdout);
        return SF_EXIT_GOOD;
    }
    char option[] = "--help";
    char *arguments[] = {argv[1], option, NULL};
    return command->run(2, arguments);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        if (sf_cli_speaks())
            print_usage(stderr);
        return SF_EXIT_USAGE;
    }
    const struct command *command = find(argv[1]);
    if (command)
        return command->run(argc - 1, argv + 1);
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(argv[1], "--version") == 0) {
        printf("sheaf %s\n", sf_version());
        return SF_EXIT_GOOD;
    }
    return unknown(argv[1]);
}

/* A standard stream that is closed would give its number to the next file that is opened. One with
 * the wrong direction replaces it, so that using it stays an error. */
static void fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int flush_output(int exit_code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return exit_code;
    fprintf(stderr, "sheaf: standard output: %s\n", strerror(errno ? errno : EIO));
    return exit_code == SF_EXIT_GOOD ? SF_EXIT_FAILED : exit_code;
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    /* A reader that went away, as `head` does, needs no message: the signal ends the program
     * silently, also if the parent process ignored the signal. */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* a file past the limit is an error of the write, which is said */
    return flush_output(dispatch(argc, argv));
}

/* The command line: common to its commands.
 *
 * A command is a function from its arguments to an exit code; argv[0] is the name of the command.
 * Results go to standard output, messages to standard error. A command is thin: a C program can do
 * the same through include/sheaf.
 *
 * Exit codes: 0 for success, 1 for a failure or a mismatch, 2 for an invalid command line. */
#ifndef SF_CLI_CLI_H
#define SF_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "sheaf/sheaf.h"

enum { SF_EXIT_GOOD = 0, SF_EXIT_FAILED = 1, SF_EXIT_USAGE = 2 };

int sf_cli_calibrate(int argc, char **argv);
int sf_cli_cluster(int argc, char **argv);
int sf_cli_convert(int argc, char **argv);
int sf_cli_diff(int argc, char **argv);
int sf_cli_eval(int argc, char **argv);
int sf_cli_explain(int argc, char **argv);
int sf_cli_sim(int argc, char **argv);
int sf_cli_report(int argc, char **argv);
int sf_cli_passes(int argc, char **argv);
int sf_cli_cache(int argc, char **argv);
int sf_cli_pin(int argc, char **argv);
int sf_cli_plan(int argc, char **argv);
int sf_cli_repl(int argc, char **argv);
int sf_cli_run(int argc, char **argv);
int sf_cli_show(int argc, char **argv);
int sf_cli_solve(int argc, char **argv);
int sf_cli_train(int argc, char **argv);
int sf_cli_tune(int argc, char **argv);
int sf_cli_verify(int argc, char **argv);
int sf_cli_version(int argc, char **argv);

/* The kind of an option's value, and its destination. */
typedef enum sf_cli_kind {
    SF_CLI_FLAG,   /* bool, set to true */
    SF_CLI_TEXT,   /* const char *, a view of argv */
    SF_CLI_LIST,   /* sf_cli_list: may be repeated */
    SF_CLI_MAYBE,  /* the same, given as --name=VALUE; "" without a value */
    SF_CLI_COUNT,  /* int64_t, not negative */
    SF_CLI_INT,    /* int64_t */
    SF_CLI_SIZE,   /* int64_t, in bytes, such as 7.5G; K, M, G and T are powers of 1024 */
    SF_CLI_ROOM,   /* the same, or 0, which is -1: it is said that there is none */
    SF_CLI_NUMBER, /* double, positive */
    SF_CLI_SHARE,  /* double, not negative; given in percent */
} sf_cli_kind;

enum { SF_CLI_MOST_LISTED = 1024 };
typedef struct sf_cli_list {
    int count;
    const char *at[SF_CLI_MOST_LISTED]; /* views of argv */
} sf_cli_list;

/* All options that there are: SF_OPT_STEPS and so on. */
typedef enum sf_cli_id {
#define SF_LETTERED(id, name, letter, kind, value) SF_OPT_##id,
#define SF_UNLETTERED(id, name, kind, value) SF_OPT_##id,
#include "cli/cli_options.def"
#undef SF_LETTERED
#undef SF_UNLETTERED
    SF_OPTIONS
} sf_cli_id;

/* One option of a command. Its value goes to `into`, which the caller has set to the default. */
typedef struct sf_cli_option {
    sf_cli_id id;
    void *into;
    const char *help; /* one line */
} sf_cli_option;

/* A schedule in Lua, as commands take it. */
typedef struct sf_cli_script {
    const char *path;
    bool unsafe;
    int ranks; /* or 0 */
} sf_cli_script;

/* Common to commands that make a plan. */
typedef struct sf_cli_making {
    sf_plan_spec spec;
    const char *micro_batches, *output;
    sf_cli_list pins;
    sf_cli_script script; /* in place of the schedule of `spec` */
    sf_show_options show;
} sf_cli_making;

typedef struct sf_cli_command {
    const char *name;
    const char *synopsis; /* after the name: "STEP [-o FILE]" */
    const char *about;    /* a paragraph for --help */
    const char *operand;  /* the name of the one operand; NULL for a command without operands */
    bool optional;        /* the operand may be left out; it then stays as it is */
    const char *second;   /* the name of a second operand, or NULL */
    bool second_optional;
    const char **second_into;
    const sf_cli_option *options;
    int noptions;
    sf_load_options *load; /* where the options of all commands that read a step go, or NULL */
    sf_cli_making *making; /* and those of commands that make a plan (cli_spec.c) */
} sf_cli_command;

/* Parses the arguments. True to go on, with *operand set if the command has one; false when
 * *exit_code is the result, because of --help or an error in the arguments. */
bool sf_cli_parse(const sf_cli_command *command, int argc, char **argv, const char **operand,
                  int *exit_code);

/* Completes making->spec, and the script, from parsed options; `ranks` 0: not given. False if one
 * of them is invalid: *exit_code is then the result. */
bool sf_cli_read_spec(sf_cli_making *making, const char *command, int64_t ranks, int *exit_code);

/* Whether this process prints errors in the command line: of processes that mpirun started, which
 * make the same mistake, one does. It is called before they end, because launchers end all when one
 * does. */
bool sf_cli_speaks(void);

/* "sheaf COMMAND: TEXT" and where to find help, on standard error. Returns SF_EXIT_USAGE. */
int sf_cli_misuse(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the messages to standard error, coloured on a terminal unless NO_COLOR is set, frees
 * `diag`, and gives the exit code of the status; after sf_cli_be_strict, a warning is a failure. */
int sf_cli_finish(sf_status status, sf_diag *diag);
void sf_cli_be_strict(bool strict);

/* A step, and the plan that splits it, as commands that run one take them. */
typedef struct sf_cli_split {
    const char *step, *plan; /* paths; plan: NULL for none; step: NULL for that of the plan */
    sf_load_options load;
    int64_t ranks;      /* how many the plan must be for; 0: any */
    const char *passes; /* in place of those of the plan; NULL: those */
    int64_t memory;     /* of a device, for these; 0: its own */
    double limit;       /* as of sf_train */
    sf_cli_script
        script; /* a schedule that makes the plan, in place of a file; its ranks are those above */
} sf_cli_split;

/* Reads and checks them; *plan is NULL if there is none. Processes that mpirun started must have a
 * plan, and they do this together: if one cannot read its files none runs, and one message is
 * printed. The caller frees both, also after a failure. */
sf_status sf_cli_open(const sf_cli_split *split, sf_diag *diag, sf_graph **graph, sf_plan **plan);

/* The help of --passes. */
#define SF_CLI_PASSES                                                                              \
    "rewrite programs by these passes, as in fsdp,prefetch,unshard, or none, in place of the "     \
    "plan's passes; sheaf passes lists them"

/* Whether --schedule names a script: its name ends in .lua. */
bool sf_cli_is_script(const char *schedule);

/* Prints on standard error the other meanings of --schedule: a name, or a file with a table. NULL:
 * nothing. */
void sf_cli_say_schedule(const char *schedule);

/* The number of ranks for a schedule: the option or, under mpirun, as many as it started. */
int sf_cli_script_ranks(int64_t said);

/* The help of --schedule, in commands that run a step. */
#define SF_CLI_SCHEDULE                                                                            \
    "run the schedule in this Lua program and split the step as it says, in place of a plan"

/* Runs it, and says so on standard error. *out is for sf_primitives_free, NULL after a failure. */
sf_status sf_cli_run_script(const sf_cli_script *script, const sf_graph *graph, sf_diag *diag,
                            sf_primitives **out);

/* A plan names the file of its step. SF_EUSAGE, with a remedy, if a plan should be written and a
 * schedule has made another step. */
sf_status sf_cli_check_unchanged(const sf_graph *step, const sf_graph *made, const char *output,
                                 sf_diag *diag);

/* Prints the cost of a schedule: the plan with it against the one without. */
void sf_cli_say_cost(const sf_plan *plan, const sf_plan *free_plan);

#define SF_CLI_DEVICE_MEMORY                                                                       \
    "memory of a device, such as 512M; a step that needs more is refused, and passes stay "        \
    "within it"

#define SF_CLI_ENGINE "auto (default: cuda if there is a GPU, else cpu), cpu, cuda or oracle"

#define SF_CLI_PRECISION                                                                           \
    "type in which products of f32 are computed: f32 (default), tf32, bf16, f16 or fp8; "          \
    "weights and state stay f32"

#define SF_CLI_HOST_LINK                                                                           \
    "make copies between device and host take as long as over a link of SIZE bytes a second, "     \
    "such as 2G (default: as fast as memory)"

/* Before long work: whether the output (or NULL) can be written, and is none of the files that are read (or NULL). */
sf_status sf_cli_try_output(const char *path, const char *input, const char *other, sf_diag *diag);

/* Where the time of a step goes is written there, if it has a path: a timeline where that ends in .json, else a table. */
void sf_cli_set_profile(const sf_output *profile, sf_train_options *options);

/* Reads a plan of this step and checks that it computes the step; a message names the file of one that does not.
 * *out is for sf_plan_free, NULL after a failure. */
sf_status sf_cli_open_plan(const char *path, const sf_graph *graph, sf_diag *diag, sf_plan **out);

/* Reads the step of a plan: `given`, or, for NULL, the one that the plan was made from. */
sf_status sf_cli_load_planned(const char *plan, const char *given, const sf_load_options *load,
                              sf_diag *diag, sf_graph **out);

/* A cluster as sf_cluster_open takes it; with the times of a run where `measured`, or else NULL, is its timeline. */
#define SF_CLI_MEASURED                                                                            \
    "use the times of this timeline, written by train or run with --profile FILE.json, in "        \
    "place of the cost model's"

sf_status sf_cli_open_cluster(const char *name, const char *measured, sf_diag *diag,
                              sf_cluster **out);

/* A plan to be simulated, for commands: its step and its cluster are those that it was made for,
 * unless options replace them. */
typedef struct sf_cli_pricing {
    const char *plan, *step, *cluster; /* step, cluster: NULL unless said */
    const char *measured;              /* a timeline of a run, that costs go by; NULL: none */
    const char *passes;                /* in place of those of the plan; NULL: those */
    int64_t memory;                    /* of a device, for these; 0: its own */
    sf_load_options load;
} sf_cli_pricing;
typedef struct sf_cli_priced {
    sf_graph *graph;
    sf_plan *plan;
    sf_cluster *cluster;
} sf_cli_priced;

/* Closed in any case. */
sf_status sf_cli_open_priced(const sf_cli_pricing *pricing, sf_diag *diag, sf_cli_priced *out);
void sf_cli_close_priced(sf_cli_priced *priced);

/* Foreign text, such as a name out of a file, as it may go to a terminal (base/str.h), cut off where there is no room. */
enum { SF_CLI_SHOWN = 1000 };
const char *sf_cli_shown(const char *text, char out[SF_CLI_SHOWN]);

/* Three digits and a unit, in `text`, which is returned: "12.3 k " or "850 ", before the counted
 * noun; "12.3 GFLOP". Bytes and seconds: base/units.h. */
enum { SF_CLI_UNITS = 32 };
const char *sf_cli_count(double value, char text[SF_CLI_UNITS]);
const char *sf_cli_flops(double value, char text[SF_CLI_UNITS]);

/* Messages for a new call. Ends the program when there is no memory even for that. */
sf_diag *sf_cli_diag(void);

/* Whether to use colours on this stream (stdout or stderr). */
bool sf_cli_colour(int fd);

#endif

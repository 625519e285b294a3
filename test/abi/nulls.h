/* Common to the program that nulls.py writes: objects to call functions with, and rows that run in
 * processes of their own, so that a crash is that of one row. */
#include <sheaf/sheaf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP "test/data/micro/mlp-micro.stablehlo.mlir.xz"
#define SIZED(type) ((type){.size = sizeof(type)})

typedef struct row {
    const char *function, *parameter;
    bool (*holds)(void);
    bool slow;
} row;

static sf_graph *graph;
static sf_plan *plan;
static sf_cluster *cluster;
static sf_diag *diag;
static sf_primitives *list;
static sf_sketch *sketch;
static sf_session *session;
static sf_choices *choices;
static sf_solution *solution;
static sf_space *space;
static sf_console *console;
static sf_interrupt *interrupt;
static sf_verify_report *report;
static sf_tune_report *tuned;

static const sf_output nowhere = {.size = sizeof nowhere, .path = "/dev/null"};
static const sf_primitive note = {
    .size = sizeof note, .kind = SF_PRIMITIVE_ANNOTATE, .module = "*", .name = "a", .value = "b"};
static const sf_task task = {.size = sizeof task, .ops = ""};
static const sf_sketch_attr slot = {.size = sizeof slot, .name = "none"};
static const sf_sketch_attr *const attr = &slot;
static sf_calibrate_options hurry = {.size = sizeof hurry, .seconds = 1e-3, .largest = 1 << 12};
static char text[512] = "1";
static const char *const texts[] = {"1", "2"};
static long long room[2048]; /* zeros to read, and to write to */

static int run_kernel(int nin, const sf_kernel_tensor *const *in, int nout,
                      const sf_kernel_tensor *const *out)
{
    (void)nin, (void)in, (void)nout, (void)out;
    return 0;
}

static int apply_user(sf_user_call *call)
{
    (void)call;
    return 0;
}

static const sf_user_kernel kernel = {sizeof kernel, SF_PLUGIN_VERSION, "none", 0, run_kernel};
static const sf_user_primitive primitive = {sizeof primitive, SF_PLUGIN_VERSION, "none", NULL,
                                            apply_user};

static bool take(void *context, const sf_op_view *op)
{
    (void)context, (void)op;
    return false;
}

static sf_status apply(void *context, sf_settings *settings, sf_primitives *made, sf_diag *said)
{
    const sf_primitive mesh = {
        .size = sizeof mesh, .kind = SF_PRIMITIVE_SET, .name = "mesh", .value = "data=2"};
    int64_t number;
    sf_status status = sf_settings_int(settings, "number", 1, 1, 1, said, &number);
    (void)context;
    return status == SF_OK ? sf_primitives_add(made, &mesh, said, NULL) : status;
}

static bool is_refused(sf_status status, const char *message)
{
    sf_diag_entry entry = {.size = sizeof entry};
    return status == SF_EUSAGE && sf_diag_get(diag, 0, &entry) && entry.code == SF_EUSAGE &&
           strstr(entry.text, message);
}

static void must(sf_status status)
{
    if (status == SF_OK)
        return;
    fprintf(stderr, "FAILED: setting up: %s\n", sf_diag_text(diag, 0));
    exit(1);
}

static void set_up(void)
{
    static const int64_t costs[] = {1, 2};
    sf_plan_spec pin = {.size = sizeof pin, .recipe = "dp", .ranks = 2};
    sf_verify_options verify = {.size = sizeof verify, .steps = 1};
    sf_tune_options tune = {.size = sizeof tune};
    sf_session_options alone = {.size = sizeof alone, .threads = 1};
    diag = sf_diag_new();
    interrupt = sf_interrupt_new();
    hurry.interrupt = interrupt;
    must(sf_load(STEP, NULL, diag, &graph));
    must(sf_pin_step(graph, &pin, diag, &plan));
    must(sf_cluster_open("2xV100", diag, &cluster));
    must(sf_primitives_new(graph, diag, &list));
    must(sf_sketch_new(diag, &sketch));
    must(sf_session_open(graph, &alone, diag, &session));
    must(sf_choices_new(diag, &choices));
    must(sf_choices_add_node(choices, 2, costs, diag));
    must(sf_choices_solve(choices, NULL, diag, &solution));
    must(sf_space_new(graph, 2, diag, &space));
    must(sf_verify_plan(graph, plan, &verify, diag, &report));
    tune.cluster = cluster;
    must(sf_tune(graph, apply, NULL, &tune, diag, &tuned));
    if (SF_FEATURE_LUA)
        must(sf_console_new("console", NULL, list, diag, &console));
    sf_diag_clear(diag);
}

/* Each row runs in a process of its own. Nothing that was set up has threads, which a fork would lose. */
static int run_rows(size_t count, const row *rows)
{
    int failed = 0;
    set_up();
    for (size_t i = 0; i < count; i++) {
        int status;
        if (rows[i].slow && !getenv("SHEAF_NIGHTLY"))
            continue;
        pid_t child = fork();
        if (child == 0) {
            alarm(120);
            _exit(rows[i].holds() ? 0 : 2);
        }
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        fprintf(stderr, "FAILED: %s with %s NULL: %s %d\n", rows[i].function, rows[i].parameter,
                WIFEXITED(status) ? "it is not refused," : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        failed++;
    }
    printf("%zu arguments: %s\n", count, failed > 0 ? "FAILED" : "ok");
    return failed > 0;
}

/* Tries to beat the planner by hand: attack_bench [-e EVALUATIONS] [-t SECONDS] [-s SEED] [-m GIB | -f SHARE] [-j] CLUSTER STEP.
 *
 * A plan by hand is a specification: mesh, recipe, pins, stages, schedule, micro-batches, recompute, co-shard, state, passes,
 * kernels. The attacker begins with the returned plan under other passes, with the specification of that plan, whose layouts are
 * pins, and with every recipe. Then it draws specifications, and changes the best that it has seen; each is made by sf_pin_step
 * and simulated as the planner's plan is. It knows nothing of the search. At the end it puts every part of the best
 * specification back to what the planner chose: parts without which the gain is gone are its causes.
 *
 * With -f, a rank has that share of the memory that the fastest recipe takes.
 *
 * Prints a row: step, cluster, the planner's step time and processor seconds, the attacker's best, by how much that is faster,
 * and the causes; then the command that makes the best plan. With -j it prints one object of JSON in one line. Exits with 1 where
 * it is faster by more than 1 %.
 */
#include "attack_attempt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double wins = 0.01; /* share by which it has to be faster */

/* Causes ------------------------------------------------------------------------------------------- */

/* Ranks along the axes of that name, numbers at its end aside: data and data2 are of one kind. */
static int size_of(const attempt *t, const char *name)
{
    int size = 1;
    for (int i = 0; i < t->naxes; i++) {
        size_t length = strlen(t->axes[i].name);
        while (length > 0 && t->axes[i].name[length - 1] >= '0' &&
               t->axes[i].name[length - 1] <= '9')
            length--;
        if (length == strlen(name) && strncmp(t->axes[i].name, name, length) == 0)
            size *= t->axes[i].size;
    }
    return size;
}

static void add_cause(char out[TEXT], const char *name)
{
    size_t used = strlen(out);
    if (!strstr(out, name))
        snprintf(out + used, TEXT - used, "%s%s", used ? "," : "", name);
}

/* How the mesh and what is split over it differ. */
static void compare_space(const attempt *best, const attempt *planned, char out[TEXT])
{
    static const char *const axes[] = {"data", "model", "seq", "expert"};
    size_t used = strlen(out);
    if (size_of(best, SF_PIPE_AXIS) != size_of(planned, SF_PIPE_AXIS) || best->ncuts > 0)
        add_cause(out, "stages");
    if (size_of(best, SF_UNUSED_AXIS) > size_of(planned, SF_UNUSED_AXIS))
        add_cause(out, "fewer devices");
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        if (size_of(best, axes[i]) != size_of(planned, axes[i]))
            add_cause(out, "mesh");
    if (fabs((double)(best->state - planned->state)) > 0.1 * (double)planned->state)
        add_cause(out, "state");
    if (strlen(out) == used)
        add_cause(out, "layouts");
}

/* Whether the gain is gone without the part, or the plan cannot be made. */
static bool is_needed(attack *a, attempt without, double planned)
{
    return !try_attempt(a, &without) || without.seconds > a->best[0].seconds + wins * planned;
}

static void find_causes(attack *a, double planned, char out[TEXT])
{
    const attempt *best = &a->best[0];
    attempt t = a->planned;
    memcpy(t.genes, best->genes, sizeof t.genes);
    *out = '\0';
    if (best->exact) {
        add_cause(out, gene_names[PASSES]);
        return;
    }
    if (is_needed(a, t, planned))
        compare_space(best, &a->planned, out);
    for (int g = 0; g < GENES; g++) {
        t = *best;
        memcpy(t.genes[g], a->planned.genes[g], TEXT);
        if (strcmp(t.genes[g], best->genes[g]) != 0 && is_needed(a, t, planned))
            add_cause(out, g == STATE ? "state" : gene_names[g]);
    }
    if (!*out)
        add_cause(out, "several"); /* no part alone */
}

/* Output ------------------------------------------------------------------------------------------- */

/* The command that makes it. */
static void write_command(const attack *a, const attempt *t, const char *step, const char *cluster,
                          sf_buf *out)
{
    char mesh[TEXT];
    sf_buf stages = {0};
    if (t->exact) {
        char memory[TEXT] = "";
        if (a->memory)
            snprintf(memory, sizeof memory, " -m %lld", (long long)a->memory);
        sf_buf_printf(out, "sheaf plan %s -c %s --margin 0%s -o plan.json; ", step, cluster,
                      memory);
        sf_buf_printf(out, "sheaf sim plan.json -c %s%s --passes %s", cluster, memory,
                      t->genes[PASSES]);
        return;
    }
    write_mesh(t, mesh);
    write_stages(a, t, &stages);
    sf_buf_printf(out, "sheaf pin %s -c %s --mesh %s", step, cluster, mesh);
    if (a->memory)
        sf_buf_printf(out, " -m %lld", (long long)a->memory);
    if (stages.length > 0)
        sf_buf_printf(out, " --stages %s", stages.text);
    for (int g = 0; g < GENES; g++)
        if (said(t, (gene)g) && (g != SCHEDULE || stages.length > 0))
            sf_buf_printf(out, " --%s %s", gene_names[g], t->genes[g]);
    if (*t->recipe)
        sf_buf_printf(out, " --recipe %s", t->recipe);
    for (int i = 0; i < t->npins; i++)
        sf_buf_printf(out, " --pin '%s'", t->pins[i]);
    for (int i = 0; t->own && i < a->own.count; i++)
        sf_buf_printf(out, " --pin '%s'", a->own.at[i]);
    sf_buf_puts(out, " -o plan.json");
    sf_buf_free(&stages);
}

static int fail(sf_diag *diag)
{
    fprintf(stderr, "%s\n", sf_diag_text(diag, 0));
    return 2;
}

static void print_json(const attack *a, const char *step, const char *cluster, double planned,
                       double planning, double gain, const char *causes, const char *command)
{
    sf_buf text = {0};
    sf_json_writer json = {.buf = &text};
    char mesh[TEXT];
    write_mesh(&a->planned, mesh);
    sf_json_begin_object(&json);
    sf_json_add_string(&json, "step", step);
    sf_json_add_string(&json, "cluster", cluster);
    sf_json_add_int(&json, "memory", a->memory);
    sf_json_add_string(&json, "mesh", mesh);
    sf_json_add_double(&json, "planned", planned < HUGE_VAL ? planned : -1);
    sf_json_add_double(&json, "by_pins", a->planned.seconds < HUGE_VAL ? a->planned.seconds : -1);
    sf_json_add_double(&json, "planning", planning);
    sf_json_add_double(&json, "found", a->count ? a->best[0].seconds : -1);
    sf_json_add_double(&json, "gain", gain);
    sf_json_add_string(&json, "causes", causes);
    sf_json_add_int(&json, "tried", a->tried);
    sf_json_add_int(&json, "made", a->made);
    sf_json_add_int(&json, "fit", a->fitted);
    sf_json_add_string(&json, "command", command);
    for (int g = 0; g < GENES; g++)
        sf_json_add_string(&json, gene_names[g], a->planned.genes[g]);
    sf_json_end_object(&json);
    printf("%s\n", text.text);
    sf_buf_free(&text);
}

int main(int argc, char **argv)
{
    static attack a = {.random = 1};
    int evaluations = 120, option;
    double seconds = HUGE_VAL, share = 0;
    bool json = false;
    while ((option = getopt(argc, argv, "e:t:s:m:f:j")) != -1)
        switch (option) {
        case 'e':
            evaluations = atoi(optarg);
            break;
        case 't':
            seconds = atof(optarg);
            break;
        case 's':
            a.random = ((uint64_t)atoll(optarg) + 1) * 2654435761u;
            break;
        case 'm':
            a.memory = (int64_t)(atof(optarg) * (1 << 30));
            break;
        case 'f':
            share = atof(optarg);
            break;
        case 'j':
            json = true;
            break;
        default:
            return 2;
        }
    if (argc - optind != 2) {
        fprintf(stderr, "usage: attack_bench [-e EVALUATIONS] [-t SECONDS] [-s SEED] [-m GIB | -f "
                        "SHARE] [-j] CLUSTER STEP\n");
        return 2;
    }
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_graph *graph;
    sf_plan *plan = NULL;
    const char *step = argv[optind + 1], *slash = strrchr(step, '/');
    if (sf_cluster_open(argv[optind], diag, &cluster) != SF_OK ||
        sf_load(step, NULL, diag, &graph) != SF_OK)
        return fail(diag);
    a.graph = graph;
    a.cluster = cluster;
    a.ranks = cluster->ndevices;
    list_recipes(&a);
    list_names(&a);
    if (share > 0)
        a.memory = find_limit(&a, share);
    double begin = processor_seconds();
    sf_plan_options options = {
        .size = sizeof options, .cluster = cluster, .margin = -1, .threads = 1};
    sf_plan_spec spec = {.size = sizeof spec, .memory = a.memory};
    sf_status status = sf_plan_search(graph, &spec, &options, diag, &plan);
    double planning = processor_seconds() - begin;
    if (status != SF_OK && status != SF_EMISMATCH)
        return fail(diag);
    double planned = plan ? plan->predicted->seconds : HUGE_VAL;
    a.planned.seconds = HUGE_VAL;
    a.plan = plan;
    if (plan)
        take_planned(&a, plan);
    run_attack(&a, evaluations, seconds);
    double found = a.count ? a.best[0].seconds : HUGE_VAL;
    double gain = planned < HUGE_VAL ? 1 - found / planned : found < HUGE_VAL;
    char causes[TEXT] = "";
    sf_buf command = {0};
    if (gain > wins && plan)
        find_causes(&a, planned, causes);
    else if (gain > wins)
        snprintf(causes, TEXT, "nothing found");
    if (a.count)
        write_command(&a, &a.best[0], step, argv[optind], &command);
    if (json)
        print_json(&a, step, argv[optind], planned, planning, gain, causes,
                   command.text ? command.text : "");
    else
        printf("%-24.24s %-14s %10.3f ms %7.1f s %10.3f ms %+6.1f %%  %d tried, %d made, %d fit, "
               "%.1f s  %s\n  %s\n",
               slash ? slash + 1 : step, argv[optind], 1e3 * planned, planning, 1e3 * found,
               100 * gain, a.tried, a.made, a.fitted, processor_seconds() - begin - planning,
               causes, command.text ? command.text : "");
    sf_buf_free(&command);
    for (texts *const *t = (texts *const[]){&a.recipes, &a.patterns, &a.layers, &a.own, NULL}; *t;
         t++)
        free_texts(*t);
    sf_plan_free(plan);
    sf_graph_free(graph);
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    return gain > wins;
}

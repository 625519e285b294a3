/* Tries to beat the planner by hand: attack_bench [-e EVALUATIONS] [-s SEED] [-m MEMORY] CLUSTER STEP.
 *
 * A plan by hand is a specification: mesh, recipe, stages, schedule, micro-batches, recompute, co-shard, state, passes. The
 * attacker draws specifications, and those near the best that it has seen, and has each made by sf_pin_step and simulated as the
 * planner's plan is. It knows nothing of the search. Prints a row: step, cluster, the planner's step time and processor seconds, the
 * attacker's best, by how much that is faster, and its specification. Exits with 1 where it is faster by more than 1 %.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "ir/graph.h"
#include "plan/pipeline/schedules.h"
#include "plan/plan.h"
#include "plan/recipe/recipe.h"
#include "run/runner.h"
#include "search/price/price.h"
#include "sheaf/sheaf.h"

enum { MOST_CHOICES = 64, TEXT = 64, GENES = 8, ELITE = 8, MOST_AXES = 4 };

typedef enum gene { RECIPE, STAGES, SCHEDULE, MICRO, RECOMPUTE, CHUNKS, STATE, PASSES } gene;

static const char *const gene_names[GENES] = {"recipe",        "stages",    "schedule",
                                              "micro-batches", "recompute", "co-shard",
                                              "shard-state",   "passes"};

/* The values of each gene; "" is that nothing is said. */
typedef struct choices {
    int count[GENES];
    char text[GENES][MOST_CHOICES][TEXT];
} choices;

typedef struct attempt {
    int value[GENES];
    unsigned cut; /* which way to divide the ranks among the axes */
    double seconds;
    int64_t memory;
    char mesh[TEXT];
} attempt;

typedef struct attack {
    const sf_graph *graph;
    const sf_cluster *cluster;
    int ranks;
    int64_t memory;
    choices choices;
    uint64_t random;
    attempt best[ELITE];
    int count, made, fitted;
} attack;

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned draw(attack *a, unsigned below)
{
    a->random ^= a->random << 13;
    a->random ^= a->random >> 7;
    a->random ^= a->random << 17;
    return below ? (unsigned)(a->random >> 11) % below : 0;
}

/* Choices ------------------------------------------------------------------------------------------ */

static void add_choice(choices *c, gene g, const char *text)
{
    if (c->count[g] < MOST_CHOICES)
        snprintf(c->text[g][c->count[g]++], TEXT, "%s", text);
}

static void add_recipes(choices *c)
{
    char text[TEXT];
    for (int i = 0; sf_recipe_name(i); i++)
        add_choice(c, RECIPE, sf_recipe_name(i));
    static const char *const first[] = {"megatron", "sequence", "expert", "2d"};
    static const char *const second[] = {"dp", "zero1", "zero2", "zero3"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        for (size_t k = 0; k < sizeof second / sizeof *second; k++) {
            snprintf(text, sizeof text, "%s+%s", first[i], second[k]);
            add_choice(c, RECIPE, text);
        }
}

static void add_powers(choices *c, gene g, int most)
{
    char text[TEXT];
    add_choice(c, g, "");
    for (int n = 2; n <= most; n *= 2) {
        snprintf(text, sizeof text, "%d", n);
        add_choice(c, g, text);
    }
}

static void add_all(choices *c, gene g, const char *const *texts)
{
    for (int i = 0; texts[i]; i++)
        add_choice(c, g, texts[i]);
}

static void list_choices(choices *c, int ranks)
{
    add_recipes(c);
    add_powers(c, STAGES, ranks < 16 ? ranks : 16);
    add_all(c, SCHEDULE,
            (const char *const[]){"", "gpipe", "1f1b", "interleaved:2", "interleaved:4", "zb-h1",
                                  "zb-v", "dualpipe", "chimera", NULL});
    add_powers(c, MICRO, 64);
    add_all(c, RECOMPUTE,
            (const char *const[]){"none", "text", "cheap", "layer", "layer:2", "layer:4", "parts",
                                  NULL});
    add_powers(c, CHUNKS, 8);
    add_all(c, STATE, (const char *const[]){"", "full", "between", NULL});
    add_all(c, PASSES,
            (const char *const[]){"", "overlap", "fsdp,prefetch", "fsdp,prefetch,unshard",
                                  "defer-gradient-readers", NULL});
}

/* Attempts ----------------------------------------------------------------------------------------- */

static const char *text_of(const attack *a, const attempt *t, gene g)
{
    const char *text = a->choices.text[g][t->value[g]];
    return *text ? text : NULL;
}

/* Divides the ranks that are left among the axes, by the digits of `cut`. */
static bool write_mesh(const attack *a, attempt *t)
{
    const char *axes[MOST_AXES];
    int naxes = 0, rest = a->ranks,
        stages = text_of(a, t, STAGES) ? atoi(text_of(a, t, STAGES)) : 1;
    char names[TEXT], *state = NULL;
    size_t used = 0;
    if (rest % stages)
        return false;
    rest /= stages;
    if (stages > 1)
        used += (size_t)snprintf(t->mesh, TEXT, "pipe=%d", stages);
    snprintf(names, sizeof names, "%s", text_of(a, t, RECIPE));
    for (char *name = strtok_r(names, "+", &state); name; name = strtok_r(NULL, "+", &state)) {
        const char *const *of = sf_recipe_axes(name);
        for (int i = 0; of && of[i] && naxes < MOST_AXES; i++) {
            bool known = false;
            for (int k = 0; k < naxes; k++)
                known = known || strcmp(axes[k], of[i]) == 0;
            if (!known)
                axes[naxes++] = of[i];
        }
    }
    unsigned cut = t->cut;
    for (int i = 0; i < naxes; i++) {
        int size = rest;
        if (i + 1 < naxes) {
            int powers = 1;
            while (rest % (1 << powers) == 0)
                powers++;
            size = 1 << cut % (unsigned)powers;
            cut /= (unsigned)powers;
        }
        rest /= size;
        used += (size_t)snprintf(t->mesh + used, TEXT - used, "%s%s=%d", used ? "," : "", axes[i],
                                 size);
    }
    return naxes > 0;
}

/* Makes the plan and simulates it; false where it cannot be made or does not fit. */
static bool try_attempt(attack *a, attempt *t)
{
    sf_diag *diag = sf_diag_new();
    sf_arena arena = {0};
    sf_plan *plan = NULL;
    sf_costs *costs;
    sf_price price;
    bool good = write_mesh(a, t);
    sf_plan_spec spec = {.size = sizeof spec,
                         .mesh = t->mesh,
                         .recipe = text_of(a, t, RECIPE),
                         .stages = text_of(a, t, STAGES),
                         .schedule = text_of(a, t, STAGES) ? text_of(a, t, SCHEDULE) : NULL,
                         .micro_batches = text_of(a, t, MICRO) ? atoi(text_of(a, t, MICRO)) : 0,
                         .recompute = text_of(a, t, RECOMPUTE),
                         .co_shard = text_of(a, t, CHUNKS),
                         .shard_state = text_of(a, t, STATE)};
    good = good && sf_pin_step(a->graph, &spec, diag, &plan) == SF_OK;
    const char *passes = text_of(a, t, PASSES);
    if (good && (passes || *sf_plan_passes_of(plan)))
        good = sf_plan_use_passes(plan, passes ? passes : sf_plan_passes_of(plan), a->cluster,
                                  a->memory, diag) == SF_OK;
    good = good && sf_mesh_costs(a->cluster, &plan->mesh, &arena, diag, &costs) == SF_OK &&
           sf_price_plan(a->graph, plan, sf_cluster_target(a->cluster), costs, NULL, NULL, diag,
                         &price) == SF_OK;
    if (good) {
        a->made++;
        t->seconds = price.seconds;
        t->memory = price.memory;
        good = price.memory <= (a->memory ? a->memory : price.room);
        a->fitted += good;
    }
    sf_plan_free(plan);
    sf_arena_free(&arena);
    sf_diag_free(diag);
    return good;
}

static void keep(attack *a, const attempt *t)
{
    int at = a->count;
    for (int i = 0; i < a->count; i++)
        if (a->best[i].seconds == t->seconds)
            return;
    while (at > 0 && a->best[at - 1].seconds > t->seconds)
        at--;
    if (at == ELITE)
        return;
    if (a->count < ELITE)
        a->count++;
    memmove(a->best + at + 1, a->best + at, (size_t)(a->count - at - 1) * sizeof *t);
    a->best[at] = *t;
}

/* Half of the attempts are near one of the best: one or two genes of it are drawn anew. */
static attempt next_attempt(attack *a)
{
    attempt t = {.cut = draw(a, 1u << 16)};
    bool near = a->count > 0 && draw(a, 3) > 0;
    if (near)
        t = a->best[draw(a, (unsigned)a->count)];
    for (int g = 0; g < GENES && !near; g++)
        t.value[g] = draw(a, 2) ? (int)draw(a, (unsigned)a->choices.count[g]) : 0;
    for (unsigned n = 1 + draw(a, 2); near && n > 0; n--) {
        unsigned g = draw(a, GENES + 1);
        if (g == GENES)
            t.cut = draw(a, 1u << 16);
        else
            t.value[g] = (int)draw(a, (unsigned)a->choices.count[g]);
    }
    return t;
}

static void run_attack(attack *a, int evaluations)
{
    for (int r = 0; r < a->choices.count[RECIPE]; r++) {
        attempt t = {.value = {[RECIPE] = r}, .cut = draw(a, 1u << 16)};
        if (try_attempt(a, &t))
            keep(a, &t);
    }
    for (int i = 0; i < 4 * evaluations && a->made < evaluations; i++) {
        attempt t = next_attempt(a);
        if (try_attempt(a, &t))
            keep(a, &t);
    }
}

static void print_attempt(const attack *a, const attempt *t)
{
    printf("  --mesh %s", t->mesh);
    for (int g = 0; g < GENES; g++)
        if (text_of(a, t, (gene)g))
            printf(" --%s %s", gene_names[g], text_of(a, t, (gene)g));
    printf("\n");
}

static int fail(sf_diag *diag)
{
    fprintf(stderr, "%s\n", sf_diag_text(diag, 0));
    return 2;
}

int main(int argc, char **argv)
{
    attack a = {.random = 1};
    int evaluations = 200, option;
    while ((option = getopt(argc, argv, "e:s:m:")) != -1)
        switch (option) {
        case 'e':
            evaluations = atoi(optarg);
            break;
        case 's':
            a.random = (uint64_t)atoll(optarg) * 2654435761u + 1;
            break;
        case 'm':
            a.memory = (int64_t)(atof(optarg) * (1 << 30));
            break;
        default:
            return 2;
        }
    if (argc - optind != 2) {
        fprintf(stderr, "usage: attack_bench [-e EVALUATIONS] [-s SEED] [-m GIB] CLUSTER STEP\n");
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
    list_choices(&a.choices, a.ranks);
    double begin = processor_seconds(), planning;
    sf_plan_options options = {.size = sizeof options, .cluster = cluster, .margin = -1};
    sf_plan_spec spec = {.size = sizeof spec, .memory = a.memory};
    sf_status status = sf_plan_search(graph, &spec, &options, diag, &plan);
    planning = processor_seconds() - begin;
    if (status != SF_OK && status != SF_EMISMATCH)
        return fail(diag);
    double planned = plan ? plan->predicted->seconds : HUGE_VAL;
    run_attack(&a, evaluations);
    double found = a.count ? a.best[0].seconds : HUGE_VAL;
    double gain = planned < HUGE_VAL ? 1 - found / planned : found < HUGE_VAL;
    printf("%-24.24s %-14s %10.3f ms %7.1f s %10.3f ms %+6.1f %%  %d made, %d fit, %.1f s",
           slash ? slash + 1 : step, argv[optind], 1e3 * planned, planning, 1e3 * found, 100 * gain,
           a.made, a.fitted, processor_seconds() - begin - planning);
    if (a.count)
        print_attempt(&a, &a.best[0]);
    else
        printf("\n");
    sf_plan_free(plan);
    sf_graph_free(graph);
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    return gain > 0.01;
}

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
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "cluster/cluster.h"
#include "ir/graph.h"
#include "ir/name.h"
#include "plan/pin.h"
#include "plan/pipeline/schedules.h"
#include "plan/plan.h"
#include "plan/recipe/recipe.h"
#include "run/runner.h"
#include "search/price/price.h"
#include "sheaf/sheaf.h"

enum { TEXT = 160, ELITE = 8, SEEN = 1 << 12, MOST_PINS = 6, MOST_CUTS = 64, AXIS = 24 };
static const double wins = 0.01; /* share by which it has to be faster */

/* The parts of a specification that are texts from a list; "" is that nothing is said. */
typedef enum gene { SCHEDULE, MICRO, RECOMPUTE, CHUNKS, STATE, PASSES, KERNELS, GENES } gene;

static const char *const gene_names[GENES] = {
    "schedule", "micro-batches", "recompute", "co-shard", "shard-state", "passes", "kernels"};

static const char *const choices[GENES][24] = {
    [SCHEDULE] = {"", "gpipe", "1f1b", "interleaved:2", "interleaved:3", "interleaved:4", "zb-h1",
                  "zb-v", "dualpipe", "chimera", "search:1", "search:2", NULL},
    [MICRO] = {"", "2", "3", "4", "5", "6", "8", "10", "12", "16", "24", "32", "48", "64", NULL},
    [RECOMPUTE] = {"", "none", "cheap", "layer", "layer:2", "layer:4", "full", "parts", NULL},
    [CHUNKS] = {"", "2", "4", "8", "sequence:2", "sequence:4", "expert:2", NULL},
    [STATE] = {"", "full", "between", NULL},
    [PASSES] = {"", "none", "overlap", "defer-gradient-readers", "overlap,defer-gradient-readers",
                "fsdp,prefetch", "fsdp,prefetch,unshard", "fsdp,prefetch,balance", "fsdp,unshard",
                "fsdp,unshard,prefetch,defer-gradient-readers", "fsdp,prefetch,unshard,overlap",
                "prefetch", "offload", "offload:recompute=1", NULL},
    [KERNELS] = {"", "none", "all", NULL},
};

typedef struct axis {
    char name[AXIS];
    int size;
} axis;

/* Pins come first, then those of the planner's layouts, if it has them, then the recipe. */
typedef struct attempt {
    int naxes;
    axis axes[SF_MAX_AXES];
    char recipe[TEXT];
    bool own;   /* it has the layouts of the returned plan, as pins */
    bool exact; /* it is the returned plan, with other passes */
    int npins;
    char pins[MOST_PINS][TEXT];
    int ncuts; /* scopes that begin stages, by their number; 0: stages are a count */
    int cuts[MOST_CUTS];
    char genes[GENES][TEXT];
    double seconds;
    int64_t memory,
        state; /* bytes of a rank: at its peak, and of parameters and state of the optimizer */
} attempt;

typedef struct texts {
    int count;
    char **at;
} texts;

typedef struct attack {
    const sf_graph *graph;
    const sf_cluster *cluster;
    const sf_plan *plan; /* that the planner returned */
    int ranks;
    int64_t memory;
    uint64_t random;
    texts recipes, patterns, layers, own; /* layers: scopes that are counted, in their order */
    uint64_t seen[SEEN];                  /* hashes of specifications */
    attempt planned;                      /* the specification of the returned plan */
    attempt best[ELITE];
    int count, tried, made, fitted;
} attack;

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int draw(attack *a, int below)
{
    a->random ^= a->random << 13;
    a->random ^= a->random >> 7;
    a->random ^= a->random << 17;
    return below > 0 ? (int)((a->random >> 11) % (uint64_t)below) : 0;
}

static void add_text(texts *t, const char *text)
{
    t->at = realloc(t->at, (size_t)(t->count + 1) * sizeof *t->at);
    char *copy = t->at ? strdup(text) : NULL;
    if (!copy)
        exit(2);
    t->at[t->count++] = copy;
}

static void add_new_text(texts *t, const char *text)
{
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->at[i], text) == 0)
            return;
    add_text(t, text);
}

static void free_texts(texts *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->at[i]);
    free(t->at);
    *t = (texts){0};
}

/* What there is to say ----------------------------------------------------------------------------- */

static void list_recipes(attack *a)
{
    static const char *const first[] = {"megatron", "sequence",          "expert",
                                        "2d",       "megatron+sequence", "expert+megatron"};
    static const char *const second[] = {"dp", "zero1", "zero2", "zero3", "zero1-between"};
    char text[TEXT];
    for (int i = 0; sf_recipe_name(i); i++)
        add_text(&a->recipes, sf_recipe_name(i));
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        for (size_t k = 0; k < sizeof second / sizeof *second; k++) {
            snprintf(text, sizeof text, "%s+%s", first[i], second[k]);
            add_text(&a->recipes, text);
        }
}

/* "layer_12/attn" becomes "layer_??/attn". */
static bool hide_digits(const char *name, char out[TEXT])
{
    if (strlen(name) >= TEXT - 1)
        return false;
    for (; *name; name++)
        *out++ = *name >= '0' && *name <= '9' ? '?' : *name;
    *out = '\0';
    return true;
}

/* The names that pins go by, digits hidden; and the scopes whose first part is counted. */
static void list_names(attack *a)
{
    sf_arena arena = {0};
    char text[TEXT];
    sf_names names = sf_names_of(a->graph, &arena);
    for (const sf_named *n = names.all; n; n = n->next)
        if (hide_digits(n->name, text))
            add_new_text(&a->patterns, text);
    for (size_t i = 0; i < a->graph->top->nnodes; i++) {
        const sf_node *node = a->graph->nodes[a->graph->top->nodes[i]];
        const char *name =
            node->nresults && node->phase == SF_FORWARD ? names.values[node->result] : "";
        size_t length = strcspn(name, "/");
        if (length > 0 && length < TEXT && name[length - 1] >= '0' && name[length - 1] <= '9') {
            snprintf(text, sizeof text, "%.*s", (int)length, name);
            add_new_text(&a->layers, text);
        }
    }
    sf_arena_free(&arena);
}

/* Attempts ----------------------------------------------------------------------------------------- */

static axis *find_axis(attempt *t, const char *name)
{
    for (int i = 0; i < t->naxes; i++)
        if (strcmp(t->axes[i].name, name) == 0)
            return &t->axes[i];
    return NULL;
}

static axis *need_axis(attempt *t, const char *name)
{
    axis *known = find_axis(t, name);
    if (known || t->naxes == SF_MAX_AXES)
        return known;
    known = &t->axes[t->naxes++];
    *known = (axis){.size = 1};
    snprintf(known->name, AXIS, "%s", name);
    return known;
}

static void write_mesh(const attempt *t, char out[TEXT])
{
    size_t used = 0;
    *out = '\0';
    for (int i = 0; i < t->naxes && used < TEXT; i++)
        if (t->axes[i].size > 1)
            used += (size_t)snprintf(out + used, TEXT - used, "%s%s=%d", used ? "," : "",
                                     t->axes[i].name, t->axes[i].size);
    if (!*out)
        snprintf(out, TEXT, "%s=1", t->naxes ? t->axes[0].name : "data");
}

/* A number of stages that suits mesh and schedule, or the scopes that begin them; "": none. */
static void write_stages(const attack *a, const attempt *t, sf_buf *out)
{
    const axis *pipe = find_axis((attempt *)t, SF_PIPE_AXIS);
    sf_diag *diag = sf_diag_new();
    sf_schedule_kind kind;
    const char *schedule = *t->genes[SCHEDULE] ? t->genes[SCHEDULE] : "1f1b";
    if (!pipe || pipe->size < 2)
        sf_buf_puts(out, "");
    else if (t->ncuts > 0)
        for (int i = 0; i < t->ncuts; i++)
            sf_buf_printf(out, "%s%s", i ? "," : "", a->layers.at[t->cuts[i]]);
    else if (sf_schedule_parse(schedule, &kind, diag) == SF_OK)
        sf_buf_printf(out, "%d", (int)sf_schedule_stages(kind, (uint32_t)pipe->size));
    sf_diag_free(diag);
}

static const char *said(const attempt *t, gene g)
{
    return *t->genes[g] ? t->genes[g] : NULL;
}

/* Bytes of parameters and of the optimizer's state on the first rank. */
static int64_t count_state(const attack *a, const sf_plan *plan)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < a->graph->top->narguments; i++) {
        sf_role role = a->graph->arguments[i].role;
        const sf_type *type = sf_argument_type(a->graph, i);
        int64_t parts = 1;
        for (int k = 0; k < plan->mesh.naxes; k++)
            if (plan->arguments[i].axes[k].kind == SF_SPLIT && !sf_plan_pipes(plan, k))
                parts *= plan->mesh.axes[k].size;
        if (role == SF_ROLE_PARAM || role == SF_ROLE_STATE)
            bytes += sf_type_bytes(type) / parts;
    }
    return bytes;
}

static sf_status price(const attack *a, sf_plan *plan, sf_diag *diag, sf_price *out)
{
    sf_arena arena = {0};
    sf_costs *costs;
    sf_status status = sf_mesh_costs(a->cluster, &plan->mesh, &arena, diag, &costs);
    if (status == SF_OK)
        status = sf_price_plan(a->graph, plan, sf_cluster_target(a->cluster), costs, NULL, NULL,
                               diag, out);
    sf_arena_free(&arena);
    return status;
}

/* With passes, which go by the costs of the cluster. */
static sf_status make_plan(const attack *a, const attempt *t, sf_diag *diag, sf_plan **out)
{
    if (t->exact) {
        *out = sf_plan_copy(a->plan, a->graph);
        return sf_plan_use_passes(*out, t->genes[PASSES], a->cluster, a->memory, diag);
    }
    char mesh[TEXT];
    sf_buf stages = {0};
    int npins = t->npins + (t->own ? a->own.count : 0);
    const char **pins = malloc((size_t)(npins + 1) * sizeof *pins);
    if (!pins)
        exit(2);
    for (int i = 0; i < npins; i++)
        pins[i] = i < t->npins ? t->pins[i] : a->own.at[i - t->npins];
    write_mesh(t, mesh);
    write_stages(a, t, &stages);
    bool staged = stages.length > 0;
    sf_plan_spec spec = {.size = sizeof spec,
                         .mesh = mesh,
                         .pins = pins,
                         .npins = npins,
                         .recipe = *t->recipe ? t->recipe : NULL,
                         .stages = staged ? stages.text : NULL,
                         .schedule = staged ? said(t, SCHEDULE) : NULL,
                         .micro_batches = atoi(t->genes[MICRO]),
                         .recompute = said(t, RECOMPUTE),
                         .co_shard = said(t, CHUNKS),
                         .shard_state = said(t, STATE),
                         .kernels = said(t, KERNELS)};
    sf_status status = sf_pin_step(a->graph, &spec, diag, out);
    const char *passes = said(t, PASSES);
    if (status == SF_OK && !passes)
        passes = sf_plan_passes_of(*out);
    if (status == SF_OK && *passes)
        status = sf_plan_use_passes(*out, passes, a->cluster, a->memory, diag);
    sf_buf_free(&stages);
    free(pins);
    return status;
}

/* Makes the plan and simulates it; false where it cannot be made or does not fit. */
static bool try_attempt(attack *a, attempt *t)
{
    sf_diag *diag = sf_diag_new();
    sf_plan *plan = NULL;
    sf_price found;
    bool good = make_plan(a, t, diag, &plan) == SF_OK && price(a, plan, diag, &found) == SF_OK;
    a->tried++;
    if (good) {
        a->made++;
        t->seconds = found.seconds;
        t->memory = found.memory;
        t->state = count_state(a, plan);
        good = found.memory <= (a->memory ? a->memory : found.room);
        a->fitted += good;
    } else if (getenv("ATTACK_TELL"))
        fprintf(stderr, "refused: %s\n", sf_diag_text(diag, 0));
    sf_plan_free(plan);
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

/* Changes ------------------------------------------------------------------------------------------ */

static int least_factor(int n)
{
    for (int f = 2; f * f <= n; f++)
        if (n % f == 0)
            return f;
    return n;
}

/* A prime factor of one axis goes to another; those that are left with 1 are dropped. */
static void move_factor(attack *a, attempt *t, axis *to)
{
    axis *from = &t->axes[draw(a, t->naxes)];
    if (!to || to == from || from->size < 2)
        return;
    int factor = least_factor(from->size);
    from->size /= factor;
    to->size *= factor;
    t->ncuts = 0;
}

static void swap_axes(attack *a, attempt *t)
{
    int i = draw(a, t->naxes), k = draw(a, t->naxes);
    axis one = t->axes[i];
    t->axes[i] = t->axes[k];
    t->axes[k] = one;
}

static void drop_small_axes(attempt *t)
{
    int kept = 0;
    for (int i = 0; i < t->naxes; i++)
        if (t->axes[i].size > 1)
            t->axes[kept++] = t->axes[i];
    t->naxes = kept ? kept : 1;
}

/* All ranks, dealt to the axes of the recipe, and perhaps to stages, or left out. */
static void draw_mesh(attack *a, attempt *t)
{
    char names[TEXT], *state = NULL;
    t->naxes = 0;
    if (draw(a, 3) == 0)
        need_axis(t, SF_PIPE_AXIS);
    if (draw(a, 8) == 0)
        need_axis(t, SF_UNUSED_AXIS);
    snprintf(names, sizeof names, "%s", t->recipe);
    for (char *name = strtok_r(names, "+", &state); name; name = strtok_r(NULL, "+", &state)) {
        const char *const *of = sf_recipe_axes(name);
        for (int i = 0; of && of[i]; i++)
            need_axis(t, of[i]);
    }
    for (int i = 0; t->own && i < a->planned.naxes; i++)
        need_axis(t, a->planned.axes[i].name);
    for (int i = 0; i < t->naxes; i++)
        t->axes[i].size = 1;
    if (t->naxes == 0)
        need_axis(t, "data");
    for (int rest = a->ranks, f; rest > 1; rest /= f) {
        f = least_factor(rest);
        t->axes[draw(a, t->naxes)].size *= f;
    }
    if (draw(a, 2))
        swap_axes(a, t);
}

static void draw_recipe(attack *a, attempt *t)
{
    snprintf(t->recipe, TEXT, "%s", a->recipes.at[draw(a, a->recipes.count)]);
    t->own = false;
    t->npins = 0;
    draw_mesh(a, t);
}

static void draw_gene(attack *a, attempt *t, gene g)
{
    int count = 0;
    while (choices[g][count])
        count++;
    snprintf(t->genes[g], TEXT, "%s", choices[g][draw(a, count)]);
    if (g == SCHEDULE)
        t->ncuts = 0;
}

/* Some tensors along one axis otherwise. */
static void draw_pin(attack *a, attempt *t)
{
    const axis *along = &t->axes[draw(a, t->naxes)];
    const char *pattern = a->patterns.at[draw(a, a->patterns.count)];
    static const char *const shares[] = {"R",    "R",    "S(0)",  "S(0)",  "S(1)",
                                         "S(1)", "S(2)", "S(-1)", "!S(0)", "!S(1)"};
    static const char *const sides[] = {"", "", "", "out:", "back:"};
    const char *side =
        strchr(pattern, '/') && strncmp(pattern, "params/", 7) == 0 ? "" : sides[draw(a, 5)];
    if (t->npins > 0 && (draw(a, 3) == 0 || t->npins == MOST_PINS)) {
        t->npins--;
        memmove(t->pins, t->pins + 1, (size_t)t->npins * sizeof *t->pins);
    } else if (a->patterns.count > 0 && strlen(pattern) < TEXT - 40) {
        memmove(t->pins + 1, t->pins, (size_t)t->npins * sizeof *t->pins);
        t->npins++;
        snprintf(t->pins[0], TEXT, "%s%s=%s@%s", side, pattern, shares[draw(a, 10)], along->name);
    }
}

/* Stages begin at layers: evenly, then one border moves. */
static void move_cut(attack *a, attempt *t)
{
    sf_buf text = {0};
    int layers = a->layers.count;
    if (t->ncuts == 0) {
        write_stages(a, t, &text);
        int stages = text.length ? atoi(text.text) : 0;
        sf_buf_free(&text);
        if (stages < 2 || stages > MOST_CUTS || stages > layers)
            return;
        t->ncuts = stages - 1;
        for (int i = 0; i < t->ncuts; i++)
            t->cuts[i] = (i + 1) * layers / stages;
    }
    int i = draw(a, t->ncuts), to = t->cuts[i] + (draw(a, 2) ? 1 : -1);
    if (to > (i > 0 ? t->cuts[i - 1] : 0) && to < (i + 1 < t->ncuts ? t->cuts[i + 1] : layers))
        t->cuts[i] = to;
}

static void change(attack *a, attempt *t)
{
    t->exact = false;
    static const char *const more_axes[] = {SF_PIPE_AXIS, SF_PIPE_AXIS, SF_UNUSED_AXIS, "data",
                                            "model"};
    switch (draw(a, 16)) {
    case 0:
    case 1:
        move_factor(a, t, &t->axes[draw(a, t->naxes)]);
        break;
    case 2:
        move_factor(a, t, need_axis(t, more_axes[draw(a, 5)]));
        break;
    case 3:
        swap_axes(a, t);
        break;
    case 4:
        draw_recipe(a, t);
        break;
    case 5:
        draw_mesh(a, t);
        t->ncuts = 0;
        break;
    case 6:
    case 7:
        draw_pin(a, t);
        break;
    case 8:
        move_cut(a, t);
        break;
    case 9:
        draw_gene(a, t, MICRO);
        break;
    default:
        draw_gene(a, t, (gene)draw(a, GENES));
    }
    drop_small_axes(t);
}

static uint64_t hash_attempt(const attempt *t)
{
    uint64_t hash = 1469598103934665603u;
    char mesh[TEXT];
    write_mesh(t, mesh);
    const char *parts[3 + MOST_PINS + GENES] = {mesh, t->recipe,
                                                t->exact ? "exact"
                                                : t->own ? "own"
                                                         : ""};
    for (int i = 0; i < GENES; i++)
        parts[3 + i] = t->genes[i];
    for (int i = 0; i < MOST_PINS; i++)
        parts[3 + GENES + i] = i < t->npins ? t->pins[i] : "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *c = parts[i]; c == parts[i] || c[-1]; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (int i = 0; i < t->ncuts; i++)
        hash = (hash ^ (uint64_t)(t->cuts[i] + 1)) * 1099511628211u;
    return hash ? hash : 1;
}

static bool is_new(attack *a, const attempt *t)
{
    uint64_t hash = hash_attempt(t);
    for (size_t at = hash % SEEN, n = 0; n < SEEN; n++, at = (at + 1) % SEEN)
        if (a->seen[at] == hash) {
            return false;
        } else if (a->seen[at] == 0) {
            a->seen[at] = hash;
            return true;
        }
    return true;
}

/* One in five is drawn anew; the others have one to three changes of one of the best, the better the more often. */
static attempt next_attempt(attack *a)
{
    attempt t = {0};
    if (a->count > 0 && draw(a, 5) > 0) {
        t = a->best[draw(a, 1 + draw(a, a->count))];
        for (int n = 1 + draw(a, 3); n > 0; n--)
            change(a, &t);
        return t;
    }
    draw_recipe(a, &t);
    for (int g = 0; g < GENES; g++)
        if (draw(a, 4) == 0)
            draw_gene(a, &t, (gene)g);
    return t;
}

/* Every recipe on a mesh that is drawn; as long as fewer plans than that are made. */
static void try_recipes(attack *a, int most)
{
    for (int r = 0; r < a->recipes.count && a->made < most; r++) {
        attempt t = {0};
        snprintf(t.recipe, TEXT, "%s", a->recipes.at[r]);
        draw_mesh(a, &t);
        drop_small_axes(&t);
        if (is_new(a, &t) && try_attempt(a, &t))
            keep(a, &t);
    }
}

/* A share of the memory that the fastest of the recipes takes: no search has a part in that. */
static int64_t find_limit(const attack *a, double share)
{
    attack *known = malloc(sizeof *known);
    if (!known)
        exit(2);
    *known = *a;
    try_recipes(known, INT_MAX);
    int64_t memory = known->count ? known->best[0].memory : 0;
    free(known);
    return (int64_t)(share * (double)memory);
}

static void run_attack(attack *a, int evaluations, double seconds)
{
    double end = processor_seconds() + seconds;
    try_recipes(a, evaluations / 4);
    for (int i = 0; i < 40 * evaluations && a->made < evaluations && processor_seconds() < end;
         i++) {
        attempt t = next_attempt(a);
        if (is_new(a, &t) && try_attempt(a, &t))
            keep(a, &t);
    }
}

/* The returned plan -------------------------------------------------------------------------------- */

/* Part `index` of a layout as text, "[R, S(0)]". */
static bool take_share(const char *layout, int index, char out[TEXT])
{
    int depth = 0;
    size_t used = 0;
    for (const char *c = layout + 1; *c && used + 1 < TEXT; c++) {
        depth += (*c == '(') - (*c == ')');
        if (depth == 0 && (*c == ',' || *c == ']')) {
            if (index-- == 0) {
                out[used] = '\0';
                return true;
            }
        } else if (index == 0 && *c != ' ')
            out[used++] = *c;
    }
    return false;
}

/* A name and its share along an axis, the digits of the name hidden. */
typedef struct named_share {
    const char *name;
    char pattern[TEXT], share[32];
    bool agrees, is_first; /* all of this pattern have the share; it is the first of them */
} named_share;

static int by_pattern(const void *x, const void *y)
{
    const named_share *a = x, *b = y;
    int order = strcmp(a->pattern, b->pattern);
    return order ? order : strcmp(a->name, b->name);
}

/* Whether all of a pattern agree, once they are sorted. */
static void compare_shares(named_share *shares, size_t count)
{
    qsort(shares, count, sizeof *shares, by_pattern);
    for (size_t first = 0, end; first < count; first = end) {
        bool agrees = true;
        for (end = first; end < count && strcmp(shares[end].pattern, shares[first].pattern) == 0;
             end++)
            agrees = agrees && strcmp(shares[end].share, shares[first].share) == 0;
        for (size_t i = first; i < end; i++)
            shares[i].agrees = agrees, shares[i].is_first = i == first;
    }
}

static named_share name_share(const char *name, const char *layout, int along)
{
    named_share s = {.name = name};
    char share[TEXT];
    if (hide_digits(name, s.pattern) && take_share(layout, along, share) &&
        strlen(share) < sizeof s.share)
        memcpy(s.share, share, strlen(share) + 1);
    return s;
}

/* Pins of all arguments along an axis: one for each pattern where its arguments agree. */
static void pin_arguments(attack *a, const sf_plan *plan, int along, const char **names)
{
    size_t count = a->graph->top->narguments;
    named_share *shares = calloc(count + 1, sizeof *shares);
    char layout[SF_LAYOUT_TEXT], text[2 * TEXT];
    if (!shares)
        exit(2);
    for (size_t i = 0; i < count; i++)
        if (sf_plan_argument_layout(plan, a->graph, (int)i, layout))
            shares[i] = name_share(names[i], layout, along);
    compare_shares(shares, count);
    for (size_t i = 0; i < count; i++)
        if (*shares[i].share && (!shares[i].agrees || shares[i].is_first)) {
            snprintf(text, sizeof text, "/%s=%s@%s",
                     shares[i].agrees ? shares[i].pattern : shares[i].name, shares[i].share,
                     plan->mesh.axes[along].name);
            add_text(&a->own, text);
        }
    free(shares);
}

/* Pins of the scopes in which all that the forward pass computes has one share. */
static void pin_scopes(attack *a, const sf_plan *plan, int along)
{
    sf_arena arena = {0};
    sf_names names = sf_names_of(a->graph, &arena);
    const sf_block *top = a->graph->top;
    size_t count = 0;
    named_share *shares = calloc(top->nnodes + 1, sizeof *shares);
    char text[2 * TEXT];
    if (!shares)
        exit(2);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = a->graph->nodes[top->nodes[i]];
        sf_buf layout = {0};
        if (node->phase != SF_FORWARD || node->nresults == 0 || !plan->nodes[node->id] ||
            !names.is_scope[node->result] || !*names.values[node->result])
            continue;
        const sf_type *type = sf_type_of(a->graph, node->result);
        if (type->rank == 0)
            continue;
        sf_layout_print(&plan->nodes[node->id][node->noperands], &plan->mesh, type->rank,
                        type->dims, &layout);
        shares[count++] = name_share(names.values[node->result], layout.text, along);
        sf_buf_free(&layout);
    }
    compare_shares(shares, count);
    for (size_t i = 0; i < count; i++)
        if (shares[i].agrees && shares[i].is_first &&
            (*shares[i].share == 'R' || *shares[i].share == 'S')) {
            snprintf(text, sizeof text, "/%s=%s@%s", shares[i].pattern, shares[i].share,
                     plan->mesh.axes[along].name);
            add_text(&a->own, text);
        }
    free(shares);
    sf_arena_free(&arena);
}

/* The specification of the plan, as near as it can be said: its recipe, or pins of all arguments. */
static void take_planned(attack *a, const sf_plan *plan)
{
    attempt *t = &a->planned;
    sf_arena arena = {0};
    const char **names = sf_clean_names(a->graph, &arena);
    snprintf(t->recipe, TEXT, "%s", plan->recipe);
    t->own = !*plan->recipe;
    t->naxes = plan->mesh.naxes;
    for (int i = 0; i < plan->mesh.naxes; i++) {
        snprintf(t->axes[i].name, AXIS, "%s", plan->mesh.axes[i].name);
        t->axes[i].size = plan->mesh.axes[i].size;
        if (!sf_plan_pipes(plan, i))
            pin_arguments(a, plan, i, names);
    }
    for (int i = 0; i < plan->mesh.naxes; i++) {
        if (!sf_plan_pipes(plan, i))
            pin_scopes(a, plan, i);
    }
    if (plan->pipeline && *plan->pipeline->name)
        snprintf(t->genes[SCHEDULE], TEXT, "%s", plan->pipeline->name);
    else if (plan->pipeline)
        snprintf(t->genes[SCHEDULE], TEXT, "search:%d",
                 (int)plan->pipeline->stages.count / plan->mesh.axes[plan->pipeline->axis].size);
    if (plan->micro_batches > 1)
        snprintf(t->genes[MICRO], TEXT, "%d", plan->micro_batches);
    bool is_open = strcmp(plan->recompute, "auto") == 0; /* a choice that only a search makes */
    if (!is_open)
        snprintf(t->genes[RECOMPUTE], TEXT, "%s", *plan->recompute ? plan->recompute : "none");
    if (plan->nco_shards == 1 && *plan->co_shards->by != '#')
        snprintf(t->genes[CHUNKS], TEXT, "%s:%d", plan->co_shards->by, plan->co_shards->chunks);
    if (plan->passes.list && *plan->passes.list)
        snprintf(t->genes[PASSES], TEXT, "%s", plan->passes.list);
    t->seconds = HUGE_VAL;
    if (try_attempt(a, t) && is_new(a, t))
        keep(a, t);
    for (int i = 1; is_open && choices[RECOMPUTE][i]; i++) {
        attempt other = *t;
        snprintf(other.genes[RECOMPUTE], TEXT, "%s", choices[RECOMPUTE][i]);
        if (try_attempt(a, &other) && is_new(a, &other))
            keep(a, &other);
    }
    for (int i = 1; choices[PASSES][i]; i++) {
        attempt other = *t;
        other.exact = true;
        snprintf(other.genes[PASSES], TEXT, "%s", choices[PASSES][i]);
        if (try_attempt(a, &other) && is_new(a, &other))
            keep(a, &other);
    }
    sf_arena_free(&arena);
}

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

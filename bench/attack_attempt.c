#include "attack_attempt.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/pin.h"
#include "plan/pipeline/schedules.h"
#include "plan/recipe/recipe.h"
#include "run/runner.h"
#include "search/price/price.h"

const char *const gene_names[GENES] = {"schedule",    "micro-batches", "recompute", "co-shard",
                                       "shard-state", "passes",        "kernels"};

const char *const choices[GENES][24] = {
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

double processor_seconds(void)
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

void add_text(texts *t, const char *text)
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

void free_texts(texts *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->at[i]);
    free(t->at);
    *t = (texts){0};
}

/* What there is to say ----------------------------------------------------------------------------- */

void list_recipes(attack *a)
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

bool hide_digits(const char *name, char out[TEXT])
{
    if (strlen(name) >= TEXT - 1)
        return false;
    for (; *name; name++)
        *out++ = *name >= '0' && *name <= '9' ? '?' : *name;
    *out = '\0';
    return true;
}

void list_names(attack *a)
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

void write_mesh(const attempt *t, char out[TEXT])
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

void write_stages(const attack *a, const attempt *t, sf_buf *out)
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

const char *said(const attempt *t, gene g)
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

bool try_attempt(attack *a, attempt *t)
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

void keep(attack *a, const attempt *t)
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

bool is_new(attack *a, const attempt *t)
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

int64_t find_limit(const attack *a, double share)
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

void run_attack(attack *a, int evaluations, double seconds)
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

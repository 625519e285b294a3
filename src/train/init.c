#include "train/init.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "ir/name.h"
#include "train/init_fan.h"
#include "train/random_draw.h"

/* The standard deviation of a normal distribution cut off at two of its own. */
static const double truncated_deviation = 0.87962566103423978;

struct recipe {
    sf_init_kind kind; /* CONSTANT, NORMAL, TRUNCATED or UNIFORM */
    double scale;
};

/* Rules that speak of fans, in numbers. */
static struct recipe recipe_of(const sf_graph *graph, uint32_t index, sf_init_rule rule)
{
    struct recipe recipe = {rule.kind, rule.scale};
    if (rule.kind == SF_INIT_FAN_IN || rule.kind == SF_INIT_HE || rule.kind == SF_INIT_XAVIER) {
        sf_fan fan = sf_fan_of(graph, index);
        bool xavier = rule.kind == SF_INIT_XAVIER;
        recipe.kind = xavier ? SF_INIT_UNIFORM : SF_INIT_TRUNCATED;
        recipe.scale *= xavier                    ? sqrt(6 / (fan.in + fan.out))
                        : rule.kind == SF_INIT_HE ? sqrt(2 / fan.in)
                                                  : sqrt(1 / fan.in);
    }
    if (recipe.kind == SF_INIT_TRUNCATED)
        recipe.scale /= truncated_deviation;
    return recipe;
}

static void draw_some(const struct recipe *recipe, const sf_draw *draw, uint64_t first,
                      int64_t count, double *out)
{
    bool is_normal = recipe->kind == SF_INIT_NORMAL || recipe->kind == SF_INIT_TRUNCATED;
    if (is_normal)
        sf_draw_normals(draw, first, count, recipe->kind == SF_INIT_TRUNCATED ? 2 : 0, out);
    for (int64_t i = 0; i < count; i++) {
        if (recipe->kind == SF_INIT_UNIFORM)
            out[i] = 2 * sf_draw_uniform(draw, first + (uint64_t)i) - 1;
        out[i] =
            is_normal || recipe->kind == SF_INIT_UNIFORM ? recipe->scale * out[i] : recipe->scale;
    }
}

/* Of a complex number both parts are drawn, so that its absolute value has the requested standard
 * deviation; a constant is real. */
static void make_complex(const struct recipe *recipe, int64_t count, double *parts)
{
    for (int64_t i = 0; i < count; i++) {
        if (recipe->kind == SF_INIT_CONSTANT)
            parts[i] = i % 2 ? 0 : parts[i];
        else
            parts[i] *= sqrt(0.5);
    }
}

/* One run of a shard, as threads fill it. */
typedef struct filling {
    struct recipe recipe;
    sf_draw draw;
    sf_dtype dtype; /* the type of an element, or of its two parts */
    int parts;
    char *data;
    int64_t global, local;
} filling;

static void fill_part(void *context, int thread, int64_t first, int64_t end)
{
    enum { CHUNK = 256 };
    const filling *f = context;
    double values[2 * CHUNK];
    (void)thread;
    for (int64_t at = first; at < end; at += CHUNK) {
        int64_t count = (end - at < CHUNK ? end - at : CHUNK) * f->parts;
        draw_some(&f->recipe, &f->draw, (uint64_t)((f->global + at) * f->parts), count, values);
        if (f->parts == 2)
            make_complex(&f->recipe, count, values);
        sf_store_f64s(f->dtype, f->data, (f->local + at) * f->parts, count, values);
    }
}

void sf_init_fill(const sf_graph *graph, uint32_t index, const char *name, sf_init_rule rule,
                  uint64_t seed, sf_runs runs, sf_threads *threads, const sf_tensor *tensor)
{
    enum { GRAIN = 1 << 12 };
    filling f = {.recipe = recipe_of(graph, index, rule),
                 .draw = sf_draw_of(seed, SF_DRAW_INIT, sf_hash_bytes(0, name, strlen(name))),
                 .dtype = sf_part_of(tensor->type->dtype),
                 .parts = sf_parts_of(tensor->type->dtype),
                 .data = tensor->data};
    while (sf_runs_next(&runs)) {
        f.global = runs.global;
        f.local = runs.local;
        sf_threads_run(threads, runs.count, GRAIN, fill_part, &f);
    }
}

/* A key that the step carries along; words past the first two repeat them, as JAX's wide keys do. */
static void fill_key(const sf_tensor *tensor, uint64_t seed)
{
    uint32_t key[2];
    sf_jax_key(seed, key);
    for (int64_t i = 0; i < tensor->type->count; i++)
        sf_store_i64(tensor->type->dtype, tensor->data, i, key[i % 2]);
}

static sf_status check_patterns(const sf_init_rules *rules, const char *const *used, sf_diag *diag)
{
    for (int i = 0; i < rules->count; i++)
        if (rules->at[i].pattern && !used[i])
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                           "no parameter is called '%s', or an "
                           "earlier pattern matches all that are",
                           rules->at[i].pattern);
    return SF_OK;
}

/* All but keys and arguments with rules. */
static bool begins_with_zeros(const sf_graph *graph, uint32_t index)
{
    sf_role role = graph->arguments[index].role;
    return role != SF_ROLE_KEY &&
           (role != SF_ROLE_PARAM || !sf_is_inexact(sf_argument_type(graph, index)->dtype));
}

/* used[k] is set when rule k was. */
static void init_argument(const sf_rank_shards *shards, uint32_t index, const char *name,
                          const sf_init_rules *rules, uint64_t seed, sf_threads *threads,
                          const char **used, const sf_tensor *shard)
{
    const sf_graph *graph = shards->graph;
    if (graph->arguments[index].role == SF_ROLE_KEY) {
        fill_key(shard, seed);
        return;
    }
    sf_init_rule rule = sf_init_choose(graph, index, name, rules);
    for (int k = 0; k < rules->count; k++)
        if (rule.pattern && rule.pattern == rules->at[k].pattern)
            used[k] = name;
    sf_init_fill(graph, index, name, rule, seed, sf_rank_shards_runs(shards, index), threads,
                 shard);
}

sf_status sf_init_random(const sf_rank_shards *shards, const char *const *names,
                         const sf_init_rules *rules, uint64_t seed, sf_threads *threads,
                         const sf_holder *holder, sf_diag *diag)
{
    const sf_graph *graph = shards->graph;
    sf_arena scratch = {0};
    const char **used = SF_ARRAY(&scratch, rules->count, const char *);
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < graph->top->narguments && status == SF_OK; i++) {
        sf_tensor shard;
        if (!sf_argument_is_kept(&graph->arguments[i]))
            continue;
        if (begins_with_zeros(graph, i)) {
            status = sf_holder_clear(holder, i, diag);
            continue;
        }
        status = sf_holder_lend(holder, i, true, diag, &shard);
        if (status != SF_OK)
            break;
        init_argument(shards, i, names[i], rules, seed, threads, used, &shard);
        status = sf_holder_give_back(holder, i, diag);
    }
    if (status == SF_OK)
        status = check_patterns(rules, used, diag);
    sf_arena_free(&scratch);
    return status;
}

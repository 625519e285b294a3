/* The search over open choices of a space: recipes for unsplit nodes and recompute, if these are
 * not given; the order of tasks is found for each. All possible plans are lowered and simulated,
 * and the fastest that fits is taken. */
#include <string.h>

#include "api/cluster_price.h"
#include "api/primitive/primitives.h"
#include "sheaf/pass.h"

typedef struct looking {
    const sf_primitives *list;
    const sf_plan_spec *spec;
    const sf_plan_options *options;
    sf_diag *diag;
    sf_arena arena;
    sf_plan *best;
    sf_price price; /* of the best */
    size_t nalternatives, capacity;
    sf_alternative *alternatives; /* all that can be */
    sf_diag failed;               /* why the first cannot */
} looking;

static const char *keep(sf_arena *arena, const char *text)
{
    return sf_arena_string(arena, text, strlen(text));
}

static void keep_alternative(looking *l, const char *recipe, const sf_plan *plan,
                             const sf_price *price, bool fits)
{
    sf_buf mesh = {0};
    sf_mesh_print(&plan->mesh, &mesh);
    sf_alternative made = {.name = keep(&l->arena, recipe ? recipe : "space"),
                           .mesh = keep(&l->arena, mesh.text ? mesh.text : ""),
                           .seconds = price->seconds,
                           .memory = price->memory,
                           .fits = fits,
                           .lowered = true};
    sf_buf_free(&mesh);
    SF_PUSH(&l->arena, l->alternatives, l->nalternatives, l->capacity, made);
}

/* One combination of the open choices. Impossible ones are left out. */
static void try_choice(looking *l, const char *recipe, const char *recompute)
{
    sf_plan_spec spec = *l->spec;
    sf_plan *plan = NULL;
    sf_price price;
    sf_diag own = {0};
    spec.recipe = recipe ? recipe : spec.recipe;
    spec.recompute = recompute;
    spec.passes = NULL; /* the plan that is taken has them */
    sf_status status = sf_pin_space(l->list, &spec, &own, &plan);
    if (status == SF_OK)
        status = sf_cluster_price(l->list->graph, plan, l->options->cluster, &own, &price);
    if (status != SF_OK) {
        if (l->failed.count == 0) {
            l->failed = own;
            own = (sf_diag){0};
        }
        sf_diag_clear(&own);
        sf_plan_free(plan);
        return;
    }
    sf_diag_clear(&own); /* of warnings */
    int64_t room = l->spec->memory > 0 ? l->spec->memory : price.room;
    bool fits = room == 0 || price.memory <= room;
    keep_alternative(l, recipe, plan, &price, fits);
    if (fits && (!l->best || price.seconds < l->price.seconds)) {
        sf_plan_free(l->best);
        l->best = plan;
        l->price = price;
    } else {
        sf_plan_free(plan);
    }
}

static void try_recipe(looking *l, const char *recipe)
{
    static const char *const ways[] = {"none", "cheap", "layer"};
    if (l->spec->recompute) {
        try_choice(l, recipe, l->spec->recompute);
        return;
    }
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        try_choice(l, recipe, ways[w]);
}

/* The best of each recipe and mesh, the fastest first. */
static void put_alternatives(const looking *l, sf_plan *plan, sf_prediction *out)
{
    out->alternatives = SF_ARRAY(&plan->arena, l->nalternatives, sf_alternative);
    for (size_t i = 0; i < l->nalternatives; i++) {
        sf_alternative new = l->alternatives[i];
        int at = out->nalternatives++;
        new.name = keep(&plan->arena, new.name);
        new.mesh = keep(&plan->arena, new.mesh);
        for (; at > 0 && out->alternatives[at - 1].seconds > new.seconds; at--)
            out->alternatives[at] = out->alternatives[at - 1];
        out->alternatives[at] = new;
    }
}

static void predict(const looking *l, sf_plan *plan)
{
    const sf_cluster *cluster = l->options->cluster;
    const char *name = l->options->cluster_name;
    sf_prediction *made = SF_NEW(&plan->arena, sf_prediction);
    *made = (sf_prediction){.step = "",
                            .cluster = name ? keep(&plan->arena, name) : "",
                            .nodes = "",
                            .cluster_hash = sf_cluster_hash(cluster),
                            .cluster_file = cluster->origin,
                            .seconds = l->price.seconds,
                            .compute = l->price.compute,
                            .exposed = l->price.exposed,
                            .hidden = l->price.hidden,
                            .traffic = l->price.traffic,
                            .memory = l->price.memory,
                            .limit = l->spec->memory > 0 ? l->spec->memory : l->price.room};
    if (cluster->origin.path)
        made->cluster_file.path = keep(&plan->arena, cluster->origin.path);
    put_alternatives(l, plan, made);
    plan->predicted = made;
}

static sf_status fail_unfit(looking *l)
{
    if (l->nalternatives > 0)
        return sf_fail(l->diag, SF_EMISMATCH, SF_NOWHERE,
                       "none of the %zu plans that the space leaves open fits into the memory of a "
                       "rank",
                       l->nalternatives);
    const sf_message *why = &l->failed.messages[0];
    sf_fail(l->diag, why->status, why->loc, "%s", why->text ? why->text : "the space has no plan");
    return why->hint ? sf_hint(l->diag, "%s", why->hint) : why->status;
}

sf_status sf_search_space(const sf_primitives *list, const sf_plan_spec *spec,
                          const sf_plan_options *options, sf_diag *diag, sf_plan **out)
{
    looking l = {.list = list, .spec = spec, .options = options, .diag = diag};
    try_recipe(&l, NULL);
    for (int i = 0; !spec->recipe && sf_recipe_name(i); i++)
        try_recipe(&l, sf_recipe_name(i));
    sf_status status = l.best ? SF_OK : fail_unfit(&l);
    if (l.best)
        predict(&l, l.best);
    if (l.best && spec->passes)
        status = sf_plan_use_passes(l.best, spec->passes, options->cluster, spec->memory, diag);
    if (status != SF_OK)
        sf_plan_free(l.best);
    *out = status == SF_OK ? l.best : NULL;
    sf_diag_clear(&l.failed);
    sf_arena_free(&l.arena);
    return status;
}

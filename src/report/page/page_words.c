/* A plan in the words that people have for it. */
#include <stdarg.h>
#include <string.h>

#include "plan/recipe/recipe.h"
#include "report/page/page.h"

static void add_word(sf_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add_word(sf_page *page, const char *format, ...)
{
    sf_buf text = {0};
    va_list args;
    va_start(args, format);
    sf_buf_vprintf(&text, format, args);
    va_end(args);
    const char *word = sf_arena_string(&page->sim.arena, text.text, text.length);
    SF_PUSH(&page->sim.arena, page->words, page->nwords, page->word_capacity, word);
    sf_buf_free(&text);
}

/* The name of an axis without the number that distinguishes it from others of its kind. */
static bool is_axis(const char *name, const char *kind)
{
    size_t length = strlen(kind);
    return strncmp(name, kind, length) == 0 &&
           strspn(name + length, "0123456789") == strlen(name + length);
}

static const char *word_of_axis(const char *name)
{
    static const char *const words[][2] = {{"data", "dp"},          {"model", "tp"}, {"seq", "sp"},
                                           {"expert", "ep"},        {"stage", "pp"}, {"pipe", "pp"},
                                           {SF_UNUSED_AXIS, "idle"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_axis(name, words[i][0]))
            return words[i][1];
    return name;
}

static double share_split(const sf_page *page, sf_role role, sf_axes axes)
{
    const sf_graph *graph = page->sim.graph;
    double all = 0, split = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (graph->arguments[i].role != role)
            continue;
        double bytes = (double)sf_type_bytes(sf_argument_type(graph, i));
        all += bytes;
        for (int a = 0; a < page->sim.plan->mesh.naxes; a++)
            if (axes >> a & 1 && page->sim.plan->arguments[i].axes[a].kind == SF_SPLIT) {
                split += bytes;
                break;
            }
    }
    return all > 0 ? split / all : 0;
}

/* Whether most collectives on gradients leave them sharded. */
static bool scatters_gradients(const sf_page *page, sf_axes axes)
{
    const sf_graph *graph = page->sim.graph;
    bool *gradient = SF_ARRAY(&((sf_page *)page)->sim.arena, graph->nvalues, bool);
    double whole = 0, pieces = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            gradient[graph->arguments[i].gradient] = true;
    for (size_t i = 0; i < page->nreshards; i++) {
        const sf_simulated_reshard *reshard = &page->reshards[i];
        if (reshard->value == SF_NONE || !gradient[reshard->value] || !(reshard->axes & axes))
            continue;
        *(reshard->kind == SF_RESHARD_SCATTER ? &pieces : &whole) += reshard->bytes;
    }
    return pieces > whole;
}

/* State sharded along axes that split the batch: most of it, by bytes. A recipe determines the
 * stage; else it is 2 if gradients are reduced directly to shards. */
static void add_zero(sf_page *page)
{
    const sf_plan *plan = page->sim.plan;
    const sf_recipe *named = sf_recipe_of_state(plan->recipe);
    sf_axes data = 0;
    for (int a = 0; a < plan->mesh.naxes; a++)
        if (plan->mesh.axes[a].size > 1 && is_axis(plan->mesh.axes[a].name, "data"))
            data |= 1u << a;
    if (share_split(page, SF_ROLE_PARAM, data) > 0.5)
        add_word(page, "ZeRO-3");
    else if (share_split(page, SF_ROLE_STATE, data) > 0.5)
        add_word(page,
                 (named ? named->gradients && !named->parameters : scatters_gradients(page, data))
                     ? "ZeRO-2"
                     : "ZeRO-1");
}

void sf_page_find_words(sf_page *page)
{
    const sf_plan *plan = page->sim.plan;
    for (int a = 0; a < plan->mesh.naxes; a++)
        if (plan->mesh.axes[a].size > 1)
            add_word(page, "%s %d", word_of_axis(plan->mesh.axes[a].name), plan->mesh.axes[a].size);
    if (page->nwords == 0)
        add_word(page, "one rank");
    add_zero(page);
    if (plan->recomputed)
        add_word(page, "recompute %s", plan->recompute);
    if (plan->micro_batches > 1)
        add_word(page, "%d micro-batches", plan->micro_batches);
    for (int i = 0; i < plan->nco_shards; i++)
        add_word(page, "co-shard %s %d%s%s", plan->co_shards[i].by, plan->co_shards[i].chunks,
                 *plan->co_shards[i].in ? " in " : "", plan->co_shards[i].in);
}

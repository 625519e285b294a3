/* The modules of a step in a plan: time and memory of a rank, and the layouts of their tensors. */
#include <string.h>

#include "ir/name.h"
#include "report/page/page.h"
#include "report/text_index.h"
#include "run/runner.h"

typedef struct scoping {
    sf_page *page;
    sf_arena *arena;
    sf_index paths;      /* of entries, by path */
    const char **names;  /* by argument */
    sf_layout **settled; /* by value: the final layout of a gradient, or NULL: as it is made */
    uint32_t *homes;     /* by argument: an entry */
} scoping;

/* The entry of a scope; the whole step where there is none. */
static uint32_t find_entry(const scoping *s, const char *path)
{
    return sf_index_find(&s->paths, path, 0);
}

/* Time ------------------------------------------------------------------------------------------- */

static void add_times(scoping *s, const sf_program *p, const sf_simulation *sim, double times)
{
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        sf_page_scope *scope = &s->page->scopes[find_entry(s, inst->origin.scope)];
        const sf_timing *t = &sim->insts[i];
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            add_times(s, inst->nest->bodies[b], &sim->bodies[i][b], times * inst->nest->runs[b]);
        if (sf_goes_beside(inst))
            scope->waits += times * t->exposed;
        else if (sf_body_count(inst) == 0)
            scope->seconds += times * (t->end - t->start);
    }
}

/* Tensors ---------------------------------------------------------------------------------------- */

/* An argument is at home where the forward pass first uses it. */
static void find_homes(scoping *s)
{
    const sf_graph *graph = s->page->sim.graph;
    s->homes = SF_ARRAY(s->arena, graph->top->narguments, uint32_t);
    for (uint32_t i = graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t o = 0; o < node->noperands && node->phase == SF_FORWARD; o++) {
            const sf_value_info *value = &graph->values[node->operands[o]];
            if (value->node == SF_NONE)
                s->homes[value->index] = find_entry(s, node->scope->path);
        }
    }
}

/* By argument of the optimizer, the parameter whose name its own ends with; SF_NONE: none. */
static uint32_t *find_owners(scoping *s)
{
    const sf_graph *graph = s->page->sim.graph;
    uint32_t count = graph->top->narguments, *owners = SF_ARRAY(s->arena, count, uint32_t);
    sf_index index = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (graph->arguments[i].role != SF_ROLE_PARAM)
            continue;
        const char *rest = strchr(s->names[i], '/');
        sf_index_add(&index, s->arena, s->names[i], i);
        if (rest)
            sf_index_add(&index, s->arena, rest + 1, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        owners[i] = SF_NONE;
        if (graph->arguments[i].role != SF_ROLE_STATE)
            continue;
        for (const char *at = s->names[i]; at && owners[i] == SF_NONE;
             at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
            owners[i] = sf_index_find(&index, at, SF_NONE);
    }
    return owners;
}

static const char *text_of_type(scoping *s, const sf_type *type)
{
    char text[SF_TYPE_TEXT];
    const char *whole = sf_type_text(type, text);
    size_t length = strlen(whole);
    if (strncmp(whole, "tensor<", 7) == 0) /* which all of them are */
        return sf_arena_string(s->arena, whole + 7, length - 8);
    return sf_arena_string(s->arena, whole, length);
}

static double piece_of_argument(const scoping *s, uint32_t argument)
{
    const sf_sim_report *r = &s->page->sim;
    return sf_shard_bytes(sf_argument_type(r->graph, argument), &r->plan->arguments[argument],
                          &r->plan->mesh);
}

static const char *gradient_layout(scoping *s, sf_value gradient)
{
    sf_page *page = s->page;
    if (gradient == SF_NONE)
        return "";
    const sf_node *maker = sf_maker(page->sim.graph, gradient);
    if (s->settled[gradient])
        return sf_page_layout(page, gradient, s->settled[gradient]);
    if (maker && !page->sim.plan->nodes[maker->id]) /* inside of a loop */
        return "";
    return sf_page_layout(page, gradient,
                          sf_plan_layout(page->sim.plan, page->sim.graph, gradient));
}

static void add_tensors(scoping *s)
{
    sf_page *page = s->page;
    const sf_graph *graph = page->sim.graph;
    const sf_plan *plan = page->sim.plan;
    uint32_t count = graph->top->narguments, *owners = find_owners(s);
    sf_page_tensor *tensors = SF_ARRAY(s->arena, count, sf_page_tensor);
    for (uint32_t i = 0; i < count; i++)
        tensors[i] = (sf_page_tensor){
            .name = sf_page_shown(page, s->names[i]),
            .type = text_of_type(s, sf_argument_type(graph, i)),
            .layout = sf_page_layout(page, graph->top->arguments[i], &plan->arguments[i]),
            .gradient = gradient_layout(s, graph->arguments[i].gradient),
            .state = "",
            .bytes = piece_of_argument(s, i)};
    for (uint32_t i = 0; i < count; i++)
        if (owners[i] != SF_NONE) {
            tensors[owners[i]].state = tensors[i].layout;
            tensors[owners[i]].bytes += tensors[i].bytes;
            s->homes[i] = s->homes[owners[i]];
        }
    for (uint32_t i = 0; i < count; i++) {
        sf_page_scope *home = &page->scopes[s->homes[i]];
        if (graph->arguments[i].role == SF_ROLE_PARAM)
            SF_PUSH(s->arena, home->tensors, home->ntensors, home->capacity, tensors[i]);
    }
}

/* The largest that the forward pass makes in each scope. */
static void find_made(scoping *s)
{
    sf_page *page = s->page;
    const sf_graph *graph = page->sim.graph;
    sf_value *largest = SF_ARRAY(s->arena, page->summary.nscopes, sf_value);
    int64_t *most = SF_ARRAY(s->arena, page->summary.nscopes, int64_t);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != SF_FORWARD || node->nresults == 0 || node->noperands == 0)
            continue;
        uint32_t at = find_entry(s, node->scope->path);
        int64_t bytes = sf_type_bytes(sf_type_of(graph, node->result));
        if (bytes >= most[at]) {
            most[at] = bytes;
            largest[at] = node->result;
        }
    }
    for (uint32_t i = 0; i < page->summary.nscopes; i++) {
        sf_buf text = {0};
        page->scopes[i].made = "";
        if (most[i] == 0)
            continue;
        sf_buf_printf(
            &text, "%s %s", text_of_type(s, sf_type_of(graph, largest[i])),
            sf_page_layout(page, largest[i], sf_plan_layout(page->sim.plan, graph, largest[i])));
        page->scopes[i].made = sf_arena_string(s->arena, text.text, text.length);
        sf_buf_free(&text);
    }
}

/* Memory ----------------------------------------------------------------------------------------- */

static sf_status add_held(scoping *s)
{
    sf_page *page = s->page;
    const sf_graph *graph = page->sim.graph;
    double *held;
    SF_TRY(sf_find_held(graph, page->sim.plan, sf_cluster_target(page->sim.cluster), s->arena,
                        page->diag, &held));
    for (sf_value v = 0; v < graph->nvalues; v++) {
        const sf_node *maker = sf_maker(graph, v);
        if (!(held[v] > 0))
            continue;
        uint32_t at = maker ? find_entry(s, maker->scope->path) : s->homes[graph->values[v].index];
        page->scopes[at].held += held[v];
    }
    return SF_OK;
}

static void sum_upwards(sf_page *page)
{
    for (uint32_t i = page->summary.nscopes; i-- > 1;) {
        sf_page_scope *above = &page->scopes[page->summary.scopes[i].parent];
        const sf_page_scope *scope = &page->scopes[i];
        above->seconds += scope->seconds;
        above->waits += scope->waits;
        above->held += scope->held;
    }
    /* Values of no module, and of a loop over micro-batches, belong to the step. */
    page->scopes[0].held = (double)page->sim.price.memory;
}

sf_status sf_page_find_scopes(sf_page *page)
{
    const sf_graph *graph = page->sim.graph;
    scoping s = {.page = page, .arena = &page->sim.arena};
    page->scopes = SF_ARRAY(s.arena, page->summary.nscopes, sf_page_scope);
    s.names = sf_clean_names(graph, s.arena);
    s.settled = SF_ARRAY(s.arena, graph->nvalues, sf_layout *);
    for (size_t i = 0; i < page->nreshards; i++)
        if (page->reshards[i].phase != SF_UPDATE && !page->reshards[i].inner)
            s.settled[page->reshards[i].value] = &page->reshards[i].after;
    for (uint32_t i = 0; i < page->summary.nscopes; i++)
        sf_index_add(&s.paths, s.arena, page->summary.scopes[i].scope->path, i);
    find_homes(&s);
    add_tensors(&s);
    find_made(&s);
    add_times(&s, page->sim.program, &page->sim.sim, 1);
    SF_TRY(add_held(&s));
    sum_upwards(page);
    return SF_OK;
}

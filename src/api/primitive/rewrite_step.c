#include "api/primitive/rewrite_step.h"

#include "base/mem.h"
#include "front/close_regions.h"
#include "front/duplicate_cheap.h"
#include "front/phase.h"
#include "front/remat.h"
#include "ir/canon.h"
#include "ir/clone.h"
#include "ir/opdef.h"

enum { DEEPEST = 2000 };

/* How far a part has come. */
enum { WAITING, BEGUN, BUILT };

typedef struct rewriting {
    const sf_graph *from;
    sf_graph *to;
    sf_value *map; /* by value of `from`: its replacement, or SF_NONE */
    int *part_of;  /* by value of `from`: the part that makes it, or -1 */
    int *part_for; /* by node of `from`: the part that makes a value for it alone, or -1; */
    sf_value *other_of, *made_for; /* in the place of which, and that value */
    int *state;                    /* by part */
    const sf_part *parts;
    int depth;
    sf_arena scratch;
    sf_diag *diag;
} rewriting;

static sf_status need(rewriting *r, sf_value value);
static sf_status build_part(rewriting *r, int number);

static sf_status fail_at(const rewriting *r, const sf_part *part, const char *what)
{
    return sf_fail(r->diag, SF_EMISMATCH, part->loc, "%s", what);
}

static sf_status check_types(const rewriting *r, const sf_part *part, const sf_value *made)
{
    char before[SF_TYPE_TEXT], after[SF_TYPE_TEXT];
    for (int i = 0; i < part->noutputs; i++) {
        const sf_type *old = sf_type_of(r->from, part->outputs[i]),
                      *new = sf_type_of(r->to, made[i]);
        if (old != new)
            return sf_fail(r->diag, SF_EMISMATCH, part->loc,
                           "the replacement makes %s as its result %d, in place of %s",
                           sf_type_text(new, after), i + 1, sf_type_text(old, before));
    }
    return SF_OK;
}

static sf_status build_part(rewriting *r, int number)
{
    const sf_part *part = &r->parts[number];
    sf_value *inputs = SF_ARRAY(&r->scratch, part->ninputs + 1, sf_value);
    sf_value *made = SF_ARRAY(&r->scratch, part->noutputs + 1, sf_value);
    if (r->state[number] == BEGUN)
        return fail_at(
            r, part, "what the subgraph makes goes back into it: its ends cannot be made together");
    r->state[number] = BEGUN;
    for (int i = 0; i < part->ninputs; i++) {
        SF_TRY(need(r, part->inputs[i]));
        inputs[i] = r->map[part->inputs[i]];
    }
    const sf_scope *scope = part->scope;
    if (part->name)
        scope = sf_scope_child(r->to->pool, scope, sf_str_of(part->name));
    sf_emitter emitter = {.graph = r->to,
                          .block = r->to->top,
                          .scope = scope,
                          .phase = part->phase,
                          .loc = part->loc,
                          .slice_length = -1};
    SF_TRY(part->build(part->context, &emitter, inputs, r->diag, made));
    SF_TRY(check_types(r, part, made));
    for (int i = 0; i < part->noutputs; i++) {
        if (part->readers && part->readers[i] != SF_NONE)
            r->made_for[part->readers[i]] = made[i];
        else
            r->map[part->outputs[i]] = made[i];
    }
    r->state[number] = BUILT;
    return SF_OK;
}

static sf_status copy_node(rewriting *r, const sf_node *node)
{
    for (uint32_t i = 0; i < node->noperands; i++)
        SF_TRY(need(r, node->operands[i]));
    int part = r->part_for[node->id];
    if (part < 0) {
        sf_node_clone(r->from, node, r->to, r->to->top, r->map);
        return SF_OK;
    }
    if (r->state[part] != BUILT)
        SF_TRY(build_part(r, part));
    sf_value *place = &r->map[r->other_of[node->id]], kept = *place;
    *place = r->made_for[node->id];
    sf_node_clone(r->from, node, r->to, r->to->top, r->map);
    *place = kept;
    return SF_OK;
}

/* Makes the counterpart of the value. */
static sf_status need(rewriting *r, sf_value value)
{
    if (r->map[value] != SF_NONE)
        return SF_OK;
    if (r->depth >= DEEPEST)
        return sf_fail(r->diag, SF_EMISMATCH, SF_NOWHERE,
                       "the subgraph reaches too far: its ends are %d ops apart", DEEPEST);
    r->depth++;
    sf_status status = SF_OK;
    if (r->part_of[value] >= 0)
        status = build_part(r, r->part_of[value]);
    else
        status = copy_node(r, sf_maker(r->from, value));
    r->depth--;
    return status;
}

static sf_status copy_all(rewriting *r)
{
    const sf_block *top = r->from->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        r->map[top->arguments[i]] =
            sf_block_argument(r->to, r->to->top, sf_type_of(r->from, top->arguments[i]));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(r->from, i);
        bool replaced = r->part_of[node->result] >= 0;
        if (node->nresults == 0 || (!replaced && r->map[node->result] == SF_NONE))
            SF_TRY(copy_node(r, node));
        else if (replaced)
            SF_TRY(need(r, node->result));
    }
    sf_value *results = SF_ARRAY(&r->scratch, top->nresults, sf_value);
    for (uint32_t i = 0; i < top->nresults; i++) {
        SF_TRY(need(r, top->results[i]));
        results[i] = r->map[top->results[i]];
    }
    sf_block_return(r->to, r->to->top, top->nresults, results);
    return SF_OK;
}

/* As import does. */
static sf_graph *arrange(rewriting *r)
{
    sf_value *roots;
    sf_graph_clone_head(r->from, r->to);
    sf_graph_merge(r->to, NULL, NULL);
    sf_graph_prune(r->to);
    size_t nroots = sf_find_phases(r->to, &r->scratch, &roots);
    sf_graph_unshare(r->to);
    sf_settle_again(r->to);
    sf_graph_arrange(r->to, nroots, roots);
    sf_graph_close(r->to);
    sf_graph_prune(r->to);
    return sf_graph_clone(r->to);
}

static void prepare(rewriting *r, int nparts)
{
    const sf_graph *from = r->from;
    r->map = SF_ARRAY(&r->scratch, from->nvalues, sf_value);
    r->part_of = SF_ARRAY(&r->scratch, from->nvalues, int);
    r->state = SF_ARRAY(&r->scratch, nparts + 1, int);
    for (size_t v = 0; v < from->nvalues; v++) {
        r->map[v] = SF_NONE;
        r->part_of[v] = -1;
    }
    r->part_for = SF_ARRAY(&r->scratch, from->nnodes, int);
    r->other_of = SF_ARRAY(&r->scratch, from->nnodes, sf_value);
    r->made_for = SF_ARRAY(&r->scratch, from->nnodes, sf_value);
    for (size_t n = 0; n < from->nnodes; n++)
        r->part_for[n] = -1;
    for (int p = 0; p < nparts; p++)
        for (int i = 0; i < r->parts[p].noutputs; i++) {
            uint32_t reader = r->parts[p].readers ? r->parts[p].readers[i] : SF_NONE;
            if (reader == SF_NONE) {
                r->part_of[r->parts[p].outputs[i]] = p;
            } else {
                r->part_for[reader] = p;
                r->other_of[reader] = r->parts[p].outputs[i];
            }
        }
}

sf_status sf_rewrite(const sf_graph *graph, int nparts, const sf_part *parts, sf_diag *diag,
                     sf_graph **out)
{
    sf_pool *pool = sf_pool_derive(graph->pool);
    rewriting r = {.from = graph, .to = sf_graph_new(pool), .parts = parts, .diag = diag};
    *out = NULL;
    prepare(&r, nparts);
    sf_status status = copy_all(&r);
    if (status == SF_OK) {
        *out = arrange(&r);
        (*out)->reading = graph->reading;
    }
    sf_graph_free(r.to);
    sf_pool_release(pool);
    sf_arena_free(&r.scratch);
    return status;
}

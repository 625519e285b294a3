#include "search/price/price_attention.h"

#include "op/attention.h"
#include "op/slots.h"
#include "sim/instruction_work.h"

enum { QUERIES = 2, KEYS = 3 }; /* dimensions of scores: [batch, head, query, key] */

static bool is_attention(const sf_program *program, uint32_t inst)
{
    if (inst >= program->ninsts || program->insts[inst].kind != SF_INST_CALL)
        return false;
    int id = (int)program->insts[inst].call->op.def->id;
    return id == SF_ATTENTION || id == SF_ATTENTION_GRADIENT;
}

static sf_attending attending_of(const sf_graph *graph, const sf_target *target, const sf_op *op)
{
    const sf_type *q = op->in[0];
    return (sf_attending){.dtype = q->dtype,
                          .queries = q->dims[1],
                          .keys = op->in[1]->dims[1],
                          .depth = q->dims[3],
                          .causal = sf_op_int(op, SF_ATTENTION_CAUSAL, 0) != 0,
                          .offset = sf_op_int(op, SF_ATTENTION_OFFSET, 0),
                          .rounds = target->rounds,
                          .asked = graph->kernels == SF_KERNELS_ALL};
}

typedef struct seeing {
    const sf_program *program;
    const sf_trace *trace;
    sf_efforts *out;
} seeing;

/* Whether the value is scores, or what follows from them place by place, and made by such an op. */
static bool is_scores(const seeing *s, sf_value value, const sf_op *op)
{
    const sf_graph *graph = s->out->graph;
    const sf_node *maker = sf_maker(graph, value);
    const sf_type *type = sf_type_of(graph, value), *q = op->in[0];
    return maker && is_attention(s->program, s->trace->insts[maker->id]) && type->rank == 4 &&
           type->dims[0] == q->dims[0] && type->dims[1] == q->dims[2] &&
           type->dims[QUERIES] == q->dims[1] && type->dims[KEYS] == op->in[1]->dims[1];
}

/* A product has scores on one side: it makes them, or reads them. */
static void see_node(const seeing *s, const sf_node *node)
{
    const sf_op *op = &s->program->insts[s->trace->insts[node->id]].call->op;
    uint32_t *scores = &s->out->nodes[node->id].scores;
    for (uint32_t o = 0; o < node->noperands && o < 32; o++)
        if (is_scores(s, node->operands[o], op))
            *scores |= 1u << o;
    if (sf_is(node, SF_OP_DOT_GENERAL) && *scores)
        return;
    for (uint32_t r = 0; r < node->nresults && node->noperands + r < 32; r++)
        if (is_scores(s, node->result + r, op))
            *scores |= 1u << (node->noperands + r);
}

/* What the op does, by nodes: products have equal parts of its products, others of the rest by what they would do. */
static void deal_work(const seeing *s, const uint32_t *nodes, uint32_t count, const sf_inst *inst)
{
    sf_effort all = sf_inst_effort(inst);
    double products = 0, rest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const sf_node_effort *e = &s->out->nodes[nodes[i]];
        products += e->product;
        rest += e->product ? 0 : e->flops;
    }
    for (uint32_t i = 0; i < count; i++) {
        sf_node_effort *e = &s->out->nodes[nodes[i]];
        if (e->flops > 0)
            e->flops = e->product ? all.flops / products : e->flops * all.vector / rest;
    }
}

bool sf_see_attention(const sf_program *program, const sf_trace *trace, sf_efforts *efforts,
                      sf_arena *arena)
{
    seeing s = {program, trace, efforts};
    const sf_graph *graph = efforts->graph;
    uint32_t *nodes = SF_ARRAY(arena, graph->top->nnodes + 1, uint32_t);
    bool any = false;
    efforts->attending = SF_ARRAY(arena, program->ninsts + 1, sf_attending);
    for (uint32_t inst = 0; inst < program->ninsts; inst++) {
        uint32_t count = 0;
        if (!is_attention(program, inst))
            continue;
        any = true;
        efforts->attending[inst] =
            attending_of(graph, program->target, &program->insts[inst].call->op);
        for (uint32_t i = 0; i < graph->top->nnodes; i++)
            if (trace->insts[graph->top->nodes[i]] == inst) {
                see_node(&s, sf_top_node(graph, i));
                nodes[count++] = graph->top->nodes[i];
            }
        deal_work(&s, nodes, count, &program->insts[inst]);
    }
    return any;
}

/* By how much queries are cut; 0: the scores are no op's. */
static int64_t parts_of_queries(const sf_layout *layout, const sf_mesh *mesh,
                                const sf_attending *all)
{
    int64_t parts = 1;
    for (int axis = 0; axis < mesh->naxes; axis++) {
        sf_share share = layout->axes[axis];
        if (mesh->axes[axis].size == 1 || share.kind == SF_REPLICATED ||
            (share.kind == SF_SPLIT && share.dim < QUERIES))
            continue;
        if (share.kind == SF_PARTIAL || share.dim == KEYS ||
            share.period * parts != all->queries) /* places that do not follow each other */
            return 0;
        parts *= sf_share_parts(share, mesh->axes[axis].size);
    }
    return parts;
}

bool sf_keeps_attention(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                        const sf_mesh *mesh, double *share)
{
    const sf_node_effort *whole = &efforts->nodes[node->id];
    *share = 1;
    if (whole->scores == 0)
        return true;
    const sf_attending *all = &efforts->attending[whole->inst];
    const sf_layout *layout = &layouts[__builtin_ctz(whole->scores)];
    for (uint32_t t = 0; t < 32 && t < node->noperands + node->nresults; t++)
        if (whole->scores >> t & 1 && !sf_layout_equal(layout, &layouts[t]))
            return false;
    int64_t parts = parts_of_queries(layout, mesh, all);
    if (parts <= 1)
        return parts == 1;
    sf_attending last = *all;
    last.queries /= parts;
    last.offset += all->queries - last.queries;
    if (all->causal)
        *share = sf_attention_sees(last.queries, last.keys, last.offset) /
                 sf_attention_sees(all->queries, all->keys, all->offset);
    return efforts->target->attends(&last);
}

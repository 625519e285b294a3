#include "support/ranks.h"

#include <string.h>

#include "base/mem.h"
#include "op/body.h"
#include "op/eval.h"
#include "op/node_builder.h"
#include "op/slots.h"
#include "op/util.h"
#include "support/pieces.h"

static sf_tensor new_tensor(const sf_type *type)
{
    return (sf_tensor){.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
}

static void copy_element(sf_tensor *to, int64_t at, const sf_tensor *from, int64_t i)
{
    size_t width = sf_dtype_get(to->type->dtype)->bytes;
    memcpy((char *)to->data + (size_t)at * width, (const char *)from->data + (size_t)i * width,
           width);
}

/* The words of an element, as many as it has parts. */
static void store_words(sf_tensor *tensor, int64_t i, const sf_word *words)
{
    sf_dtype part = sf_part_of(tensor->type->dtype);
    int parts = sf_parts_of(tensor->type->dtype);
    for (int p = 0; p < parts; p++)
        if (sf_is_float(part))
            sf_store_f64(part, tensor->data, i * parts + p, words[p].real);
        else
            sf_store_i64(part, tensor->data, i * parts + p, (int64_t)words[p].integer);
}

static void load_words(const sf_tensor *tensor, int64_t i, sf_word *words)
{
    for (int p = 0; p < 2; p++)
        if (sf_is_inexact(tensor->type->dtype))
            words[p].real = test_get_part(tensor, i, p);
        else
            words[p].integer = (uint64_t)sf_get_i64(tensor, i);
}

static void store_identity(sf_tensor *tensor, int64_t i, sf_monoid monoid)
{
    sf_word words[2];
    sf_words_identity(monoid, tensor->type->dtype, words);
    store_words(tensor, i, words);
}

/* The flat index in the whole of each element of a piece. */
static int64_t global_of(const sf_layout *layout, const sf_mesh *mesh, int rank,
                         const sf_type *whole, const int64_t *index)
{
    int64_t flat = 0;
    for (int d = 0; d < whole->rank; d++)
        flat = flat * whole->dims[d] +
               sf_layout_global(layout, mesh, rank, d, whole->dims[d], index[d]);
    return flat;
}

/* What the ranks that are not the first along some partial axis have: small numbers that depend on the
 * element and on those coordinates. Booleans have no negative ones. */
static int64_t spread(sf_dtype dtype, int64_t flat, int place)
{
    return place && dtype != SF_PRED ? (flat * 7 + place * 5) % 4 - 1 : 0;
}

/* Element i of `out`: element `flat` of the whole, or this rank's part of it. */
static void cut_element(const sf_tensor *whole, int64_t flat, const sf_layout *layout,
                        const sf_mesh *mesh, int rank, sf_tensor *out, int64_t i)
{
    sf_axes partial = 0;
    sf_monoid monoid = SF_MONOID_NONE;
    for (int a = 0; a < mesh->naxes; a++)
        if (layout->axes[a].kind == SF_PARTIAL) {
            partial |= 1u << a;
            monoid = layout->axes[a].monoid;
        }
    sf_dtype dtype = whole->type->dtype;
    int place = sf_group_place(mesh, partial, rank);
    if (place && monoid != SF_MONOID_ADD) {
        store_identity(out, i, monoid);
    } else if (!partial || monoid != SF_MONOID_ADD) {
        copy_element(out, i, whole, flat);
    } else {
        int64_t part = spread(dtype, flat, place);
        for (int p = 1; !place && p < sf_group_size(mesh, partial); p++)
            part -= spread(dtype, flat, p);
        sf_word words[2] = {{0}, {0}};
        if (!place)
            load_words(whole, flat, words);
        for (int p = 0; p < 2; p++)
            if (sf_is_inexact(dtype))
                words[p].real += (double)part;
            else
                words[p].integer += (uint64_t)part;
        store_words(out, i, words);
    }
}

sf_tensor test_cut(const sf_tensor *whole, const sf_layout *layout, const sf_mesh *mesh, int rank,
                   sf_pool *pool)
{
    int64_t dims[SF_MAX_RANK], index[SF_MAX_RANK] = {0};
    const sf_type *type = whole->type;
    if (!sf_layout_is_held(layout, mesh, rank)) {
        dims[0] = 0;
        return new_tensor(sf_type_get(pool, type->dtype, 1, dims));
    }
    sf_layout_dims(layout, mesh, type->rank, type->dims, dims);
    sf_tensor out = new_tensor(sf_type_get(pool, type->dtype, type->rank, dims));
    for (int64_t i = 0; i < out.type->count; i++) {
        cut_element(whole, global_of(layout, mesh, rank, type, index), layout, mesh, rank, &out, i);
        sf_next_index(type->rank, dims, index);
    }
    return out;
}

static void combine_element(sf_monoid monoid, sf_tensor *to, int64_t at, const sf_tensor *from,
                            int64_t i)
{
    sf_dtype dtype = to->type->dtype;
    sf_word a[2], b[2];
    load_words(to, at, a);
    load_words(from, i, b);
    sf_words_combine(monoid,
                     sf_is_complex(dtype) ? SF_C128
                     : sf_is_float(dtype) ? SF_F64
                                          : dtype,
                     a, b);
    store_words(to, at, a);
}

sf_tensor test_join(const sf_tensor *pieces, const sf_layout *layout, const sf_mesh *mesh, int like,
                    const sf_type *type)
{
    sf_tensor out = new_tensor(type);
    bool *written = sf_alloc((size_t)type->count);
    for (int rank = 0; rank < sf_mesh_size(mesh); rank++) {
        sf_monoid monoid = SF_MONOID_NONE;
        bool taken = sf_layout_is_held(layout, mesh, rank);
        for (int a = 0; a < mesh->naxes; a++) {
            if (layout->axes[a].kind == SF_PARTIAL)
                monoid = layout->axes[a].monoid;
            int at = sf_mesh_coordinate(mesh, like, a);
            if (!sf_share_is_held(layout->axes[a], at))
                at = __builtin_ctzll(layout->axes[a].on);
            if (layout->axes[a].kind == SF_REPLICATED)
                taken = taken && sf_mesh_coordinate(mesh, rank, a) == at;
        }
        const sf_tensor *piece = &pieces[rank];
        int64_t index[SF_MAX_RANK] = {0};
        for (int64_t i = 0; taken && i < piece->type->count; i++) {
            int64_t flat = global_of(layout, mesh, rank, type, index);
            if (written[flat])
                combine_element(monoid, &out, flat, piece, i);
            else
                copy_element(&out, flat, piece, i);
            written[flat] = true;
            sf_next_index(type->rank, piece->type->dims, index);
        }
    }
    sf_free(written);
    return out;
}

/* The world in lockstep */

/* What one rank has sent another and it has not received yet, in order. */
typedef struct mail {
    sf_tensor *at;
    size_t count, capacity, taken;
} mail;

typedef struct world {
    sf_local *const *locals;
    int count;
    const sf_mesh *mesh;
    mail *mail; /* by rank * count + rank that it is for */
    sf_arena arena;
    sf_eval *evals;     /* by rank */
    uint32_t *next;     /* by rank: the next node of the top block */
    uint32_t **last;    /* by rank and value: the last node of the top block that uses it */
    const sf_node **at; /* by rank: the collective or message that it waits for, or NULL */
    bool moved;         /* some rank has come further */
    sf_diag *diag;
} world;

static void mark_uses(const sf_graph *graph, const sf_node *node, uint32_t at, uint32_t *last)
{
    for (uint32_t i = 0; i < node->noperands; i++)
        last[node->operands[i]] = at;
    for (uint32_t r = 0; r < node->nregions; r++) {
        const sf_block *block = node->regions[r];
        for (uint32_t i = 0; i < block->nnodes; i++)
            mark_uses(graph, graph->nodes[block->nodes[i]], at, last);
        for (uint32_t i = 0; i < block->nresults; i++)
            last[block->results[i]] = at;
    }
}

static uint32_t *last_uses(const sf_graph *graph)
{
    uint32_t *last = sf_alloc(graph->nvalues * sizeof *last);
    for (size_t i = 0; i < graph->nvalues; i++)
        last[i] = SF_NONE;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        mark_uses(graph, graph->nodes[graph->top->nodes[i]], i, last);
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        last[graph->top->results[i]] = SF_NONE;
    return last;
}

static void release_operands(world *w, int rank, const sf_node *node, uint32_t at)
{
    sf_eval *eval = &w->evals[rank];
    for (uint32_t i = 0; i < node->noperands; i++) {
        sf_tensor *operand = &eval->values[node->operands[i]];
        if (w->last[rank][node->operands[i]] != at || !operand->data)
            continue;
        sf_free(operand->data);
        operand->data = NULL;
    }
}

static void make_results(sf_eval *eval, const sf_node *node)
{
    for (uint32_t i = 0; i < node->nresults; i++)
        eval->values[node->result + i] = new_tensor(sf_type_of(eval->graph, node->result + i));
}

static sf_status run_node(sf_eval *eval, const sf_node *node)
{
    const sf_type **types =
        sf_alloc((node->noperands + (size_t)node->nresults + 1) * sizeof *types);
    sf_tensor *in = sf_alloc((node->noperands + (size_t)1) * sizeof *in);
    sf_op op = sf_op_of(eval->graph, node, types);
    for (uint32_t i = 0; i < node->noperands; i++)
        in[i] = eval->values[node->operands[i]];
    make_results(eval, node);
    sf_status status = node->def->eval(eval, &op, in, &eval->values[node->result]);
    sf_free(types);
    sf_free(in);
    return status;
}

static sf_axes axes_of(const sf_node *node)
{
    return (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer;
}

static sf_tensor copied(const sf_tensor *tensor)
{
    sf_tensor copy = new_tensor(tensor->type);
    if (copy.type->count > 0)
        memcpy(copy.data, tensor->data, (size_t)sf_type_bytes(copy.type));
    return copy;
}

/* In a group of one, nobody sends: the op says what comes of that. */
static bool is_mailed(const sf_node *node)
{
    return sf_is_message(node) && node->attrs[SF_COLLECTIVE_SIZE]->integer > 1;
}

/* Sending takes no time; what is received has been sent before. */
static bool pass_message(world *w, int rank, const sf_node *node)
{
    sf_eval *eval = &w->evals[rank];
    int place = (int)node->attrs[SF_MESSAGE_PEER]->integer;
    int peer = sf_group_member(w->mesh, axes_of(node), rank, place);
    if (sf_is(node, SF_OP_SEND)) {
        mail *m = &w->mail[rank * w->count + peer];
        SF_PUSH(&w->arena, m->at, m->count, m->capacity, copied(&eval->values[node->operands[0]]));
        return true;
    }
    mail *m = &w->mail[peer * w->count + rank];
    if (m->taken == m->count)
        return false;
    sf_tensor *sent = &m->at[m->taken++];
    make_results(eval, node);
    sf_tensor *out = &eval->values[node->result];
    SF_ASSERT(sent->type->count == out->type->count && sent->type->dtype == out->type->dtype);
    if (out->type->count > 0)
        memcpy(out->data, sent->data, (size_t)sf_type_bytes(out->type));
    sf_free(sent->data);
    return true;
}

/* Runs a rank up to the next collective, or message that has not been sent. */
static sf_status run_rank(world *w, int rank)
{
    const sf_graph *graph = w->locals[rank]->graph;
    w->at[rank] = NULL;
    while (w->next[rank] < graph->top->nnodes) {
        const sf_node *node = graph->nodes[graph->top->nodes[w->next[rank]]];
        if (sf_is_collective(node) || (is_mailed(node) && !pass_message(w, rank, node))) {
            w->at[rank] = node;
            return SF_OK;
        }
        if (!is_mailed(node))
            SF_TRY(run_node(&w->evals[rank], node));
        release_operands(w, rank, node, w->next[rank]);
        w->next[rank]++;
        w->moved = true;
    }
    return SF_OK;
}

/* The ranks have pools of their own, so equal attributes may be two. */
static bool same_attr(const sf_attr *a, const sf_attr *b)
{
    if (!a || !b)
        return a == b;
    return a->kind == SF_ATTR_TEXT ? strcmp(a->text, b->text) == 0 : a->integer == b->integer;
}

static sf_status check_same(world *w, int first, int rank)
{
    const sf_node *a = w->at[first], *b = w->at[rank];
    bool same = !a == !b;
    if (a && b) {
        same = a->def == b->def && a->noperands == b->noperands;
        for (int i = 0; same && i < a->def->nattrs; i++)
            same = same_attr(a->attrs[i], b->attrs[i]);
        for (uint32_t i = 0; same && i < a->noperands; i++)
            same = sf_same_shape(sf_type_of(w->locals[first]->graph, a->operands[i]),
                                 sf_type_of(w->locals[rank]->graph, b->operands[i]));
        same = same && a->attrs[SF_COLLECTIVE_SIZE]->integer == sf_group_size(w->mesh, axes_of(a));
    }
    if (same)
        return SF_OK;
    return sf_fail(w->diag, SF_EMISMATCH, SF_NOWHERE, "rank %d comes to %s, rank %d to %s", first,
                   a ? a->def->name : "the end", rank, b ? b->def->name : "the end");
}

static const sf_tensor *operand_of(const world *w, int rank, uint32_t i)
{
    return &w->evals[rank].values[w->at[rank]->operands[i]];
}

static sf_monoid body_of(const sf_node *node)
{
    return (sf_monoid)node->attrs[SF_COLLECTIVE_BODY]->integer;
}

/* Elements [first, first + count of out) of every member's operand, combined. */
static void reduce_row(const world *w, int rank, uint32_t i, int64_t first, sf_tensor *out)
{
    sf_axes axes = axes_of(w->at[rank]);
    for (int p = 0; p < sf_group_size(w->mesh, axes); p++) {
        const sf_tensor *in = operand_of(w, sf_group_member(w->mesh, axes, rank, p), i);
        for (int64_t k = 0; k < out->type->count; k++) {
            if (p)
                combine_element(body_of(w->at[rank]), out, k, in, first + k);
            else
                copy_element(out, k, in, first + k);
        }
    }
}

static void copy_row(const sf_tensor *from, int64_t first, sf_tensor *to, int64_t at, int64_t count)
{
    size_t width = sf_dtype_get(to->type->dtype)->bytes;
    memcpy((char *)to->data + (size_t)at * width, (const char *)from->data + (size_t)first * width,
           (size_t)count * width);
}

static int swapped_rank(const sf_mesh *mesh, sf_axes axes, int rank)
{
    for (int other = 0; other < sf_mesh_size(mesh); other++) {
        int a = -1, b = -1;
        bool same = true;
        for (int axis = 0; axis < mesh->naxes; axis++) {
            if (!(axes >> axis & 1))
                same = same && sf_mesh_coordinate(mesh, rank, axis) ==
                                   sf_mesh_coordinate(mesh, other, axis);
            else
                *(a < 0 ? &a : &b) = axis;
        }
        if (same && sf_mesh_coordinate(mesh, rank, a) == sf_mesh_coordinate(mesh, other, b) &&
            sf_mesh_coordinate(mesh, rank, b) == sf_mesh_coordinate(mesh, other, a))
            return other;
    }
    SF_ASSERT(false);
    return -1;
}

static void finish_operand(world *w, int rank, uint32_t i)
{
    const sf_node *node = w->at[rank];
    sf_axes axes = axes_of(node);
    int size = sf_group_size(w->mesh, axes), place = sf_group_place(w->mesh, axes, rank);
    sf_tensor *out = &w->evals[rank].values[node->result + i];
    int64_t row = out->type->count;
    switch (node->def->id) {
    case SF_OP_ALL_REDUCE:
        reduce_row(w, rank, i, 0, out);
        break;
    case SF_OP_REDUCE_SCATTER:
        reduce_row(w, rank, i, place * row, out);
        break;
    case SF_OP_ALL_GATHER:
    case SF_OP_ALL_TO_ALL:
        row /= size;
        for (int p = 0; p < size; p++)
            copy_row(operand_of(w, sf_group_member(w->mesh, axes, rank, p), i),
                     node->def->id == SF_OP_ALL_TO_ALL ? place * row : 0, out, p * row, row);
        break;
    default:
        SF_ASSERT(node->def->id == SF_OP_PERMUTE);
        copy_row(operand_of(w, swapped_rank(w->mesh, axes, rank), i), 0, out, 0, row);
    }
}

/* Once all ranks of the group have come to it. */
static sf_status meet(world *w, int rank)
{
    sf_axes axes = axes_of(w->at[rank]);
    int size = sf_group_size(w->mesh, axes);
    for (int p = 0; p < size; p++) {
        int member = sf_group_member(w->mesh, axes, rank, p);
        if (w->at[member] && sf_is_message(w->at[member]))
            return SF_OK;
        SF_TRY(check_same(w, rank, member));
    }
    for (int p = 0; p < size; p++) {
        int member = sf_group_member(w->mesh, axes, rank, p);
        make_results(&w->evals[member], w->at[member]);
        for (uint32_t i = 0; i < w->at[member]->nresults; i++)
            finish_operand(w, member, i);
    }
    for (int p = 0; p < size; p++) {
        int member = sf_group_member(w->mesh, axes, rank, p);
        release_operands(w, member, w->at[member], w->next[member]++);
        w->at[member] = NULL;
    }
    w->moved = true;
    return SF_OK;
}

static sf_status run_world(world *w)
{
    do {
        w->moved = false;
        for (int rank = 0; rank < w->count; rank++)
            SF_TRY(run_rank(w, rank));
        for (int rank = 0; rank < w->count; rank++)
            if (w->at[rank] && sf_is_collective(w->at[rank]))
                SF_TRY(meet(w, rank));
    } while (w->moved);
    for (int rank = 0; rank < w->count; rank++)
        if (w->at[rank])
            return sf_fail(w->diag, SF_EMISMATCH, SF_NOWHERE,
                           "rank %d waits for ever for a message", rank);
    return SF_OK;
}

sf_status test_run_ranks(sf_local *const *locals, int count, const sf_mesh *mesh,
                         sf_tensor *const *arguments, sf_tensor *const *results, sf_diag *diag)
{
    world w = {.locals = locals, .count = count, .mesh = mesh, .diag = diag};
    w.mail = SF_ARRAY(&w.arena, count * count, mail);
    w.evals = sf_alloc((size_t)count * sizeof *w.evals);
    w.next = sf_alloc((size_t)count * sizeof *w.next);
    w.last = sf_alloc((size_t)count * sizeof *w.last);
    w.at = sf_alloc((size_t)count * sizeof *w.at);
    for (int rank = 0; rank < count; rank++) {
        const sf_graph *graph = locals[rank]->graph;
        sf_eval *eval = &w.evals[rank];
        *eval = (sf_eval){.graph = graph, .diag = diag};
        eval->values = sf_alloc((graph->nvalues + 1) * sizeof *eval->values);
        w.last[rank] = last_uses(graph);
        for (uint32_t i = 0; i < graph->top->narguments; i++)
            eval->values[graph->top->arguments[i]] = copied(&arguments[rank][i]);
    }
    sf_status status = run_world(&w);
    for (int rank = 0; rank < count; rank++) {
        const sf_block *top = locals[rank]->graph->top;
        for (uint32_t i = 0; status == SF_OK && i < top->nresults; i++)
            results[rank][i] = copied(&w.evals[rank].values[top->results[i]]);
        sf_eval_close(&w.evals[rank]);
        sf_free(w.last[rank]);
    }
    for (int i = 0; i < count * count; i++)
        for (size_t l = w.mail[i].taken; l < w.mail[i].count; l++)
            sf_free(w.mail[i].at[l].data);
    sf_arena_free(&w.arena);
    sf_free(w.evals);
    sf_free(w.next);
    sf_free(w.last);
    sf_free(w.at);
    return status;
}

/* Whole arguments in, whole results out */

typedef struct split_run {
    const sf_graph *graph;
    const sf_plan *plan;
    int count;
    sf_local **locals;
    sf_tensor **arguments, **results;
} split_run;

static sf_status open_ranks(split_run *run, const sf_tensor *arguments, sf_diag *diag)
{
    const sf_block *top = run->graph->top;
    for (int rank = 0; rank < run->count; rank++) {
        run->arguments[rank] = sf_alloc((top->narguments + (size_t)1) * sizeof(sf_tensor));
        run->results[rank] = sf_alloc((top->nresults + (size_t)1) * sizeof(sf_tensor));
        for (uint32_t i = 0; i < top->narguments; i++)
            run->arguments[rank][i] = test_cut(&arguments[i], &run->plan->arguments[i],
                                               &run->plan->mesh, rank, run->graph->pool);
        SF_TRY(sf_local_new(run->graph, run->plan, rank, diag, &run->locals[rank]));
        SF_TRY(sf_graph_verify(run->locals[rank]->graph, diag));
    }
    return SF_OK;
}

static void close_ranks(split_run *run)
{
    for (int rank = 0; rank < run->count; rank++) {
        for (uint32_t i = 0; run->arguments[rank] && i < run->graph->top->narguments; i++)
            sf_free(run->arguments[rank][i].data);
        for (uint32_t i = 0; run->results[rank] && i < run->graph->top->nresults; i++)
            sf_free(run->results[rank][i].data);
        sf_free(run->arguments[rank]);
        sf_free(run->results[rank]);
        sf_local_free(run->locals[rank]);
    }
    sf_free(run->arguments);
    sf_free(run->results);
    sf_free(run->locals);
}

static void check_results(const split_run *run, test_check_result *check, void *context)
{
    sf_tensor *pieces = sf_alloc((size_t)run->count * sizeof *pieces);
    for (uint32_t i = 0; i < run->graph->top->nresults; i++) {
        const sf_type *type = sf_result_type(run->graph, i);
        for (int rank = 0; rank < run->count; rank++)
            pieces[rank] = run->results[rank][i];
        for (int rank = 0; rank < run->count; rank++) {
            sf_tensor joined =
                test_join(pieces, &run->plan->results[i], &run->plan->mesh, rank, type);
            check(context, rank, i, &joined);
            sf_free(joined.data);
        }
    }
    sf_free(pieces);
}

sf_status test_run_split(const sf_graph *graph, const sf_plan *plan, const sf_tensor *arguments,
                         test_check_result *check, void *context, sf_diag *diag)
{
    split_run run = {.graph = graph, .plan = plan, .count = sf_mesh_size(&plan->mesh)};
    run.locals = sf_alloc((size_t)run.count * sizeof *run.locals);
    run.arguments = sf_alloc((size_t)run.count * sizeof *run.arguments);
    run.results = sf_alloc((size_t)run.count * sizeof *run.results);
    sf_status status = open_ranks(&run, arguments, diag);
    if (status == SF_OK)
        status =
            test_run_ranks(run.locals, run.count, &plan->mesh, run.arguments, run.results, diag);
    if (status == SF_OK)
        check_results(&run, check, context);
    close_ranks(&run);
    return status;
}

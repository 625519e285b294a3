#include "plan/shrink/shrink.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/name.h"
#include "op/node_builder.h"
#include "op/slots.h"
#include "plan/shrink/mean_counts.h"
#include "plan/shrink/shared_digits.h"

enum {
    MOST_TRIES = 100, /* at nodes whose kind changes with the size */
    MOST_TOLD = 12,   /* sizes in the line about it */
};

typedef struct shrinker {
    const sf_graph *from;
    const sf_plan *plan;
    int64_t ranks;
    sf_arena arena, scratch; /* scratch: for one node */
    sf_digits digits;
    uint32_t *dims;      /* by value: the digit of its first dimension */
    bool *inner;         /* by value: made inside of a region */
    sf_counted *counted; /* by node: the dimensions that a constant counts */

    sf_graph *to;
    sf_value *values; /* by value of `from` */
    uint32_t *nodes;  /* by node of `from` */
} shrinker;

/* Tying */

static uint32_t digit_of(const shrinker *s, sf_value value, int dim)
{
    return s->dims[value] + (uint32_t)dim;
}

static void fix_value(shrinker *s, sf_value value)
{
    for (int d = 0; d < sf_type_of(s->from, value)->rank; d++)
        sf_digits_fix(&s->digits, digit_of(s, value, d));
}

static void tie_values(shrinker *s, sf_value a, sf_value b)
{
    for (int d = 0; d < sf_type_of(s->from, a)->rank; d++) {
        uint32_t x = digit_of(s, a, d), y = digit_of(s, b, d);
        sf_digits_tie(&s->digits, 1, &x, 1, &y);
    }
}

static sf_value shrunk_tensor(const sf_node *node, uint32_t tensor)
{
    return tensor < node->noperands ? node->operands[tensor]
                                    : node->result + (tensor - node->noperands);
}

static void fix_node(shrinker *s, const sf_node *node)
{
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
        fix_value(s, shrunk_tensor(node, t));
}

/* The dimensions in a region stay as they are. */
static void fix_region(shrinker *s, const sf_block *block)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        s->inner[block->arguments[i]] = true;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = s->from->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++)
            s->inner[node->result + r] = true;
        for (uint32_t r = 0; r < node->nregions; r++)
            fix_region(s, node->regions[r]);
        fix_node(s, node);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        fix_value(s, block->results[i]);
}

static void tie_dimension(shrinker *s, const sf_walk *walk, const uint32_t *factors, uint32_t digit)
{
    uint32_t chain[SF_MAX_CHAIN];
    if (walk->halo || walk->count == 0) {
        sf_digits_fix(&s->digits, digit);
        return;
    }
    for (int i = 0; i < walk->count; i++)
        chain[i] = factors[walk->factors[i]];
    sf_digits_tie(&s->digits, 1, &digit, walk->count, chain);
}

/* Whether a window along the dimension is as long as that and ends where it is: a cumulative sum, say, from
 * the front or from the back. */
static bool is_cumulative(const shrinker *s, const sf_node *node, int dim)
{
    if (!sf_is(node, SF_OP_REDUCE_WINDOW))
        return false;
    int64_t size = sf_type_of(s->from, node->operands[0])->dims[dim];
    const sf_attr *sizes = node->attrs[SF_REDUCE_WINDOW_SIZES];
    const sf_attr *padding = node->attrs[SF_REDUCE_WINDOW_PADDING];
    if (!padding || size < 2 || sizes->ints[dim] != size)
        return false;
    int64_t low = padding->ints[2 * dim], high = padding->ints[2 * dim + 1];
    return (low == size - 1 && high == 0) || (low == 0 && high == size - 1);
}

/* Ties a dimension of any tensor to that of the first operand. */
static void tie_first(shrinker *s, const sf_node *node, uint32_t tensor, int dim)
{
    uint32_t x = digit_of(s, node->operands[0], dim);
    uint32_t y = digit_of(s, shrunk_tensor(node, tensor), dim);
    sf_digits_tie(&s->digits, 1, &x, 1, &y);
}

/* An update of part of a dimension must go on to fit into it. */
static void fix_update(shrinker *s, const sf_node *node)
{
    const sf_type *operand = sf_type_of(s->from, node->operands[0]);
    const sf_type *update = sf_type_of(s->from, node->operands[1]);
    for (int d = 0; d < operand->rank; d++)
        if (operand->dims[d] != update->dims[d])
            sf_digits_fix(&s->digits, digit_of(s, node->operands[0], d));
}

static void tie_node(shrinker *s, const sf_node *node)
{
    sf_mark mark = sf_arena_mark(&s->scratch);
    uint32_t count = node->noperands + node->nresults;
    const sf_type **types = SF_ARRAY(&s->scratch, count, const sf_type *);
    sf_op op = sf_op_of(s->from, node, types);
    sf_factoring factoring;
    sf_op_factors(&op, &s->scratch, &factoring);
    uint32_t *factors = SF_ARRAY(&s->scratch, factoring.nfactors, uint32_t);
    for (int i = 0; i < factoring.nfactors; i++) {
        const sf_factor *factor = &factoring.factors[i];
        factors[i] = sf_digits_add(&s->digits, factor->size,
                                   factor->role == SF_WHOLE || factor->role == SF_WINDOW);
    }
    for (uint32_t t = 0; t < count; t++)
        for (int d = 0; d < types[t]->rank; d++)
            if (is_cumulative(s, node, d))
                tie_first(s, node, t, d);
            else
                tie_dimension(s, &factoring.walks[t][d], factors,
                              digit_of(s, shrunk_tensor(node, t), d));
    if (sf_is(node, SF_OP_DYNAMIC_UPDATE_SLICE))
        fix_update(s, node);
    for (uint32_t r = 0; r < node->nregions; r++)
        fix_region(s, node->regions[r]);
    sf_arena_reset(&s->scratch, mark);
}

/* A split counts in a digit of its own, which stays. */
static void tie_layout(shrinker *s, sf_value value, const sf_layout *layout)
{
    const sf_type *type = sf_type_of(s->from, value);
    for (int a = 0; a < s->plan->mesh.naxes; a++) {
        const sf_share *share = &layout->axes[a];
        if (share->kind != SF_SPLIT)
            continue;
        int64_t parts = s->plan->mesh.axes[a].size;
        uint32_t digit = digit_of(s, value, share->dim);
        uint32_t chain[] = {
            sf_digits_add(&s->digits, type->dims[share->dim] / share->period, false),
            sf_digits_add(&s->digits, parts, true),
            sf_digits_add(&s->digits, share->period / parts, false),
        };
        sf_digits_tie(&s->digits, 1, &digit, 3, chain);
        if (sf_digits_unit(&s->digits, digit, share->period, s->ranks) == 0)
            sf_digits_fix(&s->digits, digit);
    }
}

static void tie_plan(shrinker *s)
{
    const sf_block *top = s->from->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        tie_layout(s, top->arguments[i], &s->plan->arguments[i]);
    for (uint32_t i = 0; i < top->nresults; i++)
        tie_layout(s, top->results[i], &s->plan->results[i]);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = s->from->nodes[top->nodes[i]];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            tie_layout(s, shrunk_tensor(node, t), &s->plan->nodes[node->id][t]);
    }
}

static void tie_sizes(shrinker *s)
{
    const sf_graph *from = s->from;
    s->digits.arena = &s->arena;
    s->dims = SF_ARRAY(&s->arena, from->nvalues, uint32_t);
    s->inner = SF_ARRAY(&s->arena, from->nvalues, bool);
    s->counted = sf_find_counted(from, &s->arena);
    for (sf_value v = 0; v < from->nvalues; v++) {
        const sf_type *type = from->values[v].type;
        s->dims[v] = (uint32_t)s->digits.count;
        for (int d = 0; d < type->rank; d++)
            sf_digits_add(&s->digits, type->dims[d], type->dims[d] == 0);
    }
    for (uint32_t i = 0; i < from->top->nnodes; i++)
        tie_node(s, from->nodes[from->top->nodes[i]]);
    for (uint32_t i = 0; i < from->top->narguments; i++)
        if (from->arguments[i].next != SF_NONE)
            tie_values(s, from->top->arguments[i], from->top->results[from->arguments[i].next]);
    tie_plan(s);
}

/* Building */

static const sf_type *new_type(const shrinker *s, sf_value value)
{
    const sf_type *type = sf_type_of(s->from, value);
    int64_t dims[SF_MAX_RANK];
    if (s->inner[value])
        return type;
    for (int d = 0; d < type->rank; d++)
        dims[d] = sf_digits_size(&s->digits, digit_of(s, value, d), s->ranks);
    return sf_type_get(s->to->pool, type->dtype, type->rank, dims);
}

/* The first elements along every dimension. */
static const sf_attr *cut_constant(shrinker *s, const sf_dense *dense, const sf_type *type)
{
    const void *data = dense->data;
    if (data && !dense->splat && type->count > 0) {
        int64_t index[SF_MAX_RANK] = {0}, at = 0;
        size_t width = sf_dtype_get(type->dtype)->bytes;
        char *cut = sf_arena_alloc(&s->scratch, (size_t)sf_type_bytes(type));
        do {
            int64_t from = sf_flat_index(type->rank, dense->type->dims, index);
            memcpy(cut + (size_t)at++ * width, (const char *)data + (size_t)from * width, width);
        } while (sf_next_index(type->rank, type->dims, index));
        data = cut;
    }
    return sf_attr_dense(s->to->pool, type, dense->splat, data);
}

static const sf_attr *count_recomputed(const shrinker *s, const sf_counted *counted,
                                       const sf_type *type)
{
    double number[SF_ELEMENT_BYTES / sizeof(double)];
    int64_t count = sf_count_dims(new_type(s, counted->value), counted->dims);
    sf_store_f64(type->dtype, number, 0, (double)count);
    return sf_attr_dense(s->to->pool, type, true, number);
}

/* Windows over all earlier positions stay that. */
static void scale_windows(const shrinker *s, const sf_node *node, const sf_type *type,
                          const sf_attr **attrs)
{
    int64_t sizes[SF_MAX_RANK], padding[2 * SF_MAX_RANK] = {0};
    for (int d = 0; d < type->rank; d++) {
        sizes[d] = attrs[SF_REDUCE_WINDOW_SIZES]->ints[d];
        for (int i = 2 * d; attrs[SF_REDUCE_WINDOW_PADDING] && i < 2 * d + 2; i++)
            padding[i] = attrs[SF_REDUCE_WINDOW_PADDING]->ints[i];
        if (!is_cumulative(s, node, d))
            continue;
        sizes[d] = type->dims[d];
        for (int i = 2 * d; i < 2 * d + 2; i++)
            padding[i] = padding[i] > 0 ? type->dims[d] - 1 : 0;
    }
    attrs[SF_REDUCE_WINDOW_SIZES] = sf_attr_ints(s->to->pool, type->rank, sizes);
    if (attrs[SF_REDUCE_WINDOW_PADDING])
        attrs[SF_REDUCE_WINDOW_PADDING] = sf_attr_ints(s->to->pool, 2 * type->rank, padding);
}

static bool copy_shrunk_node(shrinker *s, sf_block *block, const sf_node *node);

static sf_value *new_values(shrinker *s, uint32_t count, const sf_value *values)
{
    sf_value *out = SF_ARRAY(&s->scratch, count, sf_value);
    for (uint32_t i = 0; i < count; i++)
        out[i] = s->values[values[i]];
    return out;
}

static sf_block *copy_shrunk_region(shrinker *s, const sf_block *block, bool *good)
{
    sf_block *copy = sf_block_new(s->to);
    for (uint32_t i = 0; i < block->narguments; i++)
        s->values[block->arguments[i]] =
            sf_block_argument(s->to, copy, sf_type_of(s->from, block->arguments[i]));
    for (uint32_t i = 0; i < block->nnodes; i++)
        *good = *good && copy_shrunk_node(s, copy, s->from->nodes[block->nodes[i]]);
    if (*good)
        sf_block_return(s->to, copy, block->nresults,
                        new_values(s, block->nresults, block->results));
    return copy;
}

/* False where the op does not allow it. */
static bool copy_shrunk_node(shrinker *s, sf_block *block, const sf_node *node)
{
    const sf_opdef *def = node->def;
    uint32_t count = node->noperands + node->nresults;
    const sf_type **old = SF_ARRAY(&s->scratch, count, const sf_type *);
    const sf_type **types = SF_ARRAY(&s->scratch, count, const sf_type *);
    const sf_attr **attrs = SF_ARRAY(&s->scratch, def->nattrs, const sf_attr *);
    sf_block **regions = SF_ARRAY(&s->scratch, node->nregions, sf_block *);
    sf_op op = sf_op_of(s->from, node, old);
    bool good = true, same = true;
    op.pool = s->to->pool;
    for (uint32_t t = 0; t < count; t++) {
        types[t] = new_type(s, shrunk_tensor(node, t));
        same = same && types[t] == old[t];
    }
    if (def->nattrs)
        memcpy(attrs, node->attrs, (size_t)def->nattrs * sizeof *attrs);
    if (sf_is(node, SF_OP_CONSTANT) && s->counted[node->id].value != SF_NONE)
        attrs[SF_CONSTANT_VALUE] = count_recomputed(s, &s->counted[node->id], types[0]);
    else if (!same && sf_is(node, SF_OP_CONSTANT))
        attrs[SF_CONSTANT_VALUE] = cut_constant(s, &attrs[SF_CONSTANT_VALUE]->dense, types[0]);
    else if (!same && sf_is(node, SF_OP_REDUCE_WINDOW))
        scale_windows(s, node, types[0], attrs);
    else if (!same && def->local)
        def->local(&op, types, attrs);
    for (uint32_t r = 0; r < node->nregions; r++)
        regions[r] = copy_shrunk_region(s, node->regions[r], &good);
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = new_values(s, node->noperands, node->operands);
    spec.types = types + node->noperands;
    spec.attrs = attrs;
    spec.regions = regions;
    sf_node *added;
    if (!good || sf_build(s->to, block, &spec, NULL, &added) != SF_OK)
        return false;
    s->nodes[node->id] = added->id;
    for (uint32_t r = 0; r < node->nresults; r++)
        s->values[node->result + r] = added->result + r;
    return true;
}

/* The node that does not work at its new size, or NULL. */
static const sf_node *build_shrunk(shrinker *s)
{
    const sf_graph *from = s->from;
    const sf_block *top = from->top;
    sf_graph *to = s->to;
    sf_graph_clone_head(from, to);
    for (uint32_t i = 0; i < top->narguments; i++)
        s->values[top->arguments[i]] =
            sf_block_argument(to, to->top, new_type(s, top->arguments[i]));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        sf_mark mark = sf_arena_mark(&s->scratch);
        const sf_node *node = from->nodes[top->nodes[i]];
        bool good = copy_shrunk_node(s, to->top, node);
        sf_arena_reset(&s->scratch, mark);
        if (!good)
            return node;
    }
    sf_block_return(to, to->top, top->nresults, new_values(s, top->nresults, top->results));
    for (uint32_t i = 0; i < top->narguments; i++)
        if (from->arguments[i].gradient != SF_NONE)
            to->arguments[i].gradient = s->values[from->arguments[i].gradient];
    return NULL;
}

/* A node that cannot be scaled after all keeps its sizes. */
static sf_status build_graph(shrinker *s, sf_diag *diag)
{
    const sf_node *node = NULL;
    s->values = SF_ARRAY(&s->arena, s->from->nvalues, sf_value);
    s->nodes = SF_ARRAY(&s->arena, s->from->nnodes, uint32_t);
    for (int i = 0; i < MOST_TRIES; i++) {
        sf_pool *pool = sf_pool_derive(s->from->pool);
        s->to = sf_graph_new(pool);
        sf_pool_release(pool);
        node = build_shrunk(s);
        if (!node)
            return SF_OK;
        sf_graph_free(s->to);
        fix_node(s, node);
    }
    return sf_fail(diag, SF_EUNSUPPORTED, node->loc,
                   "the step cannot be shrunk: there are too many ops such as %s, which need the "
                   "sizes that they have",
                   node->def->name);
}

/* The plan */

static sf_layout new_layout(const shrinker *s, sf_value value, const sf_layout *layout)
{
    sf_layout out = *layout;
    const sf_type *type = sf_type_of(s->from, value);
    for (int a = 0; a < s->plan->mesh.naxes; a++) {
        sf_share *share = &out.axes[a];
        if (share->kind != SF_SPLIT)
            continue;
        uint32_t digit = digit_of(s, value, share->dim);
        if (sf_digits_size(&s->digits, digit, s->ranks) != type->dims[share->dim])
            share->period = sf_digits_unit(&s->digits, digit, share->period, s->ranks);
    }
    return out;
}

/* The stages of the same nodes. */
static sf_pipeline *shrunk_pipeline(const shrinker *s, sf_arena *arena)
{
    const sf_stages *from = &s->plan->pipeline->stages;
    sf_pipeline *out = sf_pipeline_copy(s->plan->pipeline, s->from, arena);
    out->stages.of_node = SF_ARRAY(arena, s->to->nnodes, uint32_t);
    out->stages.anywhere = SF_ARRAY(arena, s->to->nnodes, bool);
    out->stages.late = SF_ARRAY(arena, s->to->nnodes, bool);
    for (uint32_t i = 0; i < s->from->top->nnodes; i++) {
        uint32_t node = s->from->top->nodes[i], to = s->nodes[node];
        out->stages.of_node[to] = from->of_node[node];
        out->stages.anywhere[to] = from->anywhere[node];
        out->stages.late[to] = from->late[node];
    }
    return out;
}

static sf_plan *build_plan(const shrinker *s)
{
    const sf_block *top = s->from->top;
    const sf_plan *from = s->plan;
    sf_plan *plan = sf_plan_new(s->to, &from->mesh);
    plan->recipe = sf_arena_string(&plan->arena, from->recipe, strlen(from->recipe));
    plan->npins = from->npins;
    plan->pins = sf_arena_copy(&plan->arena, from->pins, (size_t)from->npins * sizeof *plan->pins);
    for (int i = 0; i < plan->npins; i++) {
        sf_pin *pin = &plan->pins[i];
        pin->text = sf_arena_string(&plan->arena, pin->text, strlen(pin->text));
        pin->pattern = sf_arena_string(&plan->arena, pin->pattern, strlen(pin->pattern));
    }
    for (uint32_t i = 0; i < top->narguments; i++)
        plan->arguments[i] = new_layout(s, top->arguments[i], &from->arguments[i]);
    for (uint32_t i = 0; i < top->nresults; i++)
        plan->results[i] = new_layout(s, top->results[i], &from->results[i]);
    sf_layouts_keep(plan->arguments, top->narguments, &plan->arena);
    sf_layouts_keep(plan->results, top->nresults, &plan->arena);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = s->from->nodes[top->nodes[i]];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            plan->nodes[s->nodes[node->id]][t] =
                new_layout(s, shrunk_tensor(node, t), &from->nodes[node->id][t]);
    }
    sf_plan_copy_microbatches(from, plan);
    if (from->recomputed) {
        plan->recompute = sf_arena_string(&plan->arena, from->recompute, strlen(from->recompute));
        plan->recomputed = SF_ARRAY(&plan->arena, s->to->nnodes, bool);
        plan->recomputed_per_part =
            from->recomputed_per_part ? SF_ARRAY(&plan->arena, s->to->nnodes, bool) : NULL;
        for (uint32_t n = 0; n < s->from->nnodes; n++) {
            if (from->recomputed[n])
                plan->recomputed[s->nodes[n]] = true;
            if (from->recomputed_per_part && from->recomputed_per_part[n])
                plan->recomputed_per_part[s->nodes[n]] = true;
        }
    }
    if (from->pipeline)
        plan->pipeline = shrunk_pipeline(s, &plan->arena);
    for (sf_value v = 0; from->pinned && v < s->from->nvalues; v++)
        plan->pinned[s->values[v]] = from->pinned[v];
    return plan;
}

/* "1024 -> 16 (params/wte/embedding), ..., 353 M parameters -> 12 k" */

static const char *tell_sizes(shrinker *s)
{
    int64_t simulated[MOST_TOLD][2];
    int count = 0;
    sf_buf text = {0};
    const char **names = sf_clean_names(s->from, &s->arena);
    for (uint32_t i = s->from->top->narguments; i-- > 0;) {
        const sf_type *old = sf_argument_type(s->from, i);
        const sf_type *new = sf_argument_type(s->to, i);
        for (int d = 0; d < old->rank && count < MOST_TOLD; d++) {
            bool known =
                old->dims[d] == new->dims[d] || s->from->arguments[i].role == SF_ROLE_STATE;
            for (int k = 0; k < count; k++)
                known =
                    known || (simulated[k][0] == old->dims[d] && simulated[k][1] == new->dims[d]);
            if (known)
                continue;
            simulated[count][0] = old->dims[d];
            simulated[count++][1] = new->dims[d];
            sf_buf_printf(&text, "%" PRId64 " -> %" PRId64 " (dimension %d of %s), ", old->dims[d],
                          new->dims[d], d, names[i]);
        }
    }
    sf_buf_printf(&text, "%" PRId64 " -> %" PRId64 " parameters", sf_count_parameters(s->from),
                  sf_count_parameters(s->to));
    const char *about = sf_arena_string(&s->to->arena, text.text, text.length);
    sf_buf_free(&text);
    return about;
}

sf_status sf_shrink(const sf_graph *graph, const sf_plan *plan, sf_diag *diag, sf_graph **out,
                    sf_plan **out_plan, const char **about)
{
    shrinker s = {.from = graph, .plan = plan, .ranks = sf_mesh_size(&plan->mesh)};
    tie_sizes(&s);
    sf_status status = build_graph(&s, diag);
    if (status == SF_OK) {
        *out = s.to;
        *out_plan = build_plan(&s);
        *about = tell_sizes(&s);
    }
    sf_arena_free(&s.arena);
    sf_arena_free(&s.scratch);
    return status;
}

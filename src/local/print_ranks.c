#include "local/print_ranks.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/opdef.h"
#include "ir/print_graph.h"
#include "op/op.h"
#include "op/slots.h"

/* A node that differs between ranks: a constant, or a slice. */
typedef struct table {
    char *rows;      /* of a constant: its elements on each rank, */
    bool splat;      /* or, where all are equal on each of them, one of them */
    int64_t *starts; /* of a slice: by rank and dimension */
} table;

typedef struct ranks {
    const sf_plan *plan;
    const sf_graph *first; /* the graph of rank 0 */
    int count;
    table **tables; /* by node; NULL: it is the same on all ranks */
    sf_arena arena;
    sf_diag *diag;
} ranks;

/* What differs */

static bool same_type(const sf_type *a, const sf_type *b)
{
    return a == b || (a->dtype == b->dtype && a->rank == b->rank &&
                      memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static int64_t dense_bytes(const sf_dense *dense)
{
    return dense->splat ? sf_dtype_get(dense->type->dtype)->bytes : sf_type_bytes(dense->type);
}

static bool same_dense(const sf_dense *a, const sf_dense *b)
{
    return same_type(a->type, b->type) && a->splat == b->splat && !a->data == !b->data &&
           (!a->data || memcmp(a->data, b->data, (size_t)dense_bytes(a)) == 0);
}

static bool same_attr(const sf_attr *a, const sf_attr *b)
{
    if (a == b || !a || !b)
        return a == b;
    if (a->kind != b->kind || a->count != b->count)
        return false;
    switch (a->kind) {
    case SF_ATTR_INT:
        return a->integer == b->integer;
    case SF_ATTR_INTS:
        return memcmp(a->ints, b->ints, (size_t)a->count * sizeof *a->ints) == 0;
    case SF_ATTR_TEXT:
        return sf_str_equal(sf_attr_bytes(a), sf_attr_bytes(b));
    case SF_ATTR_DENSE:
        return same_dense(&a->dense, &b->dense);
    }
    return false;
}

static bool may_differ(const sf_node *node, int slot)
{
    return sf_is(node, SF_OP_CONSTANT) ||
           (sf_is(node, SF_OP_SLICE) && (slot == SF_SLICE_STARTS || slot == SF_SLICE_LIMITS));
}

static bool same_shape(const ranks *all, const sf_graph *graph, const sf_node *a, const sf_node *b)
{
    if (a->def != b->def || a->noperands != b->noperands || a->nresults != b->nresults ||
        a->nregions != b->nregions || a->result != b->result ||
        memcmp(a->operands, b->operands, a->noperands * sizeof *a->operands) != 0)
        return false;
    for (uint32_t i = 0; i < a->nresults; i++)
        if (!same_type(sf_type_of(all->first, a->result + i), sf_type_of(graph, b->result + i)))
            return false;
    for (int slot = 0; slot < a->def->nattrs; slot++)
        if (!may_differ(a, slot) && !same_attr(a->attrs[slot], b->attrs[slot]))
            return false;
    return true;
}

static void fill_row(const table *t, const sf_node *node, int rank)
{
    if (t->starts) {
        const sf_attr *starts = node->attrs[SF_SLICE_STARTS];
        memcpy(t->starts + rank * starts->count, starts->ints,
               (size_t)starts->count * sizeof *starts->ints);
        return;
    }
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    size_t width = (size_t)sf_dtype_get(dense->type->dtype)->bytes;
    int64_t count = t->splat ? 1 : dense->type->count;
    char *row = t->rows + rank * count * (int64_t)width;
    for (int64_t i = 0; i < count; i++)
        memcpy(row + (size_t)i * width,
               (const char *)dense->data + (size_t)sf_dense_at(dense, i) * width, width);
}

static void new_rows(ranks *all, table *t, const sf_type *type)
{
    int64_t count = t->splat ? 1 : type->count;
    t->rows = sf_arena_array(&all->arena, (size_t)all->count,
                             (size_t)(count * sf_dtype_get(type->dtype)->bytes));
}

/* Rows of the same elements become rows of all elements. */
static void expand_rows(ranks *all, table *t, const sf_type *type)
{
    size_t width = (size_t)sf_dtype_get(type->dtype)->bytes;
    const char *before = t->rows;
    t->splat = false;
    new_rows(all, t, type);
    for (int rank = 0; rank < all->count; rank++)
        for (int64_t i = 0; i < type->count; i++)
            memcpy(t->rows + (size_t)(rank * type->count + i) * width,
                   before + (size_t)rank * width, width);
}

static table *new_table(ranks *all, const sf_node *node)
{
    table *t = SF_ARRAY(&all->arena, 1, table);
    if (sf_is(node, SF_OP_SLICE)) {
        t->starts =
            SF_ARRAY(&all->arena, all->count * node->attrs[SF_SLICE_STARTS]->count, int64_t);
    } else {
        const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
        t->splat = dense->splat;
        new_rows(all, t, dense->type);
    }
    for (int rank = 0; rank < all->count; rank++)
        fill_row(t, node, rank);
    return t;
}

static void add_row(ranks *all, table *t, const sf_node *node, int rank)
{
    if (t->splat && !node->attrs[SF_CONSTANT_VALUE]->dense.splat)
        expand_rows(all, t, node->attrs[SF_CONSTANT_VALUE]->dense.type);
    fill_row(t, node, rank);
}

/* Both are constants or slices of one type. */
static bool node_differs(const sf_node *a, const sf_node *b)
{
    for (int slot = 0; slot < a->def->nattrs; slot++)
        if (!same_attr(a->attrs[slot], b->attrs[slot]))
            return true;
    return false;
}

static bool has_elements(const sf_node *node)
{
    return !sf_is(node, SF_OP_CONSTANT) || node->attrs[SF_CONSTANT_VALUE]->dense.data;
}

static sf_status fail_to_unite(const ranks *all, const sf_node *node, int rank)
{
    sf_fail(all->diag, SF_EUNSUPPORTED, node ? node->loc : SF_NOWHERE,
            "the programs of ranks 0 and %d differ in more than constants and offsets, so that no "
            "program is that of both",
            rank);
    return sf_hint(all->diag,
                   "pipelines and uneven partitions have one program for each group of ranks");
}

static sf_status compare_rank(ranks *all, const sf_graph *graph, int rank)
{
    const sf_graph *first = all->first;
    if (graph->nnodes != first->nnodes || graph->nvalues != first->nvalues)
        return fail_to_unite(all, NULL, rank);
    for (size_t i = 0; i < first->nnodes; i++) {
        const sf_node *a = first->nodes[i], *b = graph->nodes[i];
        if (!same_shape(all, graph, a, b) || !has_elements(a) != !has_elements(b))
            return fail_to_unite(all, a, rank);
        bool differs = node_differs(a, b);
        if (differs && sf_type_of(first, a->result)->rank == SF_MAX_RANK)
            return fail_to_unite(all, a, rank); /* a table has a dimension more */
        if (!all->tables[i] && differs)
            all->tables[i] = new_table(all, a);
        if (all->tables[i])
            add_row(all, all->tables[i], b, rank);
    }
    return SF_OK;
}

/* Tables as text */

/* A row of a table of all ranks, as a value of one row: %N_row. */
static void print_row(sf_printer *p, const sf_node *node, const sf_dense *rows, int number)
{
    const sf_type *all = rows->type;
    char name[32], t[SF_TYPE_TEXT], row[SF_TYPE_TEXT];
    snprintf(name, sizeof name, "%%n%u_%d", node->id, number);
    int64_t dims[SF_MAX_RANK] = {1};
    for (int d = 1; d < all->rank; d++)
        dims[d] = all->dims[d];
    sf_type_text(all, t);
    sf_type_text(sf_type_get(p->graph->pool, all->dtype, all->rank, dims), row);
    sf_print_line(p);
    sf_buf_printf(p->out, "%st = stablehlo.constant ", name);
    sf_print_dense(p, rows);
    sf_buf_putc(p->out, '\n');
    sf_print_line(p);
    sf_buf_printf(p->out, "%sz = stablehlo.constant dense<0> : tensor<i32>\n", name);
    sf_print_line(p);
    sf_buf_printf(p->out, "%sr = \"stablehlo.dynamic_slice\"(%st, %%rank", name, name);
    for (int d = 1; d < all->rank; d++)
        sf_buf_printf(p->out, ", %sz", name);
    sf_buf_puts(p->out, ") <{slice_sizes = array<i64: ");
    for (int d = 0; d < all->rank; d++)
        sf_buf_printf(p->out, "%s%" PRId64, d ? ", " : "", dims[d]);
    sf_buf_printf(p->out, ">}> : (%s", t);
    for (int d = 0; d < all->rank; d++)
        sf_buf_puts(p->out, ", tensor<i32>");
    sf_buf_printf(p->out, ") -> %s\n", row);
}

static void print_reshape(sf_printer *p, const char *from, const sf_type *before,
                          const sf_type *after)
{
    char a[SF_TYPE_TEXT], b[SF_TYPE_TEXT];
    sf_buf_printf(p->out, "stablehlo.reshape %s : (%s) -> %s\n", from, sf_type_text(before, a),
                  sf_type_text(after, b));
}

/* The type with a further dimension in front. */
static const sf_type *type_of_rows(const sf_graph *graph, const sf_type *type, int64_t rows)
{
    int64_t dims[SF_MAX_RANK + 1] = {rows};
    memcpy(dims + 1, type->dims, (size_t)type->rank * sizeof *dims);
    return sf_type_get(graph->pool, type->dtype, type->rank + 1, dims);
}

static void print_constant_of_rank(const ranks *all, sf_printer *p, const sf_node *node)
{
    const table *t = all->tables[node->id];
    const sf_type *type = sf_type_of(p->graph, node->result);
    const sf_type *element = sf_type_get(p->graph->pool, type->dtype, 0, NULL);
    const sf_type *kept = t->splat ? element : type;
    const sf_dense rows = {type_of_rows(p->graph, kept, all->count), false, t->rows};
    char row[32], before[SF_TYPE_TEXT], after[SF_TYPE_TEXT];
    bool expands = t->splat && type->rank > 0;
    print_row(p, node, &rows, 0);
    snprintf(row, sizeof row, "%%n%u_0r", node->id);
    if (expands) {
        sf_print_line(p);
        sf_buf_printf(p->out, "%%n%u_e = ", node->id);
    } else {
        sf_print_results(p, node);
    }
    print_reshape(p, row, type_of_rows(p->graph, kept, 1), kept);
    if (!expands)
        return;
    sf_print_results(p, node);
    sf_buf_printf(p->out, "stablehlo.broadcast_in_dim %%n%u_e, dims = [] : (%s) -> ", node->id,
                  sf_type_text(element, before));
    sf_buf_printf(p->out, "%s\n", sf_type_text(type, after));
}

static void print_start(ranks *all, sf_printer *p, const sf_node *node, int dim, int rank)
{
    const sf_graph *graph = p->graph;
    const int64_t *starts = all->tables[node->id]->starts, count = all->count;
    int32_t *column = SF_ARRAY(&all->arena, count, int32_t);
    char row[32];
    for (int64_t i = 0; i < count; i++)
        column[i] = (int32_t)starts[i * rank + dim];
    const sf_dense rows = {sf_type_get(graph->pool, SF_S32, 1, &count), false, column};
    int64_t one = 1;
    print_row(p, node, &rows, dim);
    snprintf(row, sizeof row, "%%n%u_%dr", node->id, dim);
    sf_print_line(p);
    sf_buf_printf(p->out, "%%n%u_%d = ", node->id, dim);
    print_reshape(p, row, sf_type_get(graph->pool, SF_S32, 1, &one),
                  sf_type_get(graph->pool, SF_S32, 0, NULL));
}

/* A dynamic slice of all that lies between the first element and the last, and of that every so-manieth. */
static void print_slice_of_rank(ranks *all, sf_printer *p, const sf_node *node)
{
    const sf_attr *starts = node->attrs[SF_SLICE_STARTS];
    const sf_attr *strides = node->attrs[SF_SLICE_STRIDES];
    int64_t sizes[SF_MAX_RANK] = {0};
    const sf_type *type = sf_type_of(p->graph, node->result);
    bool strided = false;
    char text[SF_TYPE_TEXT];
    for (int d = 0; d < starts->count; d++) {
        int64_t stride = strides ? strides->ints[d] : 1;
        sizes[d] = type->dims[d] ? (type->dims[d] - 1) * stride + 1 : 0;
        strided = strided || stride != 1;
        print_start(all, p, node, d, starts->count);
    }
    const sf_type *range = sf_type_get(p->graph->pool, type->dtype, type->rank, sizes);
    if (strided) {
        sf_print_line(p);
        sf_buf_printf(p->out, "%%n%u_s = ", node->id);
    } else {
        sf_print_results(p, node);
    }
    sf_buf_puts(p->out, "\"stablehlo.dynamic_slice\"(");
    sf_print_values(p, node->operands, 1);
    for (int d = 0; d < starts->count; d++)
        sf_buf_printf(p->out, ", %%n%u_%d", node->id, d);
    sf_buf_puts(p->out, ") <{slice_sizes = array<i64: ");
    for (int d = 0; d < starts->count; d++)
        sf_buf_printf(p->out, "%s%" PRId64, d ? ", " : "", sizes[d]);
    sf_buf_puts(p->out, ">}> : (");
    sf_print_types(p, node->operands, 1);
    for (int d = 0; d < starts->count; d++)
        sf_buf_puts(p->out, ", tensor<i32>");
    sf_buf_printf(p->out, ") -> %s\n", sf_type_text(range, text));
    if (!strided)
        return;
    sf_print_results(p, node);
    sf_buf_printf(p->out, "stablehlo.slice %%n%u_s [", node->id);
    for (int d = 0; d < starts->count; d++)
        sf_buf_printf(p->out, "%s0:%" PRId64 ":%" PRId64, d ? ", " : "", sizes[d],
                      strides->ints[d]);
    sf_buf_printf(p->out, "] : (%s) -> ", text);
    sf_print_type(p, type);
    sf_buf_putc(p->out, '\n');
}

/* Collectives */

/* The groups along the axes, a row each, in the order of their places. */
static void print_groups(const ranks *all, sf_printer *p, sf_axes axes)
{
    const sf_mesh *mesh = &all->plan->mesh;
    int size = sf_group_size(mesh, axes);
    sf_buf_puts(p->out, "replica_groups = dense<[");
    bool any = false;
    for (int rank = 0; rank < all->count; rank++) {
        if (sf_group_place(mesh, axes, rank) != 0)
            continue;
        sf_buf_puts(p->out, any ? ", [" : "[");
        any = true;
        for (int place = 0; place < size; place++)
            sf_buf_printf(p->out, "%s%d", place ? ", " : "",
                          sf_group_member(mesh, axes, rank, place));
        sf_buf_putc(p->out, ']');
    }
    sf_buf_printf(p->out, "]> : tensor<%dx%dxi64>", all->count / size, size);
}

static void print_pairs(const ranks *all, sf_printer *p, sf_axes axes)
{
    sf_buf_puts(p->out, "source_target_pairs = dense<[");
    for (int rank = 0; rank < all->count; rank++)
        sf_buf_printf(p->out, "%s[%d, %d]", rank ? ", " : "",
                      sf_group_swapped(&all->plan->mesh, axes, rank), rank);
    sf_buf_printf(p->out, "]> : tensor<%dx2xi64>", all->count);
}

/* The attributes of StableHLO's op beside its groups. */
static void print_attributes(const ranks *all, sf_printer *p, const sf_node *node)
{
    sf_axes axes = (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer;
    sf_buf_printf(p->out, "<{channel_handle = #stablehlo.channel_handle<handle = %u, type = 1>, ",
                  node->id + 1);
    if (sf_is(node, SF_OP_PERMUTE)) {
        print_pairs(all, p, axes);
    } else {
        print_groups(all, p, axes);
        if (sf_is(node, SF_OP_ALL_TO_ALL))
            sf_buf_printf(p->out,
                          ", split_dimension = 0 : i64, concat_dimension = 0 : i64, "
                          "split_count = %d : i64",
                          sf_group_size(&all->plan->mesh, axes));
        else
            sf_buf_puts(p->out, ", use_global_device_ids");
    }
    if (sf_is(node, SF_OP_ALL_GATHER))
        sf_buf_puts(p->out, ", all_gather_dim = 0 : i64");
    if (sf_is(node, SF_OP_REDUCE_SCATTER))
        sf_buf_puts(p->out, ", scatter_dimension = 0 : i64");
    sf_buf_puts(p->out, "}>");
}

/* The op on one of the tensors. Here a gathered tensor and what is scattered have a dimension of the ranks in front; in
 * StableHLO that dimension is one of the tensor, of size 1 on each rank. */
static void print_tensor(const ranks *all, sf_printer *p, const sf_node *node, uint32_t i)
{
    const sf_value operand = node->operands[i], result = node->result + i;
    const sf_type *from = sf_type_of(p->graph, operand), *to = sf_type_of(p->graph, result);
    bool gathers = sf_is(node, SF_OP_ALL_GATHER), scatters = sf_is(node, SF_OP_REDUCE_SCATTER);
    const char *name = sf_is(node, SF_OP_PERMUTE) ? "collective_permute" : node->def->name;
    char before[SF_TYPE_TEXT], after[SF_TYPE_TEXT], row[32];
    snprintf(row, sizeof row, "%%n%u_%ur", node->id, i);
    if (gathers) {
        const sf_type *with_row = type_of_rows(p->graph, from, 1);
        sf_print_line(p);
        sf_buf_printf(p->out, "%s = stablehlo.reshape ", row);
        sf_print_values(p, &operand, 1);
        sf_buf_printf(p->out, " : (%s) -> ", sf_type_text(from, before));
        sf_buf_printf(p->out, "%s\n", sf_type_text(with_row, before));
        from = with_row;
    }
    sf_print_line(p);
    if (scatters)
        sf_buf_puts(p->out, row);
    else
        sf_print_values(p, &result, 1);
    sf_buf_printf(p->out, " = \"stablehlo.%s\"(", name);
    if (gathers)
        sf_buf_puts(p->out, row);
    else
        sf_print_values(p, &operand, 1);
    sf_buf_puts(p->out, ") ");
    print_attributes(all, p, node);
    p->indent++;
    sf_print_derived_regions(p, node);
    p->indent--;
    const sf_type *made = scatters ? type_of_rows(p->graph, to, 1) : to;
    sf_buf_printf(p->out, " : (%s) -> ", sf_type_text(from, before));
    sf_buf_printf(p->out, "%s\n", sf_type_text(made, after));
    if (!scatters)
        return;
    sf_print_line(p);
    sf_print_values(p, &result, 1);
    sf_buf_puts(p->out, " = ");
    print_reshape(p, row, made, to);
}

/* What a text says of shardings is about the whole step, and the plan has its own. */
static bool is_annotation(const sf_node *node)
{
    return sf_is(node, SF_OP_CUSTOM_CALL) && node->noperands == 1 && node->nresults == 1 &&
           strcmp(node->attrs[SF_CUSTOM_TARGET]->text, "Sharding") == 0;
}

static void print_as_operand(sf_printer *p, const sf_node *node)
{
    sf_print_results(p, node);
    sf_buf_puts(p->out, "stablehlo.reshape ");
    sf_print_values(p, node->operands, 1);
    sf_buf_puts(p->out, " : (");
    sf_print_types(p, node->operands, 1);
    sf_buf_puts(p->out, ") -> ");
    sf_print_result_types(p, node);
    sf_buf_putc(p->out, '\n');
}

static bool print_node(void *context, sf_printer *p, const sf_node *node)
{
    ranks *all = context;
    if (is_annotation(node)) {
        print_as_operand(p, node);
        return true;
    }
    for (uint32_t i = 0; node->def->collective && i < node->noperands; i++)
        print_tensor(all, p, node, i);
    if (node->def->collective)
        return true;
    if (!all->tables[node->id])
        return false;
    else if (sf_is(node, SF_OP_SLICE))
        print_slice_of_rank(all, p, node);
    else
        print_constant_of_rank(all, p, node);
    return true;
}

static sf_status compare_ranks(ranks *all, const sf_graph *graph)
{
    for (int rank = 1; rank < all->count; rank++) {
        sf_local *local;
        SF_TRY(sf_local_new(graph, all->plan, rank, all->diag, &local));
        sf_status status = compare_rank(all, local->graph, rank);
        sf_local_free(local);
        SF_TRY(status);
    }
    return SF_OK;
}

sf_status sf_print_ranks(const sf_graph *graph, const sf_plan *plan, sf_buf *out, sf_diag *diag)
{
    sf_local *local;
    ranks all = {.plan = plan, .count = sf_mesh_size(&plan->mesh), .diag = diag};
    SF_TRY(sf_local_new(graph, plan, 0, diag, &local));
    all.first = local->graph;
    all.tables = SF_ARRAY(&all.arena, all.first->nnodes, table *);
    sf_status status = compare_ranks(&all, graph);
    const sf_print_nodes nodes = {print_node, &all, "%rank: tensor<i32>"};
    if (status == SF_OK)
        sf_print_with(all.first, &nodes, out);
    sf_arena_free(&all.arena);
    sf_local_free(local);
    return status;
}

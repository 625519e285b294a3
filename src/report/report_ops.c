/* The table of ops as Markdown: element-wise ops, then all others, with the factors of a sample. */
#include <stdio.h>
#include <string.h>

#include "front/import.h"
#include "report/report_show.h"
#include "report/samples.h"

static const char INTRODUCTION[] =
    "<!-- The output of `sheaf show --ops`; a test compares them. -->\n"
    "\n"
    "# Ops\n"
    "\n"
    "Sheaf reads %d ops. A step with any other op is refused, and the message names the op. One "
    "definition in `src/op/`\n"
    "drives parsing, printing, type inference, cost, evaluation and this page.\n"
    "\n"
    "Element types: booleans (`i1`), integers (`i2` to `i64`, `ui2` to `ui64`), floats (`f64`, "
    "`f32`, `f16`, `bf16` and the\n"
    "8-, 6- and 4-bit formats), and complex numbers with `f32` or `f64` parts (`c64`, `c128` in "
    "HLO). Complex numbers have no\n"
    "order: `compare` takes EQ and NE only, and ops that need an order (`maximum`, `clamp`, "
    "`top_k`) refuse them.\n"
    "\n"
    "**Factors** are the loops of an op. In `[i,j], [j,k] -> [i,k]` each bracket is a tensor, "
    "operands first, and each letter\n"
    "is the loop over that dimension; `ij` is one dimension with two loops, the major one first, "
    "and `1` is a dimension\n"
    "without a loop. A loop can be split over ranks or time according to its role:\n"
    "\n"
    "| role | a part of the loop gives |\n"
    "|---|---|\n"
    "| map (unless another role is listed) | a part of the result |\n"
    "| reduce | a partial result of full shape; the parts are combined with the monoid in "
    "parentheses |\n"
    "| window | a part of the result, from a range of the operand (marked `~`) that overlaps its "
    "neighbour's |\n"
    "| whole | nothing: the loop cannot be split |\n"
    "\n"
    "**Linear in** lists sets of operands, counted from 0. If exactly the operands of one set are "
    "partial sums, the result is\n"
    "a partial sum too, and the reduction can happen later.\n";

/* A sample as it was read and, for an op with regions, imported: only then a body is a monoid. */
struct example {
    sf_pool *pool;
    sf_module *module;
    sf_graph *imported;
    sf_arena arena;
    sf_op op;
};

static const sf_node *find_node(const sf_graph *graph, const sf_block *block, const sf_opdef *def)
{
    for (uint32_t i = 0; i < block->nnodes; i++)
        if (graph->nodes[block->nodes[i]]->def == def)
            return graph->nodes[block->nodes[i]];
    return NULL;
}

static void close_example(struct example *example)
{
    sf_graph_free(example->imported);
    sf_module_free(example->module);
    sf_pool_release(example->pool);
    sf_arena_free(&example->arena);
}

/* True, and example->op set, when the text is a good sample of the op. */
static bool open_example(const sf_opdef *def, const sf_buf *text, struct example *example)
{
    sf_import_options options = {.unroll = 0, .most_nodes = SF_MOST_NODES_DEFAULT};
    sf_str step = {text->text, text->length};
    sf_diag diag = {0};
    *example = (struct example){.pool = sf_pool_new()};
    example->module = sf_module_new(example->pool);
    sf_status status = sf_stablehlo_read(step, "sample", example->module, &diag);
    if (status == SF_OK && def->nregions)
        status = sf_import(example->module, &options, &diag, &example->imported);
    sf_diag_clear(&diag);
    if (status == SF_OK) {
        const sf_graph *graph = example->imported ? example->imported : example->module->graph;
        const sf_block *block = example->imported ? graph->top : example->module->entry->block;
        const sf_node *node = find_node(graph, block, def);
        if (node) {
            size_t count = (size_t)node->noperands + node->nresults;
            example->op = sf_op_of(graph, node, SF_ARRAY(&example->arena, count, const sf_type *));
            return true;
        }
    }
    close_example(example);
    return false;
}

static void put_walked_tensor(const sf_factoring *factoring, int tensor, int rank, sf_buf *out)
{
    sf_buf_putc(out, '[');
    for (int d = 0; d < rank; d++) {
        const sf_walk *walk = &factoring->walks[tensor][d];
        sf_buf_puts(out, d ? "," : "");
        if (walk->count == 0)
            sf_buf_putc(out, '1');
        for (int f = 0; f < walk->count; f++)
            sf_buf_putc(out, sf_factor_letter(walk->factors[f]));
        sf_buf_puts(out, walk->halo ? "~" : "");
    }
    sf_buf_putc(out, ']');
}

static void put_factors(const sf_op *op, const sf_factoring *factoring, sf_buf *out)
{
    sf_buf_putc(out, '`');
    for (int t = 0; t < op->noperands + op->nresults; t++) {
        if (t == op->noperands)
            sf_buf_puts(out, t ? " -> " : "-> ");
        else
            sf_buf_puts(out, t ? ", " : "");
        put_walked_tensor(factoring, t,
                          t < op->noperands ? op->in[t]->rank : op->out[t - op->noperands]->rank,
                          out);
    }
    sf_buf_putc(out, '`');
    for (int f = 0; f < factoring->nfactors; f++) {
        const sf_factor *factor = &factoring->factors[f];
        if (factor->role == SF_REDUCE)
            sf_buf_printf(out, "; `%c` reduce (%s)", sf_factor_letter(f),
                          sf_monoid_name(factor->monoid));
        else if (factor->role == SF_WINDOW)
            sf_buf_printf(out, "; `%c` window", sf_factor_letter(f));
        else if (factor->role == SF_WHOLE)
            sf_buf_printf(out, "; `%c` whole", sf_factor_letter(f));
    }
}

/* "{0}, {0,1}"; "-" for none. */
static void put_linear(const sf_op *op, sf_buf *out)
{
    uint32_t masks[SF_MAX_LINEAR];
    int count = op->def->linear ? op->def->linear(op, masks) : 0;
    if (count == 0)
        sf_buf_putc(out, '-');
    for (int i = 0; i < count; i++) {
        sf_buf_puts(out, i ? ", {" : "{");
        bool any = false;
        for (int operand = 0; operand < 32; operand++)
            if (masks[i] & 1U << operand) {
                sf_buf_printf(out, "%s%d", any ? "," : "", operand);
                any = true;
            }
        sf_buf_putc(out, '}');
    }
}

static void put_attributes(const sf_opdef *def, sf_buf *out)
{
    bool any = false;
    for (int i = 0; i < def->nattrs; i++) {
        const sf_attrdef *attr = &def->attrs[i];
        if (attr->derived)
            continue;
        sf_buf_printf(out, "%s`%s`%s", any ? ", " : "", attr->name, attr->required ? "" : "?");
        any = true;
    }
    sf_buf_puts(out, any ? "" : "-");
}

/* In a table a bar ends the cell. */
static void put_cell(sf_buf *out, const char *text)
{
    for (; *text; text++)
        sf_buf_printf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void put_names(const sf_opdef *def, sf_buf *out)
{
    sf_buf_printf(out, "| `%s.%s` | %s%s%s | ", def->dialect, def->name, def->hlo ? "`" : "",
                  def->hlo ? def->hlo : "-", def->hlo ? "`" : "");
}

/* A row of an op that is not element-wise: with the factors of its sample, if it has one. */
static void put_row(const sf_opdef *def, sf_buf *out)
{
    sf_buf text = {0};
    struct example example;
    bool found = sf_sample(def, &text) && open_example(def, &text, &example);
    sf_buf_free(&text);
    put_names(def, out);
    if (found) {
        sf_factoring factoring;
        sf_op_factors(&example.op, &example.arena, &factoring);
        put_factors(&example.op, &factoring, out);
        sf_buf_puts(out, " | ");
        put_linear(&example.op, out);
        close_example(&example);
    } else {
        sf_buf_puts(out, "- | -");
    }
    sf_buf_puts(out, " | ");
    put_attributes(def, out);
    sf_buf_puts(out, " | ");
    put_cell(out, def->doc);
    sf_buf_puts(out, " |\n");
}

/* All loops map, and every tensor is walked by all of them in the same order. */
static bool is_pointwise(const sf_op *op, sf_arena *arena)
{
    sf_factoring factoring;
    sf_op_factors(op, arena, &factoring);
    for (int f = 0; f < factoring.nfactors; f++)
        if (factoring.factors[f].role != SF_MAP)
            return false;
    for (int t = 0; t < op->noperands + op->nresults; t++)
        for (int d = 0; d < 2; d++)
            if (factoring.walks[t][d].count != 1 || factoring.walks[t][d].halo ||
                factoring.walks[t][d].factors[0] != factoring.walks[0][d].factors[0])
                return false;
    return factoring.nfactors == 2;
}

/* A row of the table of element-wise ops; false when the op is not one. */
static bool put_pointwise_row(const sf_opdef *def, sf_buf *out)
{
    static const sf_dtype tried[] = {SF_F32, SF_S32, SF_PRED};
    sf_buf text = {0};
    struct example example;
    bool found = false, has_sample = sf_sample(def, &text);
    sf_buf_free(&text);
    if (has_sample || def->min_operands < 1 || def->min_operands != def->max_operands ||
        def->nresults != 1)
        return false;
    for (size_t i = 0; !found && i < sizeof tried / sizeof *tried; i++) {
        sf_sample_pointwise(def, tried[i], &text);
        found = open_example(def, &text, &example);
        sf_buf_free(&text);
    }
    if (!found)
        return false;
    bool pointwise = is_pointwise(&example.op, &example.arena);
    if (pointwise) {
        put_names(def, out);
        sf_buf_printf(out, "%d | ", def->min_operands);
        put_linear(&example.op, out);
        sf_buf_puts(out, " | ");
        put_cell(out, def->doc);
        sf_buf_puts(out, " |\n");
    }
    close_example(&example);
    return pointwise;
}

void sf_ops_text(sf_buf *out)
{
    bool pointwise[SF_OP_COUNT];
    sf_buf_printf(out, INTRODUCTION, SF_OP_COUNT);
    sf_buf_puts(out, "\n## Element-wise ops\n\n"
                     "All operands and the result have one shape; every loop maps.\n\n"
                     "| op | HLO | operands | linear in | result |\n"
                     "|---|---|---|---|---|\n");
    for (int i = 0; i < SF_OP_COUNT; i++)
        pointwise[i] = put_pointwise_row(sf_opdef_get((sf_opcode)i), out);
    sf_buf_puts(out, "\n## Other ops\n\n"
                     "The factors are those of a small example. An attribute with a `?` is "
                     "optional.\n\n"
                     "| op | HLO | factors | linear in | attributes | result |\n"
                     "|---|---|---|---|---|---|\n");
    for (int i = 0; i < SF_OP_COUNT; i++)
        if (!pointwise[i])
            put_row(sf_opdef_get((sf_opcode)i), out);
}

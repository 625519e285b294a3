#include "ir/print_graph.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ir/opdef.h"

void sf_print_line(sf_printer *p)
{
    for (int i = 0; i < p->indent; i++)
        sf_buf_puts(p->out, "  ");
}

void sf_print_type(sf_printer *p, const sf_type *type)
{
    char text[SF_TYPE_TEXT];
    sf_buf_puts(p->out, sf_type_text(type, text));
}

/* A string literal of MLIR: printable characters, and \XX for all others. */
static void print_bytes(sf_buf *out, sf_str text)
{
    sf_buf_putc(out, '"');
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c >= ' ' && c < 127 && c != '"' && c != '\\')
            sf_buf_putc(out, text.at[i]);
        else
            sf_buf_printf(out, "\\%02X", c);
    }
    sf_buf_putc(out, '"');
}

static void print_string(sf_buf *out, const char *text)
{
    print_bytes(out, sf_str_of(text));
}

/* @name, in quotes where it is no identifier. */
static void print_symbol(sf_buf *out, sf_str name)
{
    bool bare = name.length > 0 && (isalpha((unsigned char)name.at[0]) || name.at[0] == '_');
    for (size_t i = 0; i < name.length; i++)
        bare = bare && (isalnum((unsigned char)name.at[i]) || memchr("_$.", name.at[i], 3));
    sf_buf_putc(out, '@');
    if (bare)
        sf_buf_add(out, name.at, name.length);
    else
        print_bytes(out, name);
}

static void print_value(sf_printer *p, sf_value value)
{
    value = p->shown[value];
    const sf_value_info *info = &p->graph->values[value];
    if (info->node == SF_NONE) {
        sf_buf_printf(p->out, "%%arg%u", value);
        return;
    }
    const sf_node *node = p->graph->nodes[info->node];
    if (p->nodes && node->def->collective && node->nresults > 1) {
        sf_buf_printf(p->out, "%%n%u_%u", node->id, info->index);
        return;
    }
    sf_buf_printf(p->out, "%%%u", node->id);
    if (node->nresults > 1)
        sf_buf_printf(p->out, "#%u", info->index);
}

void sf_print_values(sf_printer *p, const sf_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            sf_buf_puts(p->out, ", ");
        print_value(p, values[i]);
    }
}

void sf_print_types(sf_printer *p, const sf_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            sf_buf_puts(p->out, ", ");
        sf_print_type(p, sf_type_of(p->graph, values[i]));
    }
}

void sf_print_result_types(sf_printer *p, const sf_node *node)
{
    if (node->nresults != 1)
        sf_buf_putc(p->out, '(');
    for (uint32_t i = 0; i < node->nresults; i++) {
        if (i)
            sf_buf_puts(p->out, ", ");
        sf_print_type(p, sf_type_of(p->graph, node->result + i));
    }
    if (node->nresults != 1)
        sf_buf_putc(p->out, ')');
}

/* Printf follows the locale of the program: its point is all that comes after the first digit and is
 * no digit. */
static void print_real(sf_buf *out, double value, int decimals)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", decimals, value);
    const char *rest = text + (text[0] == '-') + 1;
    sf_buf_add(out, text, (size_t)(rest - text));
    sf_buf_putc(out, '.');
    sf_buf_puts(out, rest + strcspn(rest, "0123456789"));
}

static void print_number(sf_buf *out, sf_dtype dtype, const void *data, int64_t index)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    if (dtype == SF_PRED) {
        sf_buf_puts(out, sf_load_i64(dtype, data, index) ? "true" : "false");
    } else if (info->class == SF_UNSIGNED) {
        sf_buf_printf(out, "%" PRIu64, (uint64_t)sf_load_i64(dtype, data, index));
    } else if (info->class == SF_SIGNED) {
        sf_buf_printf(out, "%" PRId64, sf_load_i64(dtype, data, index));
    } else if (isfinite(sf_load_f64(dtype, data, index))) {
        print_real(out, sf_load_f64(dtype, data, index), dtype == SF_F64 ? 16 : 8);
    } else {
        sf_buf_printf(out, "0x%0*" PRIX64, (info->bits + 3) / 4, sf_load_bits(dtype, data, index));
    }
}

static void print_element(sf_buf *out, sf_dtype dtype, const void *data, int64_t index)
{
    if (!sf_is_complex(dtype)) {
        print_number(out, dtype, data, index);
        return;
    }
    sf_buf_putc(out, '(');
    print_number(out, sf_part_of(dtype), data, 2 * index);
    sf_buf_putc(out, ',');
    print_number(out, sf_part_of(dtype), data, 2 * index + 1);
    sf_buf_putc(out, ')');
}

static void print_nested(sf_buf *out, const sf_dense *dense, int dim, int64_t *index)
{
    if (dim == dense->type->rank) {
        print_element(out, dense->type->dtype, dense->data, (*index)++);
        return;
    }
    sf_buf_putc(out, '[');
    for (int64_t i = 0; i < dense->type->dims[dim]; i++) {
        if (i)
            sf_buf_puts(out, ", ");
        print_nested(out, dense, dim + 1, index);
    }
    sf_buf_putc(out, ']');
}

/* Many numbers are written as the hex of their little-endian bytes, which is exact and short. */
static void print_hex(sf_buf *out, const sf_dense *dense)
{
    static const char digits[] = "0123456789ABCDEF";
    sf_dtype dtype = sf_part_of(dense->type->dtype);
    int64_t count = dense->type->count * sf_parts_of(dense->type->dtype);
    sf_buf_puts(out, "\"0x");
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = sf_load_bits(dtype, dense->data, i);
        for (int byte = 0; byte < sf_dtype_get(dtype)->bytes; byte++, bits >>= 8) {
            char pair[2] = {digits[bits >> 4 & 15], digits[bits & 15]};
            sf_buf_add(out, pair, 2);
        }
    }
    sf_buf_putc(out, '"');
}

void sf_print_dense(sf_printer *p, const sf_dense *dense)
{
    enum { FEW = 16 };
    int64_t index = 0;
    if (!dense->data) {
        sf_buf_puts(p->out, "dense_resource<__elided__> : ");
        sf_print_type(p, dense->type);
        return;
    }
    sf_buf_puts(p->out, "dense<");
    if (dense->type->count == 0 && !dense->splat)
        ; /* dense<> */
    else if (dense->splat)
        print_element(p->out, dense->type->dtype, dense->data, 0);
    else if (dense->type->count <= FEW || sf_dtype_get(dense->type->dtype)->bits < 8)
        print_nested(p->out, dense, 0, &index);
    else
        print_hex(p->out, dense);
    sf_buf_puts(p->out, "> : ");
    sf_print_type(p, dense->type);
}

static void print_ints(sf_buf *out, const sf_attr *attr, bool as_bools)
{
    for (int i = 0; i < attr->count; i++) {
        if (i)
            sf_buf_puts(out, ", ");
        if (as_bools)
            sf_buf_puts(out, attr->ints[i] ? "true" : "false");
        else
            sf_buf_printf(out, "%" PRId64, attr->ints[i]);
    }
}

static void print_pairs(sf_buf *out, const sf_attr *attr)
{
    sf_buf_puts(out, "dense<[");
    for (int i = 0; i + 1 < attr->count; i += 2)
        sf_buf_printf(out, "%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "", attr->ints[i],
                      attr->ints[i + 1]);
    sf_buf_printf(out, "]> : tensor<%dx2xi64>", attr->count / 2);
}

static void print_enums(sf_buf *out, const sf_attrdef *def, const char *list)
{
    sf_buf_putc(out, '[');
    while (*list) {
        size_t length = strcspn(list, ",");
        sf_buf_printf(out, "%s%.*s>", def->prefix, (int)length, list);
        list += length;
        if (*list++ == 0)
            break;
        sf_buf_puts(out, ", ");
    }
    sf_buf_putc(out, ']');
}

/* The value in the generic form. Inside of a struct attribute, lists and numbers are bare. */
static void print_attr(sf_printer *p, const sf_attrdef *def, const sf_attr *attr, bool bare)
{
    sf_buf *out = p->out;
    switch (attr->kind) {
    case SF_ATTR_INT:
        if (def->text == SF_AS_BOOL)
            sf_buf_puts(out, attr->integer ? "true" : "false");
        else
            sf_buf_printf(out, bare ? "%" PRId64 "%s" : "%" PRId64 " : %s", attr->integer,
                          bare                     ? ""
                          : def->text == SF_AS_I32 ? "i32"
                                                   : "i64");
        break;
    case SF_ATTR_INTS:
        if (def->text == SF_AS_PAIRS && !bare) {
            print_pairs(out, attr);
            break;
        }
        bool as_bools = def->text == SF_AS_BOOLS;
        sf_buf_puts(out, bare ? "[" : as_bools ? "array<i1: " : "array<i64: ");
        if (!bare && attr->count == 0)
            out->length -= 2; /* array<i64> */
        print_ints(out, attr, as_bools);
        sf_buf_puts(out, bare ? "]" : ">");
        break;
    case SF_ATTR_TEXT:
        if (def->text == SF_AS_SYMBOL)
            print_symbol(out, sf_attr_bytes(attr));
        else if (def->text == SF_AS_ENUMS)
            print_enums(out, def, attr->text);
        else if (def->prefix && !bare)
            sf_buf_printf(out, "%s%s>", def->prefix, attr->text);
        else if (def->prefix)
            sf_buf_puts(out, attr->text);
        else
            print_bytes(out, sf_attr_bytes(attr));
        break;
    case SF_ATTR_DENSE:
        if (def->text == SF_AS_F32) {
            print_number(out, SF_F32, attr->dense.data, 0);
            sf_buf_puts(out, " : f32");
            break;
        }
        sf_print_dense(p, &attr->dense);
        break;
    }
}

static bool is_written(const sf_node *node, int slot)
{
    const sf_attrdef *def = &node->def->attrs[slot];
    return (node->attrs[slot] && !def->derived) || def->always;
}

/* #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>: MLIR has a form of its own for the
 * dimension numbers of a convolution; the nine slots start at `slot`. */
static void print_conv_numbers(sf_printer *p, const sf_node *node, int slot)
{
    static const char letters[3][2] = {{'b', 'f'}, {'i', 'o'}, {'b', 'f'}};
    static const char *const before[3] = {"<", "x", "->"};
    sf_buf_puts(p->out, node->def->group);
    for (int part = 0; part < 3; part++, slot += 3) {
        const sf_attr *spatial = node->attrs[slot + 2];
        int count = spatial ? spatial->count : 0;
        sf_buf_puts(p->out, before[part]);
        for (int dim = 0; dim < count + 2; dim++) {
            sf_buf_puts(p->out, dim ? ", " : "[");
            for (int i = 0; i < 2; i++)
                if (node->attrs[slot + i]->integer == dim)
                    sf_buf_putc(p->out, letters[part][i]);
            for (int i = 0; i < count; i++)
                if (spatial->ints[i] == dim)
                    sf_buf_printf(p->out, "%d", i);
        }
        sf_buf_putc(p->out, ']');
    }
    sf_buf_putc(p->out, '>');
}

static int print_group(sf_printer *p, const sf_node *node, int slot)
{
    const sf_opdef *def = node->def;
    const char *group = def->attrs[slot].group;
    bool is_conv = def->form == SF_FORM_CONV;
    bool any = false;
    int end = slot;
    sf_buf_printf(p->out, "%s = ", group);
    if (is_conv)
        print_conv_numbers(p, node, slot);
    else
        sf_buf_printf(p->out, "%s<", def->group);
    for (; end < def->nattrs && def->attrs[end].group; end++) {
        if (is_conv || !is_written(node, end))
            continue;
        sf_buf_printf(p->out, "%s%s = ", any ? ", " : "", def->attrs[end].name);
        print_attr(p, &def->attrs[end], node->attrs[end], true);
        any = true;
    }
    if (!is_conv)
        sf_buf_putc(p->out, '>');
    return end - 1;
}

/* mhlo.sharding holds an HLO sharding, "{replicated}". One of Shardy is kept under a name that no
 * other tool reads. */
static const char *sharding_name(const char *sharding)
{
    return *sharding == '{' ? "mhlo.sharding" : "sheaf.sharding";
}

/* Whether the text is a dictionary that reads back verbatim. */
static bool is_dictionary(const sf_attr *attr)
{
    const char *text = attr->text;
    enum { DEEPEST = 32 };
    static const char opening[] = "{[(<", closing[] = "}])>";
    char open[DEEPEST];
    int depth = 0;
    bool quoted = false;
    for (const char *at = text; *at; at++) {
        const char *close = strchr(closing, *at);
        if (*at < ' ' || *at > '~')
            return false;
        if (*at == '"')
            quoted = !quoted;
        else if (quoted && *at == '\\' && *++at < ' ')
            return false;
        if (quoted || *at == '"')
            continue;
        if (strchr(opening, *at)) {
            if (depth == DEEPEST)
                return false;
            open[depth++] = *at;
        } else if (close) {
            if (depth == 0 || open[--depth] != opening[close - closing] || (depth == 0 && at[1]))
                return false;
        } else if (depth == 0 || *at == '/' || *at == '\\' || (*at == '-' && at[1] == '>')) {
            return false;
        }
    }
    return *text == '{' && depth == 0 && !quoted && strlen(text) == (size_t)attr->count;
}

/* A call by the typed interface, API version 4, is configured by a dictionary. */
static bool is_typed_call(const sf_node *node)
{
    int slot = sf_attr_slot(node->def, sf_str_of("api_version"));
    return slot >= 0 && node->attrs[slot] && node->attrs[slot]->integer == 4;
}

static void print_property(sf_printer *p, const sf_node *node, int slot)
{
    const sf_attrdef *def = &node->def->attrs[slot];
    const sf_attr *attr = node->attrs[slot];
    const char *name = def->name;
    if (strcmp(name, "mhlo.sharding") == 0)
        name = sharding_name(attr->text);
    if (strchr(name, '.'))
        print_string(p->out, name);
    else
        sf_buf_puts(p->out, name);
    sf_buf_puts(p->out, " = ");
    if (!attr)
        sf_buf_printf(p->out, "%d : i64", def->absent == SF_ABSENT_ONES);
    else if (def->text == SF_AS_CONFIG && is_typed_call(node) && is_dictionary(attr))
        sf_buf_puts(p->out, attr->text);
    else
        print_attr(p, def, attr, false);
}

static void print_properties(sf_printer *p, const sf_node *node)
{
    const sf_opdef *def = node->def;
    bool any = false;
    for (int i = 0; i < def->nattrs; i++) {
        if (!def->attrs[i].group && !is_written(node, i))
            continue;
        sf_buf_puts(p->out, any ? ", " : " <{");
        any = true;
        if (def->attrs[i].group) {
            i = print_group(p, node, i);
            continue;
        }
        print_property(p, node, i);
    }
    if (any)
        sf_buf_puts(p->out, "}>");
}

static void print_location(sf_printer *p, const sf_node *node)
{
    static const char *const phases[] = {"jvp()/", "transpose(jvp())/", ""};
    if (!p->graph->has_scopes || p->graph->scopes_guessed)
        return;
    sf_buf path = {0};
    sf_buf_printf(&path, "%s%s%s%s", phases[node->phase], node->scope->path,
                  node->scope->depth ? "/" : "", node->def->name);
    sf_buf_puts(p->out, " loc(");
    print_string(p->out, path.text);
    sf_buf_puts(p->out, ")");
    sf_buf_free(&path);
}

static void print_block(sf_printer *p, const sf_block *block, const char *terminator);

static void print_region(sf_printer *p, const sf_node *node, const sf_block *block)
{
    uint32_t own = sf_own_operands(node), narguments = block->narguments - (node->noperands - own);
    for (uint32_t i = own; i < node->noperands; i++)
        p->shown[block->arguments[i - sf_first_entering(node)]] = p->shown[node->operands[i]];
    sf_buf_puts(p->out, "{\n");
    if (narguments) {
        sf_print_line(p);
        sf_buf_puts(p->out, "^bb0(");
        for (uint32_t i = 0; i < narguments; i++) {
            if (i)
                sf_buf_puts(p->out, ", ");
            print_value(p, block->arguments[i]);
            sf_buf_puts(p->out, ": ");
            sf_print_type(p, sf_type_of(p->graph, block->arguments[i]));
        }
        sf_buf_puts(p->out, "):\n");
    }
    print_block(p, block, "stablehlo.return");
    sf_print_line(p);
    sf_buf_putc(p->out, '}');
}

/* A region of one op on two scalars: import replaced it by a monoid or a comparison. */
static void print_binary_region(sf_printer *p, const sf_type *type, const char *op)
{
    char t[SF_TYPE_TEXT];
    snprintf(t, sizeof t, "tensor<%s>", sf_dtype_get(type->dtype)->name);
    bool is_compare = strlen(op) == 2 && op[1] >= 'A' && op[1] <= 'Z';
    sf_buf_puts(p->out, "{\n");
    sf_print_line(p);
    sf_buf_printf(p->out, "^bb0(%%a: %s, %%b: %s):\n", t, t);
    sf_print_line(p);
    if (is_compare)
        sf_buf_printf(p->out, "  %%c = stablehlo.compare %s, %%a, %%b : (%s, %s) -> tensor<i1>\n",
                      op, t, t);
    else if (*op)
        sf_buf_printf(p->out, "  %%c = stablehlo.%s %%a, %%b : %s\n", op, t);
    if (is_compare || *op) {
        sf_print_line(p);
        sf_buf_printf(p->out, "  stablehlo.return %%c : %s\n", is_compare ? "tensor<i1>" : t);
    } else {
        sf_buf_printf(p->out, "  stablehlo.return %%b : %s\n", t);
    }
    sf_print_line(p);
    sf_buf_putc(p->out, '}');
}

void sf_print_derived_regions(sf_printer *p, const sf_node *node)
{
    static const char *const ops[SF_MONOID_COUNT] = {
        [SF_MONOID_NONE] = "",       [SF_MONOID_ADD] = "add",     [SF_MONOID_MUL] = "multiply",
        [SF_MONOID_MIN] = "minimum", [SF_MONOID_MAX] = "maximum", [SF_MONOID_AND] = "and",
        [SF_MONOID_OR] = "or",       [SF_MONOID_XOR] = "xor",     [SF_MONOID_SECOND] = "",
    };
    int body = sf_attr_slot(node->def, sf_str_of("body"));
    int select = sf_attr_slot(node->def, sf_str_of("select"));
    if (body < 0 || !node->attrs[body])
        return;
    const sf_type *type = sf_type_of(p->graph, node->result);
    sf_buf_puts(p->out, " (");
    if (select >= 0) {
        print_binary_region(p, type, node->attrs[select]->text);
        sf_buf_puts(p->out, ", ");
    }
    print_binary_region(p, type, ops[node->attrs[body]->integer]);
    sf_buf_putc(p->out, ')');
}

static void print_generic(sf_printer *p, const sf_node *node)
{
    sf_buf_printf(p->out, "\"%s.%s\"(", node->def->dialect, node->def->name);
    sf_print_values(p, node->operands, sf_own_operands(node));
    sf_buf_putc(p->out, ')');
    print_properties(p, node);
    p->indent++;
    if (node->nregions == 0)
        sf_print_derived_regions(p, node);
    for (uint32_t i = 0; i < node->nregions; i++) {
        sf_buf_puts(p->out, i ? ", " : " (");
        print_region(p, node, node->regions[i]);
    }
    if (node->nregions)
        sf_buf_putc(p->out, ')');
    p->indent--;
    sf_buf_puts(p->out, " : (");
    sf_print_types(p, node->operands, sf_own_operands(node));
    sf_buf_puts(p->out, ") -> ");
    sf_print_result_types(p, node);
}

static bool same_types(const sf_printer *p, const sf_node *node)
{
    const sf_type *type = sf_type_of(p->graph, node->result);
    for (uint32_t i = 0; i < node->noperands; i++)
        if (sf_type_of(p->graph, node->operands[i]) != type)
            return false;
    return true;
}

static bool has_pretty_form(const sf_node *node)
{
    const sf_opdef *def = node->def;
    if (def->form != SF_FORM_OPERANDS || node->nresults != 1 || def->nregions ||
        strcmp(def->dialect, "stablehlo") != 0)
        return false;
    for (int i = 0; i < def->nattrs; i++)
        if (!def->attrs[i].key || !node->attrs[i])
            return false;
    return true;
}

static void print_pretty(sf_printer *p, const sf_node *node)
{
    const sf_opdef *def = node->def;
    sf_buf_printf(p->out, "stablehlo.%s ", def->name);
    sf_print_values(p, node->operands, node->noperands);
    for (int i = 0; i < def->nattrs; i++) {
        sf_buf_printf(p->out, "%s%s = ", node->noperands || i ? ", " : "", def->attrs[i].key);
        print_attr(p, &def->attrs[i], node->attrs[i], true);
    }
    sf_buf_puts(p->out, " : ");
    bool is_short =
        def->nattrs == 0 && !def->declared && node->noperands <= 2 && same_types(p, node);
    if (node->noperands && !is_short) {
        sf_buf_putc(p->out, '(');
        sf_print_types(p, node->operands, node->noperands);
        sf_buf_puts(p->out, ") -> ");
    }
    sf_print_type(p, sf_type_of(p->graph, node->result));
}

void sf_print_results(sf_printer *p, const sf_node *node)
{
    sf_print_line(p);
    if (node->nresults > 0)
        sf_buf_printf(p->out, "%%%u", node->id);
    if (node->nresults > 1)
        sf_buf_printf(p->out, ":%u", node->nresults);
    if (node->nresults > 0)
        sf_buf_puts(p->out, " = ");
}

static void print_node(sf_printer *p, const sf_node *node)
{
    if (p->nodes && p->nodes->print(p->nodes->context, p, node))
        return;
    sf_print_results(p, node);
    if (node->def->form == SF_FORM_CONSTANT) {
        sf_buf_puts(p->out, "stablehlo.constant ");
        sf_print_dense(p, &node->attrs[0]->dense);
    } else if (has_pretty_form(node)) {
        print_pretty(p, node);
    } else {
        print_generic(p, node);
    }
    print_location(p, node);
    sf_buf_putc(p->out, '\n');
}

static void print_block(sf_printer *p, const sf_block *block, const char *terminator)
{
    p->indent++;
    for (uint32_t i = 0; i < block->nnodes; i++)
        print_node(p, p->graph->nodes[block->nodes[i]]);
    sf_print_line(p);
    sf_buf_puts(p->out, terminator);
    if (block->nresults) {
        sf_buf_putc(p->out, ' ');
        sf_print_values(p, block->results, block->nresults);
        sf_buf_puts(p->out, " : ");
        sf_print_types(p, block->results, block->nresults);
    }
    sf_buf_putc(p->out, '\n');
    p->indent--;
}

static void print_signature(sf_printer *p)
{
    const sf_graph *graph = p->graph;
    const sf_block *top = graph->top;
    sf_buf_puts(p->out, "  func.func public @main(");
    if (p->nodes)
        sf_buf_puts(p->out, p->nodes->first);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        bool any = false;
        if (i || p->nodes)
            sf_buf_puts(p->out, ", ");
        print_value(p, top->arguments[i]);
        sf_buf_puts(p->out, ": ");
        sf_print_type(p, sf_type_of(graph, top->arguments[i]));
        if (argument->sharding) {
            sf_buf_printf(p->out, " {%s = ", sharding_name(argument->sharding));
            print_string(p->out, argument->sharding);
            any = true;
        }
        /* Inferred facts are not written. */
        if (argument->next_from == SF_FROM_ALIAS || argument->next_from == SF_FROM_USER ||
            argument->next_from == SF_FROM_SIDECAR) {
            sf_buf_printf(p->out, "%stf.aliasing_output = %u : i32", any ? ", " : " {",
                          argument->next);
            any = true;
        }
        sf_buf_puts(p->out, any ? "} loc(" : " loc(");
        print_string(p->out, argument->name);
        sf_buf_putc(p->out, ')');
    }
    sf_buf_puts(p->out, ") -> (");
    for (uint32_t i = 0; i < top->nresults; i++) {
        if (i)
            sf_buf_puts(p->out, ", ");
        sf_print_type(p, sf_type_of(graph, top->results[i]));
        if (*graph->results[i].name) {
            sf_buf_puts(p->out, " {jax.result_info = ");
            print_string(p->out, graph->results[i].name);
            sf_buf_putc(p->out, '}');
        }
    }
    sf_buf_puts(p->out, ") {\n");
}

void sf_print_with(const sf_graph *graph, const sf_print_nodes *nodes, sf_buf *out)
{
    sf_printer p = {graph, out, 1, sf_alloc(graph->nvalues * sizeof *p.shown), nodes};
    for (size_t v = 0; v < graph->nvalues; v++)
        p.shown[v] = (sf_value)v;
    sf_buf_puts(out, "module @");
    print_string(out, graph->name);
    sf_buf_puts(out, " {\n");
    print_signature(&p);
    print_block(&p, graph->top, "return");
    sf_buf_puts(out, "  }\n}\n");
    sf_free(p.shown);
}

void sf_print_stablehlo(const sf_graph *graph, sf_buf *out)
{
    sf_print_with(graph, NULL, out);
}

/* Attribute values. The slot in the op's definition determines the form of an attribute, so all
 * spellings of a value (`[1, 2]`, `array<i64: 1, 2>`, `dense<[1, 2]> : tensor<2xi64>`) become the
 * same one. */
#include <string.h>

#include "front/stablehlo/mlir_reader.h"
#include "op/op.h"
#include "op/slots.h"

/* Attributes that do not change the computation. */
static const char *const ignored[] = {
    "result_accuracy",     "operand_layouts", "result_layouts", "output_operand_aliases",
    "called_computations", "sym_visibility",  "no_inline",
};

static bool is_ignored(sf_str name)
{
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (sf_str_is(name, ignored[i]))
            return true;
    return memchr(name.at, '.', name.length) || sf_str_starts(name, "xla_");
}

static bool in_group(const sf_attrdef *slot, const char *group)
{
    return group ? slot->group && strcmp(slot->group, group) == 0 : !slot->group;
}

static int find_attr_slot(const sf_opdef *def, const char *group, sf_str name)
{
    for (int i = 0; i < def->nattrs; i++)
        if (!def->attrs[i].derived && in_group(&def->attrs[i], group) &&
            sf_str_is(name, def->attrs[i].name))
            return i;
    return -1;
}

int sf_mlir_slot(const sf_opdef *def, sf_str key)
{
    for (int i = 0; i < def->nattrs; i++)
        if (!def->attrs[i].derived && def->attrs[i].key && sf_str_is(key, def->attrs[i].key))
            return i;
    return find_attr_slot(def, NULL, key);
}

static const char *find_attr_group(const sf_opdef *def, sf_str name)
{
    for (int i = 0; i < def->nattrs; i++)
        if (def->attrs[i].group && sf_str_is(name, def->attrs[i].group))
            return def->attrs[i].group;
    return NULL;
}

sf_status sf_mlir_skip_value(sf_mlir *r)
{
    return sf_scan_value(&r->scan) ? SF_OK : sf_mlir_expected(r, "an attribute value");
}

sf_status sf_mlir_skip_attributes(sf_mlir *r)
{
    if (!sf_scan_word(&r->scan, "attributes"))
        return SF_OK;
    if (!sf_scan_is(&r->scan, '{') || !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "attributes in {}");
    return SF_OK;
}

/* If an alias is next, goes to its value, and `after` is where to go on; `after->at` is NULL
 * without an alias. The value is read for each use, so it must be short. */
static sf_status follow_alias(sf_mlir *r, sf_scan *after)
{
    enum { LONGEST = 4096 };
    after->at = NULL;
    if (!sf_scan_is(&r->scan, '#'))
        return SF_OK;
    sf_scan start = r->scan;
    sf_str name = sf_scan_sigil(&r->scan, '#');
    const sf_mlir_alias *alias = sf_mlir_alias_of(r, '#', name);
    if (!alias->value.at) {
        r->scan = start;
        return SF_OK;
    }
    if (alias->length > LONGEST) {
        r->scan = start;
        return SF_MLIR_FAIL(r, SF_EUNSUPPORTED, sf_mlir_here(r),
                            "the value of #%.*s is too long for an alias", SF_STR_ARGS(name));
    }
    *after = r->scan;
    r->scan = alias->value;
    return SF_OK;
}

static void leave_alias(sf_mlir *r, const sf_scan *after)
{
    if (after->at)
        r->scan = *after;
}

/* The type after a value in a dictionary. */
static sf_status skip_type(sf_mlir *r)
{
    return sf_scan_take(&r->scan, ':') ? sf_mlir_skip_value(r) : SF_OK;
}

/* `: i64` after an element of a list. */
static void skip_element_type(sf_mlir *r)
{
    sf_scan after = r->scan;
    if (sf_scan_take(&after, ':') && sf_scan_name(&after).length)
        r->scan = after;
}

static sf_status parse_int(sf_mlir *r, int64_t *out)
{
    if (sf_scan_word(&r->scan, "true") || sf_scan_word(&r->scan, "unit"))
        *out = 1;
    else if (sf_scan_word(&r->scan, "false"))
        *out = 0;
    else if (!sf_scan_int(&r->scan, out))
        return sf_mlir_expected(r, "an integer or a boolean");
    return SF_OK;
}

static sf_status push_int(sf_mlir *r, int64_t value)
{
    if (r->nints >= SF_MLIR_MAX_LIST)
        return SF_MLIR_FAIL(r, SF_EUNSUPPORTED, sf_mlir_here(r),
                            "a list in an attribute has more than %d numbers", SF_MLIR_MAX_LIST);
    SF_PUSH(&r->arena, r->ints, r->nints, r->int_capacity, value);
    return SF_OK;
}

/* The elements up to the closing bracket, which is taken; lists in the list are laid end to end. */
static sf_status parse_elements(sf_mlir *r, char close)
{
    int depth = 0;
    for (;;) {
        while (sf_scan_take(&r->scan, '['))
            if (++depth > SF_MAX_DEPTH)
                return sf_mlir_expected(r, "a list that is not nested so deeply");
        if (depth == 0 || !sf_scan_is(&r->scan, ']')) {
            int64_t value;
            SF_TRY(parse_int(r, &value));
            SF_TRY(push_int(r, value));
            skip_element_type(r);
        }
        while (depth > 0 && sf_scan_take(&r->scan, ']'))
            depth--;
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    return sf_mlir_take(r, depth > 0 ? ']' : close);
}

static const sf_attr *take_ints(sf_mlir *r)
{
    return sf_attr_ints(r->pool, (int)r->nints, r->ints);
}

sf_status sf_mlir_int_list(sf_mlir *r, const sf_attr **out)
{
    r->nints = 0;
    SF_TRY(sf_mlir_take(r, '['));
    if (!sf_scan_take(&r->scan, ']'))
        SF_TRY(parse_elements(r, ']'));
    *out = take_ints(r);
    return SF_OK;
}

/* `array<i64: 1, 2>`, from the '<' on. */
static sf_status parse_array(sf_mlir *r, const sf_attr **out)
{
    r->nints = 0;
    SF_TRY(sf_mlir_take(r, '<'));
    if (!sf_scan_name(&r->scan).length)
        return sf_mlir_expected(r, "the type of the array");
    if (sf_scan_take(&r->scan, ':'))
        SF_TRY(parse_elements(r, '>'));
    else
        SF_TRY(sf_mlir_take(r, '>'));
    *out = take_ints(r);
    return SF_OK;
}

static sf_status parse_dense_ints(sf_mlir *r, const sf_attr **out)
{
    sf_loc loc = sf_mlir_here(r);
    const sf_attr *attr;
    SF_TRY(sf_mlir_dense(r, &attr));
    const sf_dense *dense = &attr->dense;
    if (dense->type->count > SF_MLIR_MAX_LIST)
        return SF_MLIR_FAIL(r, SF_EUNSUPPORTED, loc,
                            "a list in an attribute has more than %d numbers", SF_MLIR_MAX_LIST);
    r->nints = 0;
    for (int64_t i = 0; i < dense->type->count; i++)
        SF_TRY(push_int(r, sf_load_i64(dense->type->dtype, dense->data, sf_dense_at(dense, i))));
    *out = take_ints(r);
    return SF_OK;
}

static bool at_dense(sf_mlir *r)
{
    sf_scan scan = r->scan;
    return sf_scan_word(&scan, "dense") || sf_scan_word(&scan, "dense_resource");
}

static sf_status parse_ints_value(sf_mlir *r, const sf_attr **out)
{
    if (at_dense(r))
        return parse_dense_ints(r, out);
    if (sf_scan_word(&r->scan, "array"))
        return parse_array(r, out);
    if (!sf_scan_is(&r->scan, '['))
        return sf_mlir_expected(r, "a list of integers");
    return sf_mlir_int_list(r, out);
}

static sf_status parse_int_value(sf_mlir *r, bool in_dictionary, const sf_attr **out)
{
    sf_loc loc = sf_mlir_here(r);
    int64_t value;
    if (at_dense(r)) {
        SF_TRY(parse_dense_ints(r, out));
        if ((*out)->count != 1)
            return SF_MLIR_FAIL(r, SF_EINPUT, loc, "expected one integer, found %d", (*out)->count);
        value = (*out)->ints[0];
    } else {
        SF_TRY(parse_int(r, &value));
        if (in_dictionary)
            SF_TRY(skip_type(r));
    }
    *out = sf_attr_int(r->pool, value);
    return SF_OK;
}

static sf_status parse_real_value(sf_mlir *r, bool in_dictionary, const sf_attr **out)
{
    SF_TRY(sf_mlir_real(r, out));
    return in_dictionary ? skip_type(r) : SF_OK;
}

/* `#stablehlo<precision HIGH>`, or the enumerator alone, or that in quotes. */
static sf_status parse_enumerator(sf_mlir *r, const char *prefix, sf_str *out)
{
    if (sf_scan_is(&r->scan, '"'))
        return sf_mlir_string(r, out);
    if (!sf_scan_is(&r->scan, '#')) {
        *out = sf_scan_name(&r->scan);
        return out->length ? SF_OK : sf_mlir_expected(r, "an enumerator");
    }
    sf_loc loc = sf_mlir_here(r);
    sf_str dialect = sf_scan_sigil(&r->scan, '#');
    SF_TRY(sf_mlir_take(r, '<'));
    sf_str kind = sf_scan_name(&r->scan);
    *out = sf_scan_name(&r->scan);
    char text[64];
    snprintf(text, sizeof text, "#%.*s<%.*s ", SF_STR_ARGS(dialect), SF_STR_ARGS(kind));
    if (!out->length || strcmp(text, prefix) != 0)
        return SF_MLIR_FAIL(r, SF_EINPUT, loc, "expected a value such as %s...>", prefix);
    return sf_mlir_take(r, '>');
}

static sf_status parse_enumerator_or_alias(sf_mlir *r, const char *prefix, sf_str *out)
{
    sf_scan after;
    SF_TRY(follow_alias(r, &after));
    SF_TRY(parse_enumerator(r, prefix, out));
    leave_alias(r, &after);
    return SF_OK;
}

/* One enumerator, or a list of them, which becomes "HIGH,DEFAULT". A list of DEFAULT alone means
 * the same as no list. */
static sf_status parse_enum_value(sf_mlir *r, const char *prefix, const sf_attr **out)
{
    sf_str name;
    if (!sf_scan_take(&r->scan, '[')) {
        SF_TRY(parse_enumerator_or_alias(r, prefix, &name));
        *out = sf_attr_text(r->pool, name);
        return SF_OK;
    }
    char text[256];
    size_t length = 0;
    bool plain = true;
    while (!sf_scan_is(&r->scan, ']')) {
        SF_TRY(parse_enumerator_or_alias(r, prefix, &name));
        plain = plain && sf_str_is(name, "DEFAULT");
        if (length + name.length + 1 > sizeof text)
            return sf_mlir_expected(r, "fewer enumerators");
        text[length] = ',';
        memcpy(text + length + 1, name.at, name.length);
        length += name.length + 1;
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    *out = plain ? NULL : sf_attr_text(r->pool, (sf_str){text + 1, length - 1});
    return sf_mlir_take(r, ']');
}

sf_status sf_mlir_value_bytes(sf_mlir *r, sf_str *out)
{
    if (sf_scan_is(&r->scan, '"'))
        return sf_mlir_string(r, out);
    if (sf_scan_is(&r->scan, '@'))
        return sf_mlir_symbol(r, out);
    const char *first = r->scan.at;
    SF_TRY(sf_mlir_skip_value(r));
    *out = (sf_str){first, (size_t)(r->scan.at - first)};
    return SF_OK;
}

sf_status sf_mlir_value_text(sf_mlir *r, const char **out)
{
    sf_str text;
    SF_TRY(sf_mlir_value_bytes(r, &text));
    *out = sf_pool_name(r->pool, text);
    return SF_OK;
}

static sf_status parse_attr_value(sf_mlir *r, const sf_attrdef *slot, bool in_dictionary,
                                  const sf_attr **out)
{
    switch (slot->kind) {
    case SF_ATTR_INT:
        return parse_int_value(r, in_dictionary, out);
    case SF_ATTR_INTS:
        return parse_ints_value(r, out);
    case SF_ATTR_DENSE:
        return slot->text == SF_AS_F32 ? parse_real_value(r, in_dictionary, out)
                                       : sf_mlir_dense(r, out);
    case SF_ATTR_TEXT:
        break;
    }
    if (slot->prefix)
        return parse_enum_value(r, slot->prefix, out);
    sf_str text;
    SF_TRY(sf_mlir_value_bytes(r, &text));
    *out = sf_attr_text(r->pool, text);
    return SF_OK;
}

sf_status sf_mlir_attr(sf_mlir *r, const sf_attrdef *slot, bool in_dictionary, const sf_attr **out)
{
    sf_scan after = {0};
    if (slot->kind != SF_ATTR_TEXT)
        SF_TRY(follow_alias(r, &after));
    *out = NULL;
    SF_TRY(parse_attr_value(r, slot, in_dictionary || after.at, out));
    leave_alias(r, &after);
    if (*out && (*out)->kind == SF_ATTR_INTS && (*out)->count == 0 && !slot->required)
        *out = NULL;
    return SF_OK;
}

static sf_status set_int(sf_mlir *r, const sf_opdef *def, const char *name, int64_t value,
                         const sf_attr **attrs)
{
    int slot = sf_attr_slot(def, sf_str_of(name));
    if (slot < 0 || def->attrs[slot].kind != SF_ATTR_INT)
        return sf_mlir_expected(r, "the name of a field");
    attrs[slot] = sf_attr_int(r->pool, value);
    return SF_OK;
}

/* One of the three lists, such as [b, 0, 1, f]: position p holds batch, feature or the number of a
 * spatial dimension. `names` are the slots of the first letter, the second, and the others. */
static sf_status parse_conv_list(sf_mlir *r, const sf_opdef *def, const char *letters,
                                 const char *const names[3], const sf_attr **attrs)
{
    int64_t spatial[SF_MAX_RANK];
    bool seen[SF_MAX_RANK] = {false};
    int count = 0, position = 0;
    SF_TRY(sf_mlir_take(r, '['));
    do {
        int64_t number;
        sf_str letter = sf_scan_name(&r->scan);
        if (position == SF_MAX_RANK)
            return sf_mlir_expected(r, "fewer dimensions");
        if (letter.length == 1 && (*letter.at == letters[0] || *letter.at == letters[1])) {
            const char *name = names[*letter.at == letters[0] ? 0 : 1];
            SF_TRY(set_int(r, def, name, position, attrs));
        } else if (!letter.length && sf_scan_int(&r->scan, &number) && number >= 0 &&
                   number < SF_MAX_RANK && !seen[number]) {
            seen[number] = true;
            spatial[number] = position;
            count++;
        } else {
            return sf_mlir_expected(r, "the letter or number of a dimension");
        }
        position++;
    } while (sf_scan_take(&r->scan, ','));
    for (int i = 0; i < count; i++)
        if (!seen[i])
            return sf_mlir_expected(r, "spatial dimensions numbered 0, 1, ...");
    int slot = sf_attr_slot(def, sf_str_of(names[2]));
    if (slot < 0)
        return sf_mlir_expected(r, "the name of a field");
    attrs[slot] = count ? sf_attr_ints(r->pool, count, spatial) : NULL;
    return sf_mlir_take(r, ']');
}

sf_status sf_mlir_conv_dims(sf_mlir *r, const sf_opdef *def, const sf_attr **attrs)
{
    static const char *const input[] = {"input_batch_dimension", "input_feature_dimension",
                                        "input_spatial_dimensions"};
    static const char *const kernel[] = {"kernel_input_feature_dimension",
                                         "kernel_output_feature_dimension",
                                         "kernel_spatial_dimensions"};
    static const char *const output[] = {"output_batch_dimension", "output_feature_dimension",
                                         "output_spatial_dimensions"};
    SF_TRY(parse_conv_list(r, def, "bf", input, attrs));
    if (!sf_scan_word(&r->scan, "x"))
        return sf_mlir_expected(r, "'x'");
    SF_TRY(parse_conv_list(r, def, "io", kernel, attrs));
    if (!sf_scan_text(&r->scan, "->"))
        return sf_mlir_expected(r, "'->'");
    return parse_conv_list(r, def, "bf", output, attrs);
}

static sf_status unknown_attribute(sf_mlir *r, const sf_opdef *def, const char *group, sf_str name,
                                   sf_loc loc)
{
    SF_MLIR_FAIL(r, SF_EINPUT, loc, "%s.%s has no attribute '%.*s'", def->dialect, def->name,
                 SF_STR_ARGS(name));
    char known[512] = "";
    size_t length = 0;
    for (int i = 0; i < def->nattrs && length < sizeof known; i++) {
        const sf_attrdef *slot = &def->attrs[i];
        bool shown = !slot->derived && (in_group(slot, group) || (!group && slot->group));
        const char *text = !group && slot->group ? slot->group : slot->name;
        if (shown && !strstr(known, text))
            length += (size_t)snprintf(known + length, sizeof known - length, "%s%s",
                                       length ? ", " : "", text);
    }
    if (length)
        sf_hint(r->diag, "known are: %s", known);
    return SF_EINPUT;
}

sf_status sf_mlir_group(sf_mlir *r, const sf_opdef *def, const char *group, const sf_attr **attrs)
{
    if (sf_scan_is(&r->scan, '[')) {
        SF_TRY(sf_mlir_conv_dims(r, def, attrs));
        return sf_mlir_take(r, '>');
    }
    sf_scan_word(&r->scan, "raw");
    while (!sf_scan_is(&r->scan, '>')) {
        sf_loc loc = sf_mlir_here(r);
        sf_str name = sf_scan_name(&r->scan);
        if (!name.length)
            return sf_mlir_expected(r, "the name of a field");
        SF_TRY(sf_mlir_take(r, '='));
        int slot = find_attr_slot(def, group, name);
        if (slot < 0)
            return unknown_attribute(r, def, group, name, loc);
        SF_TRY(sf_mlir_attr(r, &def->attrs[slot], true, &attrs[slot]));
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    return sf_mlir_take(r, '>');
}

/* `#stablehlo.gather<...>`, or an alias of that. */
static sf_status parse_group(sf_mlir *r, const sf_opdef *def, const char *group,
                             const sf_attr **attrs)
{
    sf_scan after;
    SF_TRY(follow_alias(r, &after));
    if (!sf_scan_sigil(&r->scan, '#').length)
        return sf_mlir_expected(r, "a value such as #stablehlo.name<...>");
    SF_TRY(sf_mlir_take(r, '<'));
    SF_TRY(sf_mlir_group(r, def, group, attrs));
    leave_alias(r, &after);
    return SF_OK;
}

sf_status sf_mlir_entries(sf_mlir *r, sf_mlir_entry *entry, void *context)
{
    SF_TRY(sf_mlir_take(r, '{'));
    while (!sf_scan_is(&r->scan, '}')) {
        sf_loc loc = sf_mlir_here(r);
        sf_str name;
        if (sf_scan_is(&r->scan, '"'))
            SF_TRY(sf_mlir_string(r, &name));
        else
            name = sf_scan_name(&r->scan);
        if (!name.length)
            return sf_mlir_expected(r, "the name of an attribute");
        SF_TRY(entry(r, name, sf_scan_take(&r->scan, '='), loc, context));
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    return sf_mlir_take(r, '}');
}

struct op_attrs {
    const sf_opdef *def;
    const sf_attr **attrs;
};

/* `mhlo.backend_config = {...}` beside an empty backend_config is how JAX writes the dictionary of a
 * call by the typed interface. */
static sf_status typed_config(sf_mlir *r, const sf_attr **attrs)
{
    sf_str text;
    SF_TRY(sf_mlir_value_bytes(r, &text));
    attrs[SF_CUSTOM_CONFIG] = sf_attr_text(r->pool, text);
    if (sf_str_starts(text, "{"))
        attrs[SF_CUSTOM_API_VERSION] = sf_attr_int(r->pool, 4);
    return SF_OK;
}

/* The sharding of Shardy, that of sdy.sharding_constraint among them, goes to the slot of HLO's; it
 * is printed as sheaf.sharding. */
static int find_op_slot(const sf_opdef *def, sf_str name)
{
    bool sharding = sf_str_is(name, "sdy.sharding") || sf_str_is(name, "sheaf.sharding") ||
                    (def->id == SF_OP_CUSTOM_CALL && sf_str_is(name, "sharding"));
    return find_attr_slot(def, NULL, sharding ? sf_str_of("mhlo.sharding") : name);
}

static sf_status op_entry(sf_mlir *r, sf_str name, bool has_value, sf_loc loc, void *context)
{
    const struct op_attrs *op = context;
    int slot = find_op_slot(op->def, name);
    const sf_attr *before = slot >= 0 ? op->attrs[slot] : NULL;
    bool is_custom = op->def->id == SF_OP_CUSTOM_CALL;
    if (is_custom && has_value && sf_str_is(name, "mhlo.backend_config"))
        return typed_config(r, op->attrs);
    if (slot >= 0 && has_value) {
        SF_TRY(sf_mlir_attr(r, &op->def->attrs[slot], true, &op->attrs[slot]));
        /* The typed configuration came first, and stays. */
        if (is_custom && before && (slot == SF_CUSTOM_CONFIG || slot == SF_CUSTOM_API_VERSION))
            op->attrs[slot] = before;
        return SF_OK;
    }
    if (slot >= 0 && op->def->attrs[slot].kind == SF_ATTR_INT) {
        op->attrs[slot] = sf_attr_int(r->pool, 1);
        return SF_OK;
    }
    const char *group = find_attr_group(op->def, name);
    if (group && has_value)
        return parse_group(r, op->def, group, op->attrs);
    if (slot >= 0 || group)
        return sf_mlir_expected(r, "'=' and a value");
    if (!is_ignored(name))
        return unknown_attribute(r, op->def, NULL, name, loc);
    return has_value ? sf_mlir_skip_value(r) : SF_OK;
}

sf_status sf_mlir_dictionary(sf_mlir *r, const sf_opdef *def, const sf_attr **attrs)
{
    struct op_attrs op = {def, attrs};
    return sf_mlir_entries(r, op_entry, &op);
}

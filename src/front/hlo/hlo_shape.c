/* Shapes: f32[2,3]{1,0}, and tuples of them. Layouts describe memory, not values; one that is not
 * row-major is kept only because a bitcast depends on it. */
#include "front/hlo/hlo_reader.h"

static sf_status read_element_type(sf_hlo_reader *reader, sf_hlo_scan *scan, sf_dtype *out)
{
    static const struct {
        const char *name, *advice;
    } unsupported[] = {
        {"opaque", "dump the module before optimization"},
    };
    sf_loc loc = sf_hlo_here(scan);
    sf_hlo_scan before = *scan;
    sf_str name = sf_hlo_word(scan);
    if (sf_dtype_find(SF_SPELL_HLO, name, out))
        return SF_OK;
    if (sf_str_is(name, "token"))
        return sf_hlo_end(reader, sf_refuse_token(name, loc, reader->diag));
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (sf_str_is(name, unsupported[i].name)) {
            sf_fail(reader->diag, SF_EUNSUPPORTED, loc, "the type %s is not supported",
                    unsupported[i].name);
            return sf_hint(reader->diag, "%s", unsupported[i].advice);
        }
    return sf_hlo_expected(&before, "a type such as f32[2,3]", reader->diag);
}

/* `first` is where the type begins. */
static sf_status refuse_sizes(sf_hlo_reader *reader, const sf_hlo_scan *scan, const char *first,
                              sf_loc loc)
{
    const char *end = scan->at;
    while (end < scan->end && *end != ']' && *end != '\n')
        end++;
    sf_str type = {first, (size_t)(end - first) + (end < scan->end && *end == ']')};
    return sf_hlo_end(reader, sf_refuse_dynamic(type, loc, reader->diag));
}

static sf_status read_dims(sf_hlo_reader *reader, sf_hlo_scan *scan, const char *first, sf_loc loc,
                           int64_t *dims, int *rank)
{
    *rank = 0;
    SF_TRY(sf_hlo_expect(scan, '[', reader->diag));
    if (sf_hlo_accept(scan, ']'))
        return SF_OK;
    do {
        char c = sf_hlo_peek(scan);
        if (c == '<' || c == '?')
            return refuse_sizes(reader, scan, first, loc);
        if (*rank == SF_MAX_RANK)
            return sf_fail(reader->diag, SF_EUNSUPPORTED, sf_hlo_here(scan),
                           "a rank above %d is not supported", SF_MAX_RANK);
        if (!sf_hlo_number(scan, &dims[*rank]) || dims[*rank] < 0)
            return sf_hlo_expected(scan, "the size of a dimension", reader->diag);
        ++*rank;
    } while (sf_hlo_accept(scan, ','));
    return sf_hlo_expect(scan, ']', reader->diag);
}

/* {1,0:T(8,128)}: only the order before the colon is looked at. It is minor to major. */
static sf_status read_memory_layout(sf_hlo_reader *reader, sf_hlo_scan *scan, int rank,
                                    const uint8_t **order)
{
    uint8_t dims[SF_MAX_RANK];
    bool seen[SF_MAX_RANK] = {false}, is_plain = true;
    int count = 0;
    *order = NULL;
    /* A layout follows the bracket without a space; the brace of a body follows one. */
    if (scan->at >= scan->end || *scan->at != '{')
        return SF_OK;
    scan->at++;
    sf_loc loc = sf_hlo_here(scan);
    int64_t dim;
    while (sf_hlo_number(scan, &dim)) {
        if (dim < 0 || dim >= rank || seen[dim])
            return sf_fail(reader->diag, SF_EINPUT, loc,
                           "the layout does not name every dimension once");
        seen[dim] = true;
        dims[rank - 1 - count++] = (uint8_t)dim;
        is_plain = is_plain && dim == rank - count;
        if (!sf_hlo_accept(scan, ','))
            break;
    }
    if (count > 0 && count < rank)
        return sf_fail(reader->diag, SF_EINPUT, loc,
                       "the layout does not name every dimension once");
    if (!is_plain)
        *order = sf_arena_copy(&reader->arena, dims, (size_t)rank);
    sf_hlo_balanced(scan);
    return sf_hlo_expect(scan, '}', reader->diag);
}

static sf_status read_leaf(sf_hlo_reader *reader, sf_hlo_scan *scan, sf_hlo_shape *out)
{
    sf_loc loc = sf_hlo_here(scan);
    const char *first = scan->at;
    sf_dtype dtype;
    int64_t dims[SF_MAX_RANK];
    int rank;
    SF_TRY(read_element_type(reader, scan, &dtype));
    SF_TRY(read_dims(reader, scan, first, loc, dims, &rank));
    *out = (sf_hlo_shape){.nleaves = 1};
    SF_TRY(read_memory_layout(reader, scan, rank, &out->order));
    out->type = sf_type_get(reader->module->graph->pool, dtype, rank, dims);
    if (!out->type)
        return sf_fail(reader->diag, SF_EUNSUPPORTED, loc, "the tensor is too large");
    return SF_OK;
}

static sf_status read_shape(sf_hlo_reader *reader, sf_hlo_scan *scan, int depth, sf_hlo_shape *out)
{
    if (sf_hlo_peek(scan) != '(')
        return read_leaf(reader, scan, out);
    if (depth == SF_MAX_DEPTH)
        return sf_fail(reader->diag, SF_EUNSUPPORTED, sf_hlo_here(scan),
                       "tuples are nested more than %d deep", SF_MAX_DEPTH);
    scan->at++;
    *out = (sf_hlo_shape){0};
    if (sf_hlo_accept(scan, ')'))
        return SF_OK;
    size_t count = 0, capacity = 0;
    do {
        sf_hlo_shape part;
        SF_TRY(read_shape(reader, scan, depth + 1, &part));
        part.first = out->nleaves;
        out->nleaves += part.nleaves;
        SF_PUSH(&reader->arena, out->parts, count, capacity, part);
    } while (sf_hlo_accept(scan, ','));
    out->nparts = (uint32_t)count;
    return sf_hlo_expect(scan, ')', reader->diag);
}

sf_status sf_hlo_read_shape(sf_hlo_reader *reader, sf_hlo_scan *scan, sf_hlo_shape *out)
{
    return read_shape(reader, scan, 0, out);
}

bool sf_hlo_same_shape(const sf_hlo_shape *a, const sf_hlo_shape *b)
{
    if (a->type != b->type || a->nparts != b->nparts || a->nleaves != b->nleaves)
        return false;
    for (uint32_t i = 0; i < a->nparts; i++)
        if (!sf_hlo_same_shape(&a->parts[i], &b->parts[i]))
            return false;
    return true;
}

void sf_hlo_leaf_types(const sf_hlo_shape *shape, const sf_type **out)
{
    if (shape->type)
        out[0] = shape->type;
    for (uint32_t i = 0; i < shape->nparts; i++)
        sf_hlo_leaf_types(&shape->parts[i], out + shape->parts[i].first);
}

/* Appends to the text and returns its length, which stays below SF_TYPE_TEXT. */
static size_t append_text(char *text, size_t length, const char *more)
{
    size_t room = SF_TYPE_TEXT - 1 - length, size = strlen(more);
    if (size > room)
        size = room;
    memcpy(text + length, more, size);
    text[length + size] = '\0';
    return length + size;
}

static size_t write_shape(const sf_hlo_shape *shape, char *text, size_t length)
{
    char part[SF_TYPE_TEXT];
    if (shape->type) {
        length = append_text(text, length, sf_dtype_get(shape->type->dtype)->hlo);
        length = append_text(text, length, "[");
        for (int i = 0; i < shape->type->rank; i++) {
            snprintf(part, sizeof part, "%s%lld", i ? "," : "", (long long)shape->type->dims[i]);
            length = append_text(text, length, part);
        }
        return append_text(text, length, "]");
    }
    length = append_text(text, length, "(");
    for (uint32_t i = 0; i < shape->nparts && length < 200; i++) {
        length = append_text(text, length, i ? ", " : "");
        length = write_shape(&shape->parts[i], text, length);
    }
    return append_text(text, length, length < 200 ? ")" : ", ...)");
}

const char *sf_hlo_shape_text(const sf_hlo_shape *shape, char text[SF_TYPE_TEXT])
{
    text[0] = '\0';
    write_shape(shape, text, 0);
    return text;
}

#include "shard/layout.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/hash.h"

bool sf_share_equal(sf_share a, sf_share b)
{
    return a.kind == b.kind && a.monoid == b.monoid && a.dim == b.dim && a.period == b.period &&
           a.on == b.on && sf_row_partition_equal(a.partition, b.partition);
}

bool sf_layout_equal(const sf_layout *a, const sf_layout *b)
{
    for (int i = 0; i < SF_MAX_AXES; i++) {
        const sf_share *x = &a->axes[i], *y = &b->axes[i];
        if (x->kind != y->kind || x->dim != y->dim || x->period != y->period || x->on != y->on ||
            x->monoid != y->monoid ||
            (x->partition != y->partition && !sf_row_partition_equal(x->partition, y->partition)))
            return false;
    }
    return true;
}

bool sf_layout_same(const sf_mesh *mesh, const sf_layout *a, const sf_layout *b)
{
    for (int axis = 0; axis < mesh->naxes; axis++)
        if (mesh->axes[axis].size > 1 && !sf_share_equal(a->axes[axis], b->axes[axis]))
            return false;
    return true;
}

/* Most shares say nothing, and take no time. */
uint64_t sf_layout_hash(const sf_layout *layout)
{
    uint64_t hash = 0;
    for (int i = 0; i < SF_MAX_AXES; i++) {
        const sf_share *share = &layout->axes[i];
        if (share->kind != SF_REPLICATED)
            hash = sf_hash_mix(sf_hash_mix(hash, (uint64_t)share->period),
                               (uint64_t)share->kind | (uint64_t)share->monoid << 8 |
                                   (uint64_t)share->dim << 16 | (uint64_t)i << 48);
        if (share->on != 0 || share->partition)
            hash = sf_hash_mix(sf_hash_mix(hash, share->on),
                               sf_row_partition_hash(share->partition) ^ (uint64_t)i << 48);
    }
    return hash;
}

bool sf_layout_is_replicated(const sf_layout *layout)
{
    for (int i = 0; i < SF_MAX_AXES; i++)
        if (layout->axes[i].kind != SF_REPLICATED || layout->axes[i].on != 0)
            return false;
    return true;
}

bool sf_layouts_are_replicated(const sf_layout *layouts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!sf_layout_is_replicated(&layouts[i]))
            return false;
    return true;
}

bool sf_layout_is_held(const sf_layout *layout, const sf_mesh *mesh, int rank)
{
    for (int a = 0; a < mesh->naxes; a++)
        if (!sf_share_is_held(layout->axes[a], sf_mesh_coordinate(mesh, rank, a)))
            return false;
    return true;
}

void sf_layouts_keep(sf_layout *layouts, uint32_t count, sf_arena *arena)
{
    for (uint32_t i = 0; i < count; i++)
        for (int a = 0; a < SF_MAX_AXES; a++) {
            const sf_row_partition *partition = layouts[i].axes[a].partition;
            if (partition)
                layouts[i].axes[a].partition =
                    sf_row_partition_new(partition->count, partition->to, arena);
        }
}

sf_axes sf_layouts_split(const sf_layout *layouts, uint32_t count)
{
    sf_axes split = 0;
    for (uint32_t i = 0; i < count; i++)
        for (int axis = 0; axis < SF_MAX_AXES; axis++)
            if (layouts[i].axes[axis].kind == SF_SPLIT)
                split |= 1u << axis;
    return split;
}

bool sf_layout_is_partial(const sf_layout *layout)
{
    for (int i = 0; i < SF_MAX_AXES; i++)
        if (layout->axes[i].kind == SF_PARTIAL)
            return true;
    return false;
}

/* NULL for those that partials cannot have. */
static const char *monoid_symbol(sf_monoid monoid)
{
    static const char *const symbols[SF_MONOID_COUNT] = {
        [SF_MONOID_ADD] = "+",   [SF_MONOID_MUL] = "*", [SF_MONOID_MIN] = "min",
        [SF_MONOID_MAX] = "max", [SF_MONOID_AND] = "&", [SF_MONOID_OR] = "|",
        [SF_MONOID_XOR] = "^",
    };
    return symbols[monoid];
}

__attribute__((format(printf, 2, 3))) static bool refuse_share(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (why)
        vsnprintf(why, SF_WHY_TEXT, format, args);
    va_end(args);
    return false;
}

static bool split_fits(sf_share share, int parts, int rank, const int64_t *dims, char *why)
{
    if (share.dim == SF_MAX_RANK) /* counted from the end: sf_pin_share */
        return refuse_share(why, "there is no dimension so far from the end in a tensor of rank %d",
                            rank);
    if (share.dim < 0 || share.dim >= rank)
        return refuse_share(why, "there is no dimension %d in a tensor of rank %d", share.dim,
                            rank);
    int64_t size = dims[share.dim];
    if (share.period < 1 || size < 1 || (share.period == size && size % parts != 0))
        return refuse_share(why,
                            "dimension %d of size %" PRId64 " does not split into %d equal parts",
                            share.dim, size, parts);
    if (size % share.period != 0)
        return refuse_share(
            why, "dimension %d of size %" PRId64 " is not a number of blocks of %" PRId64,
            share.dim, size, share.period);
    if (share.period % parts != 0)
        return refuse_share(
            why, "blocks of %" PRId64 " of dimension %d do not split into %d equal parts",
            share.period, share.dim, parts);
    return true;
}

bool sf_shares_fit(sf_share a, int a_parts, sf_share b, int b_parts)
{
    if (a.partition || b.partition)
        return !(a.partition && b.partition) &&
               !(a.partition && b.kind == SF_SPLIT && b.dim == 0) &&
               !(b.partition && a.kind == SF_SPLIT && a.dim == 0);
    if (a.kind == SF_PARTIAL && b.kind == SF_PARTIAL)
        return a.monoid == b.monoid;
    if (a.kind != SF_SPLIT || b.kind != SF_SPLIT || a.dim != b.dim)
        return true;
    return a.period / a_parts % b.period == 0 || b.period / b_parts % a.period == 0;
}

static bool says_nothing(const sf_share *share)
{
    return share->kind == SF_REPLICATED && share->on == 0 && !share->partition;
}

static bool share_fits(sf_share share, int size, int rank, const int64_t *dims, char *why)
{
    if (share.kind == SF_PARTIAL && !monoid_symbol(share.monoid))
        return refuse_share(why, "values cannot be partial by \"%s\"",
                            sf_monoid_name(share.monoid));
    if (share.on != 0 && size < 64 && share.on >> size != 0)
        return refuse_share(why, "there is no rank %d along an axis of %d",
                            63 - __builtin_clzll(share.on), size);
    if (share.partition && (rank < 1 || dims[0] != share.partition->count))
        return refuse_share(why, "%" PRId64 " rows are partitioned, and it has %" PRId64,
                            share.partition->count, rank < 1 ? 0 : dims[0]);
    return share.kind != SF_SPLIT ||
           split_fits(share, sf_share_parts(share, size), rank, dims, why);
}

bool sf_layout_fits(const sf_layout *layout, const sf_mesh *mesh, int rank, const int64_t *dims,
                    char why[SF_WHY_TEXT])
{
    for (int a = 0; a < SF_MAX_AXES; a++) {
        sf_share share = layout->axes[a];
        if (says_nothing(&share))
            continue;
        if (a >= mesh->naxes && (share.kind != SF_REPLICATED || share.on != 0))
            return refuse_share(why, "the mesh has no axis %d", a);
        if (a < mesh->naxes && !share_fits(share, mesh->axes[a].size, rank, dims, why))
            return false;
    }
    for (int a = 1; a < mesh->naxes; a++) {
        for (int b = 0; b < a && !says_nothing(&layout->axes[a]); b++) {
            sf_share share = layout->axes[a], other = layout->axes[b];
            if (sf_shares_fit(share, sf_share_parts(share, mesh->axes[a].size), other,
                              sf_share_parts(other, mesh->axes[b].size)))
                continue;
            if (share.kind == SF_PARTIAL)
                return refuse_share(why, "partials of %s and of %s do not go together",
                                    monoid_symbol(other.monoid), monoid_symbol(share.monoid));
            return refuse_share(why, "axes %s and %s split dimension %d in ways that overlap",
                                mesh->axes[b].name, mesh->axes[a].name, share.dim);
        }
    }
    return true;
}

int64_t sf_layout_period(const sf_layout *layout, const sf_mesh *mesh, int axis, int dim,
                         int64_t size)
{
    int64_t period = size;
    for (int a = 0; a < axis; a++) {
        sf_share share = layout->axes[a];
        int parts = sf_share_parts(share, mesh->axes[a].size);
        if (share.kind == SF_SPLIT && share.dim == dim && share.period / parts < period)
            period = share.period / parts;
    }
    return period;
}

void sf_layout_dims(const sf_layout *layout, const sf_mesh *mesh, int rank, const int64_t *dims,
                    int64_t *out)
{
    if (out != dims)
        memcpy(out, dims, (size_t)rank * sizeof *dims);
    for (int a = 0; a < mesh->naxes; a++)
        if (layout->axes[a].kind == SF_SPLIT)
            out[layout->axes[a].dim] /= sf_share_parts(layout->axes[a], mesh->axes[a].size);
        else if (layout->axes[a].partition)
            out[0] = sf_row_partition_most(layout->axes[a].partition);
}

void sf_layout_dims_at(const sf_layout *layout, const sf_mesh *mesh, int at, int rank,
                       const int64_t *dims, int64_t *out)
{
    sf_layout_dims(layout, mesh, rank, dims, out);
    for (int a = 0; a < mesh->naxes; a++)
        if (layout->axes[a].partition)
            out[0] =
                sf_row_partition_rows(layout->axes[a].partition, sf_mesh_coordinate(mesh, at, a));
}

/* A digit of size 1 is above others with its unit: it ends where they begin. */
static bool is_above(sf_digit a, sf_digit b)
{
    int64_t a_end = a.unit * a.size, b_end = b.unit * b.size;
    return a_end != b_end ? a_end > b_end : a.unit > b.unit;
}

/* The split digits of a dimension, major to minor. */
static int split_share_digits(const sf_layout *layout, const sf_mesh *mesh, int dim,
                              sf_digit digits[SF_MAX_AXES])
{
    int count = 0;
    for (int a = 0; a < mesh->naxes; a++) {
        sf_share share = layout->axes[a];
        if (share.kind != SF_SPLIT || share.dim != dim)
            continue;
        int64_t parts = sf_share_parts(share, mesh->axes[a].size);
        sf_digit digit = {parts, share.period / parts, a};
        int at = count++;
        for (; at > 0 && is_above(digit, digits[at - 1]); at--)
            digits[at] = digits[at - 1];
        digits[at] = digit;
    }
    return count;
}

int sf_layout_digits(const sf_layout *layout, const sf_mesh *mesh, int dim, int64_t size,
                     sf_digit digits[SF_MAX_DIGITS])
{
    sf_digit split[SF_MAX_AXES];
    int nsplit = split_share_digits(layout, mesh, dim, split), count = 0;
    int64_t end = size; /* the lower end of the digits that are not written yet */
    for (int i = 0; i < nsplit; i++) {
        int64_t gap = end / (split[i].unit * split[i].size);
        if (gap != 1)
            digits[count++] = (sf_digit){gap, split[i].unit * split[i].size, -1};
        digits[count++] = split[i];
        end = split[i].unit;
    }
    if (end != 1)
        digits[count++] = (sf_digit){end, 1, -1};
    return count;
}

/* The largest bound of a split digit below `end`, 1 if there is none: there the digits of both
 * layouts are cut. */
static int64_t next_bound(const sf_digit *split, int count, int64_t end)
{
    int64_t bound = 1;
    for (int i = 0; i < count; i++) {
        int64_t bounds[2] = {split[i].unit, split[i].unit * split[i].size};
        for (int k = 0; k < 2; k++)
            if (bounds[k] < end && bounds[k] > bound)
                bound = bounds[k];
    }
    return bound;
}

/* The axis of the digit that is split just from `unit` to `end`, -1 if no split digit has anything
 * between them, -2 if one has some of it, or more. */
static int axis_between(const sf_digit *split, int count, int64_t unit, int64_t end)
{
    for (int i = 0; i < count; i++) {
        int64_t top = split[i].unit * split[i].size;
        if (split[i].unit == unit && top == end)
            return split[i].axis;
        if (split[i].size > 1 && split[i].unit < end && top > unit)
            return -2;
    }
    return -1;
}

int sf_layout_joint(const sf_layout *before, const sf_layout *after, const sf_mesh *mesh, int dim,
                    int64_t size, sf_joint_digit digits[SF_MAX_JOINT])
{
    sf_digit old[SF_MAX_AXES], new[SF_MAX_AXES];
    int nold = split_share_digits(before, mesh, dim, old),
        nnew = split_share_digits(after, mesh, dim, new);
    int count = 0;
    for (int64_t end = size, unit; end > 1; end = unit) {
        int64_t a = next_bound(old, nold, end), b = next_bound(new, nnew, end);
        unit = a > b ? a : b;
        int was = axis_between(old, nold, unit, end), is = axis_between(new, nnew, unit, end);
        if (end % unit != 0 || was == -2 || is == -2)
            return -1;
        digits[count++] = (sf_joint_digit){end / unit, unit, was, is};
    }
    if (size == 0)
        digits[count++] = (sf_joint_digit){0, 1, -1, -1};
    return count;
}

int sf_layout_place(const sf_layout *layout, const sf_mesh *mesh, int rank, int axis)
{
    return sf_share_place(layout->axes[axis], sf_mesh_coordinate(mesh, rank, axis));
}

/* Row `local` of those that the coordinate has. */
static int64_t partitioned_row(const sf_row_partition *partition, int coordinate, int64_t local)
{
    int64_t row = sf_row_partition_next(partition, coordinate, 0);
    for (; local > 0; local--)
        row = sf_row_partition_next(partition, coordinate, row + 1);
    return row;
}

int64_t sf_layout_global(const sf_layout *layout, const sf_mesh *mesh, int rank, int dim,
                         int64_t size, int64_t local)
{
    sf_digit digits[SF_MAX_DIGITS];
    int count = sf_layout_digits(layout, mesh, dim, size, digits);
    int64_t global = 0;
    for (int a = 0; a < mesh->naxes && dim == 0; a++)
        if (layout->axes[a].partition)
            return partitioned_row(layout->axes[a].partition, sf_mesh_coordinate(mesh, rank, a),
                                   local);
    for (int i = count - 1; i >= 0; i--) {
        if (digits[i].axis >= 0) {
            global += sf_layout_place(layout, mesh, rank, digits[i].axis) * digits[i].unit;
        } else {
            global += local % digits[i].size * digits[i].unit;
            local /= digits[i].size;
        }
    }
    return global;
}

/* "At(0,1)", "At(0:0-3,1:4)"; nothing where all have it. */
static void print_on(sf_share share, sf_buf *out)
{
    const char *before = "At(";
    if (share.partition) {
        sf_buf_puts(out, before);
        sf_row_partition_print(share.partition, out);
    }
    for (uint64_t rest = share.partition ? 0 : share.on; rest; rest &= rest - 1) {
        sf_buf_printf(out, "%s%d", before, __builtin_ctzll(rest));
        before = ",";
    }
    sf_buf_puts(out, share.on ? ")" : "");
}

void sf_layout_print(const sf_layout *layout, const sf_mesh *mesh, int rank, const int64_t *dims,
                     sf_buf *out)
{
    (void)rank;
    sf_buf_putc(out, '[');
    for (int a = 0; a < mesh->naxes; a++) {
        sf_share share = layout->axes[a];
        sf_buf_puts(out, a ? ", " : "");
        if (share.kind == SF_REPLICATED)
            sf_buf_puts(out, share.on ? "" : "R");
        else if (share.kind == SF_PARTIAL)
            sf_buf_printf(out, "P(%s)", monoid_symbol(share.monoid));
        else if (share.period == sf_layout_period(layout, mesh, a, share.dim, dims[share.dim]))
            sf_buf_printf(out, "S(%d)", share.dim);
        else
            sf_buf_printf(out, "S(%d,%" PRId64 ")", share.dim, share.period);
        print_on(share, out);
    }
    sf_buf_putc(out, ']');
}

static void skip_spaces(sf_str *text)
{
    while (text->length && (*text->at == ' ' || *text->at == '\t'))
        *text = (sf_str){text->at + 1, text->length - 1};
}

/* Takes `word`, and the spaces around it, if the text begins with it. */
static bool take_share_word(sf_str *text, const char *word)
{
    skip_spaces(text);
    if (!sf_str_starts(*text, word))
        return false;
    size_t length = strlen(word);
    *text = (sf_str){text->at + length, text->length - length};
    skip_spaces(text);
    return true;
}

static bool take_axis_number(sf_str *text, int64_t limit, int64_t *out)
{
    int64_t value = 0;
    size_t length = 0;
    for (; length < text->length && text->at[length] >= '0' && text->at[length] <= '9'; length++) {
        int digit = text->at[length] - '0';
        if (value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *text = (sf_str){text->at + length, text->length - length};
    *out = value;
    return length > 0;
}

static bool take_monoid(sf_str *text, sf_monoid *out)
{
    for (int m = 0; m < SF_MONOID_COUNT; m++) {
        const char *symbol = monoid_symbol((sf_monoid)m);
        if (symbol && take_share_word(text, symbol)) {
            *out = (sf_monoid)m;
            return true;
        }
    }
    return false;
}

/* Rows by rank, if the text has them. */
static bool parse_partition(sf_str *text, int64_t rows, sf_arena *arena, sf_share *out)
{
    sf_str rest = *text;
    out->partition = arena && rows > 0 && take_share_word(&rest, "(")
                         ? sf_row_partition_parse(&rest, rows, arena)
                         : NULL;
    if (!out->partition || !take_share_word(&rest, ")"))
        return false;
    out->on = sf_row_partition_owners(out->partition);
    *text = rest;
    return true;
}

/* "At(0,1)" or "At(0:0-3,1:4)", if it is next. */
static bool take_on(sf_str *text, int64_t rows, sf_arena *arena, sf_share *out)
{
    enum { MOST = 63 };
    int64_t at;
    if (!take_share_word(text, "At") || parse_partition(text, rows, arena, out))
        return true;
    out->partition = NULL;
    for (const char *before = "("; take_share_word(text, before); before = ",") {
        if (!take_axis_number(text, MOST, &at))
            return false;
        out->on |= UINT64_C(1) << at;
    }
    return out->on != 0 && take_share_word(text, ")");
}

/* Rows, of dimension 0, may be distributed unevenly if their number is known, and there is an
 * arena. */
static bool take_dim_share(sf_str *text, int64_t rows, sf_arena *arena, sf_share *out)
{
    sf_share share = {0};
    int64_t dim;
    if (take_share_word(text, "S")) {
        if (!take_share_word(text, "(") || !take_axis_number(text, INT_MAX, &dim))
            return false;
        share.kind = SF_SPLIT;
        share.dim = (int)dim;
        if (take_share_word(text, ",") &&
            (!take_axis_number(text, INT64_MAX, &share.period) || !share.period))
            return false;
        if (!take_share_word(text, ")"))
            return false;
    } else if (take_share_word(text, "P")) {
        share.kind = SF_PARTIAL;
        if (!take_share_word(text, "(") || !take_monoid(text, &share.monoid) ||
            !take_share_word(text, ")"))
            return false;
    } else if (!take_share_word(text, "R") && !sf_str_starts(*text, "At")) {
        return false;
    }
    if (!take_on(text, share.kind == SF_REPLICATED ? rows : 0, arena, &share))
        return false;
    *out = share;
    return true;
}

sf_status sf_share_parse(sf_str text, sf_diag *diag, sf_share *out)
{
    sf_str rest = text;
    sf_share share;
    if (take_dim_share(&rest, 0, NULL, &share) && rest.length == 0) {
        *out = share;
        return SF_OK;
    }
    sf_fail(diag, SF_EINPUT, SF_NOWHERE, "\"%.*s\" does not say how an axis is used",
            SF_STR_ARGS(text));
    return sf_hint(diag, "write R, S(DIM), S(DIM,PERIOD) or P(M), where M is + * min max & | or ^; "
                         "dimensions count from 0");
}

sf_status sf_layout_parse(sf_str text, const sf_mesh *mesh, int rank, const int64_t *dims,
                          sf_arena *arena, sf_diag *diag, sf_layout *out)
{
    int64_t rows = rank > 0 ? dims[0] : 0;
    sf_layout layout = {0};
    sf_str rest = text;
    bool good = take_share_word(&rest, "[");
    for (int a = 0; good && a < mesh->naxes; a++) {
        sf_share *share = &layout.axes[a];
        good = (a == 0 || take_share_word(&rest, ",")) && take_dim_share(&rest, rows, arena, share);
        if (good && share->kind == SF_SPLIT && share->period == 0 && share->dim < rank)
            share->period = sf_layout_period(&layout, mesh, a, share->dim, dims[share->dim]);
    }
    if (!good || !take_share_word(&rest, "]") || rest.length)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "\"%.*s\" is not a layout on a mesh of %d axes, such as [S(0), R]",
                       SF_STR_ARGS(text), mesh->naxes);
    char why[SF_WHY_TEXT];
    if (!sf_layout_fits(&layout, mesh, rank, dims, why))
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "layout \"%.*s\" does not fit: %s",
                       SF_STR_ARGS(text), why);
    *out = layout;
    return SF_OK;
}

double sf_shard_bytes(const sf_type *type, const sf_layout *layout, const sf_mesh *mesh)
{
    double bytes = (double)sf_type_bytes(type);
    for (int axis = 0; axis < mesh->naxes; axis++)
        if (layout->axes[axis].kind == SF_SPLIT)
            bytes /= sf_share_parts(layout->axes[axis], mesh->axes[axis].size);
        else if (layout->axes[axis].partition && type->dims[0] > 0)
            bytes *=
                (double)sf_row_partition_most(layout->axes[axis].partition) / (double)type->dims[0];
    return bytes;
}

#include "sim/measured_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cluster/cost_model.h"
#include "shard/mesh.h"

/* A sample of a mean. */
typedef struct sample {
    uint64_t key;  /* of an op; of a collective, its kind and axes */
    double amount; /* of a collective: bytes */
    double seconds;
} sample;

typedef struct samples {
    sample *at;
    size_t count, capacity;
} samples;

typedef struct reader {
    sf_str text;
    const char *file;
    sf_diag *diag;
    sf_arena arena;
    sf_mesh mesh;
    sf_costs *costs; /* of the mesh on the cluster, as it was */
    samples ops, collectives;
} reader;

/* Reading */

static sf_status read_mesh(reader *r, const sf_json *root, const sf_cluster *cluster)
{
    const sf_json *value = sf_json_get(sf_json_get(root, "otherData"), "mesh");
    sf_str text;
    int sizes[SF_MAX_AXES];
    if (!sf_json_string(value, &text))
        return SF_JSON_FAIL(r, root, "the trace does not name its mesh: record it again");
    if (text.length > 0)
        SF_TRY(sf_mesh_parse(text, &r->arena, r->diag, &r->mesh));
    for (int a = 0; a < r->mesh.naxes; a++)
        sizes[a] = r->mesh.axes[a].size;
    return sf_costs_new(cluster, r->mesh.naxes, sizes, 0, &r->arena, r->diag, &r->costs);
}

/* "data,model" */
static bool read_axes(const reader *r, sf_str text, sf_axes *out)
{
    *out = 0;
    while (text.length > 0) {
        const char *end = memchr(text.at, ',', text.length);
        sf_str name = {text.at, end ? (size_t)(end - text.at) : text.length};
        int axis = sf_mesh_axis(&r->mesh, name);
        if (axis < 0)
            return false;
        *out |= 1u << axis;
        size_t used = name.length + (end != NULL);
        text = (sf_str){text.at + used, text.length - used};
    }
    return *out != 0;
}

static uint64_t key_of_collective(sf_collective kind, sf_axes axes)
{
    return (uint64_t)kind << 32 | axes;
}

static sf_collective kind_of_key(uint64_t key)
{
    return (sf_collective)(key >> 32);
}

static sf_axes axes_of_key(uint64_t key)
{
    return (sf_axes)(key & UINT32_MAX);
}

/* SF_COLLECTIVE_COUNT: it is none, but a message. */
static sf_collective read_kind(const sf_json *event)
{
    sf_str name;
    return sf_json_string(sf_json_get(event, "name"), &name) ? sf_collective_find(name)
                                                             : SF_COLLECTIVE_COUNT;
}

/* Events without the time of an instruction, or of one that is not simulated by itself, are
 * ignored. */
static sf_status read_event(reader *r, const sf_json *event)
{
    const sf_json *args = sf_json_get(event, "args");
    sample found = {0};
    sf_str phase, text;
    double microseconds;
    if (!sf_json_string(sf_json_get(event, "ph"), &phase) || !sf_str_is(phase, "X"))
        return SF_OK;
    if (!sf_json_number(sf_json_get(args, "mean_us"), &microseconds) &&
        !sf_json_number(sf_json_get(event, "dur"), &microseconds))
        return SF_JSON_FAIL(r, event, "this event has no instruction time");
    if (!(microseconds >= 0) || !isfinite(microseconds))
        return SF_JSON_FAIL(r, event, "this event takes no time that there is");
    found.seconds = 1e-6 * microseconds;
    if (sf_json_hex(sf_json_get(args, "key"), &found.key)) {
        SF_PUSH(&r->arena, r->ops.at, r->ops.count, r->ops.capacity, found);
        return SF_OK;
    }
    sf_collective kind = read_kind(event);
    sf_axes axes;
    if (kind == SF_COLLECTIVE_COUNT || !sf_json_string(sf_json_get(args, "axes"), &text))
        return SF_OK;
    if (!read_axes(r, text, &axes) || !sf_json_number(sf_json_get(args, "bytes"), &found.amount) ||
        !(found.amount >= 0))
        return SF_JSON_FAIL(r, event, "this collective has no bytes along axes of the mesh");
    found.key = key_of_collective(kind, axes);
    if (found.amount > 0 && found.seconds > 0)
        SF_PUSH(&r->arena, r->collectives.at, r->collectives.count, r->collectives.capacity, found);
    return SF_OK;
}

static sf_status read_trace(reader *r, const sf_cluster *cluster)
{
    const sf_json *root, *events;
    SF_TRY(sf_json_parse(r->text, r->file, &r->arena, &root, r->diag));
    events = sf_json_get(root, "traceEvents");
    if (sf_json_kind_of(events) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(r, root, "this is no trace: it has no list \"traceEvents\"");
    SF_TRY(read_mesh(r, root, cluster));
    for (size_t i = 0; i < sf_json_count(events); i++)
        SF_TRY(read_event(r, sf_json_item(events, i)));
    if (r->ops.count + r->collectives.count == 0)
        return SF_JSON_FAIL(r, root, "the trace has no instruction that it says the kind of");
    return SF_OK;
}

/* Means */

static int by_key(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->amount > y->amount) - (x->amount < y->amount);
}

/* Those of one key and amount become one. */
static void take_means(samples *list)
{
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->at, list->count, sizeof *list->at, by_key);
    for (size_t i = 0, end; i < list->count; i = end) {
        sample mean = list->at[i];
        for (end = i + 1; end < list->count && by_key(&list->at[i], &list->at[end]) == 0; end++)
            mean.seconds += list->at[end].seconds;
        mean.seconds /= (double)(end - i);
        list->at[kept++] = mean;
    }
    list->count = kept;
}

static void take_ops(const reader *r, sf_cluster *out)
{
    out->nseen = (int)(r->ops.count < SF_MAX_SEEN ? r->ops.count : SF_MAX_SEEN);
    out->seen = SF_ARRAY(&out->arena, out->nseen, sf_seen_op);
    for (int i = 0; i < out->nseen; i++)
        out->seen[i] = (sf_seen_op){r->ops.at[i].key, r->ops.at[i].seconds};
}

/* Collectives */

static double model_seconds(const reader *r, uint64_t key, double bytes)
{
    return sf_costs_collective(r->costs, kind_of_key(key), axes_of_key(key), bytes);
}

/* Seen by the model's, at so many bytes: that of the sizes around it, by the logarithm of the size. */
static double ratio_at(const reader *r, const sample *seen, size_t count, double bytes)
{
    size_t high = 0;
    while (high < count && seen[high].amount < bytes)
        high++;
    const sample *above = &seen[high < count ? high : count - 1];
    const sample *below = &seen[high > 0 ? high - 1 : 0];
    double first = below->seconds / model_seconds(r, below->key, below->amount);
    double last = above->seconds / model_seconds(r, above->key, above->amount);
    if (above->amount <= below->amount || bytes <= below->amount)
        return high > 0 ? last : first;
    double part = log(bytes / below->amount) / log(above->amount / below->amount);
    return first + fmin(part, 1) * (last - first);
}

/* Sizes that were seen, as many as a curve has room for, and others far from them. */
static sf_curve curve_of_seen(const reader *r, const sample *seen, size_t count, sf_arena *arena)
{
    enum { SIZES = 40, FIRST = 10, LAST = 30 };
    double amounts[SF_CURVE_POINTS], seconds[SF_CURVE_POINTS];
    int points = 0;
    size_t next = 0, step = (count + SIZES - 1) / SIZES;
    for (int power = FIRST; power <= LAST + 2; power += 2) {
        double grid = power <= LAST ? ldexp(1, power) : HUGE_VAL;
        for (; next < count && seen[next].amount <= grid; next += step) {
            amounts[points] = seen[next].amount;
            seconds[points++] = seen[next].seconds;
        }
        if (power <= LAST && (points == 0 || amounts[points - 1] < grid)) {
            amounts[points] = grid;
            seconds[points++] =
                model_seconds(r, seen[0].key, grid) * ratio_at(r, seen, count, grid);
        }
    }
    return sf_curve_fit(points, amounts, seconds, arena);
}

static void set_measured(sf_cluster *out, const sf_measured *measured)
{
    for (int i = 0; i < out->nmeasured; i++)
        if (out->measured[i].kind == measured->kind &&
            memcmp(out->measured[i].shape, measured->shape, sizeof measured->shape) == 0) {
            out->measured[i] = *measured;
            return;
        }
    if (out->nmeasured < SF_MAX_MEASURED)
        out->measured[out->nmeasured++] = *measured;
}

static void take_collectives(const reader *r, sf_cluster *out)
{
    const samples *all = &r->collectives;
    sf_measured *before = out->measured;
    out->measured = SF_ARRAY(&out->arena, SF_MAX_MEASURED, sf_measured);
    if (out->nmeasured > 0)
        memcpy(out->measured, before, (size_t)out->nmeasured * sizeof *before);
    for (size_t i = 0, end; i < all->count; i = end) {
        const sample *seen = &all->at[i];
        sf_measured measured = {.kind = kind_of_key(seen->key)};
        for (end = i + 1; end < all->count && all->at[end].key == seen->key;)
            end++;
        if (!sf_costs_group_shape(r->costs, axes_of_key(seen->key), measured.shape) ||
            sf_costs_group_size(r->costs, axes_of_key(seen->key)) == 1)
            continue;
        measured.curve = curve_of_seen(r, seen, end - i, &out->arena);
        set_measured(out, &measured);
    }
}

/* A copy by way of its text, so that nothing of the old one is in the new. */
static sf_status copy_cluster(const sf_cluster *cluster, sf_diag *diag, sf_cluster **out)
{
    sf_buf text = {0};
    sf_cluster_write(cluster, &text);
    sf_status status = sf_cluster_read((sf_str){text.text, text.length}, cluster->name, diag, out);
    sf_buf_free(&text);
    return status;
}

sf_status sf_cluster_see(const sf_cluster *cluster, sf_str trace, const char *file, sf_diag *diag,
                         sf_cluster **out)
{
    reader r = {.text = trace, .file = file, .diag = diag};
    sf_status status = read_trace(&r, cluster);
    if (status == SF_OK)
        status = copy_cluster(cluster, diag, out);
    if (status == SF_OK) {
        take_means(&r.ops);
        take_means(&r.collectives);
        take_ops(&r, *out);
        take_collectives(&r, *out);
    }
    sf_arena_free(&r.arena);
    return status;
}

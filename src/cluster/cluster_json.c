/* The cluster as a file. Both directions walk the same few kinds of objects; reading refuses
 * unknown keys, so that a misspelt key is found. */
#include <string.h>

#include "base/json.h"
#include "cluster/cluster.h"

enum { CLUSTER_VERSION = 1 };
#define CLUSTER_FORMAT "sheaf cluster"

/* Numbers past these are a mistake, and arithmetic on them might overflow. */
#define LEAST_NUMBER 1e-30
#define MOST_NUMBER 1e30
enum { MOST_KINDS = 1024 };

/* The numbers of a device, which both directions need in one order. */
static const struct {
    const char *key;
    size_t offset;
    double least, most;
    bool may_miss; /* then it is 0 */
} device_numbers[] = {
    {"vector_flops", offsetof(sf_device_kind, vector_flops), LEAST_NUMBER, MOST_NUMBER, false},
    {"bandwidth", offsetof(sf_device_kind, bandwidth), LEAST_NUMBER, MOST_NUMBER, false},
    {"product_share", offsetof(sf_device_kind, product_share), LEAST_NUMBER, 1, false},
    {"memory_share", offsetof(sf_device_kind, memory_share), LEAST_NUMBER, 1, false},
    {"ramp", offsetof(sf_device_kind, ramp), 0, MOST_NUMBER, false},
    {"launch", offsetof(sf_device_kind, launch), 0, MOST_NUMBER, false},
    {"threads", offsetof(sf_device_kind, threads), 0, SF_MAX_DEVICES, true},
    {"drag", offsetof(sf_device_kind, drag), 0, 1, true},
    {"host_bandwidth", offsetof(sf_device_kind, host_bandwidth), 0, MOST_NUMBER, true},
    {"host_latency", offsetof(sf_device_kind, host_latency), 0, MOST_NUMBER, true},
    {"divide", offsetof(sf_device_kind, divide), 0, MOST_NUMBER, true},
    {"function", offsetof(sf_device_kind, function), 0, MOST_NUMBER, true},
    {"fold", offsetof(sf_device_kind, fold), 0, MOST_NUMBER, true},
    {"strided", offsetof(sf_device_kind, strided), 0, MOST_NUMBER, true},
    {"run", offsetof(sf_device_kind, run), 0, MOST_NUMBER, true},
    {"pack", offsetof(sf_device_kind, pack), 0, MOST_NUMBER, true},
    {"pack_across", offsetof(sf_device_kind, pack_across), 0, MOST_NUMBER, true},
    {"pack_run", offsetof(sf_device_kind, pack_run), 0, MOST_NUMBER, true},
    {"turned", offsetof(sf_device_kind, transposed), 0, MOST_NUMBER, true},
    {"transposed_run", offsetof(sf_device_kind, transposed_run), 0, MOST_NUMBER, true},
    {"window", offsetof(sf_device_kind, window), 0, MOST_NUMBER, true},
};
enum { DEVICE_NUMBERS = sizeof device_numbers / sizeof *device_numbers };

static double *number_in_row(sf_device_kind *kind, int index)
{
    return (double *)((char *)kind + device_numbers[index].offset);
}

/* Whose kernels a device has, and those that stand for several ops. */
static const char *const engines[] = {"cpu", "cuda"};
#define ATTENTION "attention"

/* Writing */

static void put_link(sf_json_writer *json, const char *key, const sf_link *link)
{
    sf_json_key(json, key);
    sf_json_begin_object(json);
    sf_json_add_double(json, "latency", link->latency);
    sf_json_add_double(json, "bandwidth", link->bandwidth);
    sf_json_add_int(json, "lanes", link->lanes);
    if (link->peer > 0)
        sf_json_add_double(json, "peer", link->peer);
    sf_json_end_object(json);
}

static void put_curve(sf_json_writer *json, const char *key, const sf_curve *curve)
{
    sf_json_key(json, key);
    sf_json_begin_array(json);
    for (int i = 0; i < curve->count; i++) {
        sf_json_begin_row(json);
        sf_json_put_double(json, curve->amounts[i]);
        sf_json_put_double(json, curve->seconds[i]);
        sf_json_end_array(json);
    }
    sf_json_end_array(json);
}

/* By type. */
static void put_products(sf_json_writer *json, const char *key, const sf_curve *curves)
{
    bool any = false;
    for (int m = 0; m < SF_MATH_COUNT; m++)
        any = any || curves[m].count > 0;
    if (!any)
        return;
    sf_json_key(json, key);
    sf_json_begin_object(json);
    for (int m = 0; m < SF_MATH_COUNT; m++)
        if (curves[m].count > 0)
            put_curve(json, sf_math_name((sf_math)m), &curves[m]);
    sf_json_end_object(json);
}

static void put_depths(sf_json_writer *json, const char *key, const sf_depths *depths)
{
    sf_json_key(json, key);
    sf_json_begin_array(json);
    for (int i = 0; i < depths->count; i++) {
        sf_json_begin_object(json);
        sf_json_add_double(json, "depth", depths->depths[i]);
        put_curve(json, "seconds", &depths->curves[i]);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_gpu(sf_json_writer *json, const sf_gpu *gpu)
{
    sf_json_key(json, "gpu");
    sf_json_begin_object(json);
    sf_json_key(json, "products");
    sf_json_begin_object(json);
    for (int m = 0; m < SF_MATH_COUNT; m++)
        if (gpu->products[m].count > 0)
            put_depths(json, sf_math_name((sf_math)m), &gpu->products[m]);
    sf_json_end_object(json);
    for (int u = SF_UNIT_OTHER + 1; u < SF_UNIT_COUNT; u++)
        put_products(json, sf_unit_name((sf_unit)u), gpu->units[u]);
    for (int t = SF_TOUCH_LOOP + 1; t < SF_TOUCH_COUNT; t++)
        if (gpu->memory[t].count > 0)
            put_curve(json, sf_touch_name((sf_touch)t), &gpu->memory[t]);
    sf_json_end_object(json);
}

static void put_measured_device(sf_json_writer *json, const sf_device_kind *kind)
{
    put_products(json, "products", kind->products);
    put_products(json, "batched", kind->batched);
    if (kind->loops.count > 0)
        put_curve(json, "loops", &kind->loops);
    if (kind->paces.count > 0)
        put_curve(json, "paces", &kind->paces);
    if (kind->convolutions.count > 0)
        put_curve(json, "convolutions", &kind->convolutions);
    if (kind->gpu)
        put_gpu(json, kind->gpu);
}

static void put_device(sf_json_writer *json, sf_device_kind kind)
{
    sf_json_begin_object(json);
    sf_json_add_string(json, "name", kind.name);
    sf_json_add_string(json, "source", kind.source);
    sf_json_add_int(json, "memory", kind.memory);
    if (kind.reserve > 0)
        sf_json_add_int(json, "reserve", kind.reserve);
    sf_json_key(json, "flops");
    sf_json_begin_object(json);
    for (int m = 0; m < SF_MATH_COUNT; m++)
        if (kind.flops[m] > 0)
            sf_json_add_double(json, sf_math_name((sf_math)m), kind.flops[m]);
    sf_json_end_object(json);
    for (int i = 0; i < DEVICE_NUMBERS; i++)
        if (!device_numbers[i].may_miss || *number_in_row(&kind, i) > 0)
            sf_json_add_double(json, device_numbers[i].key, *number_in_row(&kind, i));
    sf_json_add_string(json, "engine", engines[kind.is_gpu]);
    if (kind.is_plain) {
        sf_json_key(json, "kernels");
        sf_json_begin_array(json);
        sf_json_end_array(json);
    }
    put_measured_device(json, &kind);
    sf_json_end_object(json);
}

static void put_nodes(sf_json_writer *json, const sf_cluster *cluster, const sf_nodes *run)
{
    sf_json_begin_object(json);
    sf_json_add_int(json, "count", run->count);
    sf_json_add_int(json, "devices", run->devices);
    sf_json_add_string(json, "device", cluster->kinds[run->kind].name);
    put_link(json, "inside", &run->inside);
    put_link(json, "network", &run->network);
    sf_json_end_object(json);
}

static void put_measured(sf_json_writer *json, const sf_measured *measured)
{
    sf_json_begin_object(json);
    sf_json_add_string(json, "kind", sf_collective_name(measured->kind));
    sf_json_key(json, "shape");
    sf_json_begin_row(json);
    for (int l = 0; l < SF_LEVELS; l++)
        sf_json_put_int(json, measured->shape[l]);
    sf_json_end_array(json);
    put_curve(json, "seconds", &measured->curve);
    sf_json_end_object(json);
}

static void put_seen(sf_json_writer *json, const sf_cluster *cluster)
{
    sf_json_key(json, "seen");
    sf_json_begin_array(json);
    for (int i = 0; i < cluster->nseen; i++) {
        sf_json_begin_row(json);
        sf_json_put_hex(json, cluster->seen[i].key);
        sf_json_put_double(json, cluster->seen[i].seconds);
        sf_json_end_array(json);
    }
    sf_json_end_array(json);
}

static void put_lists(sf_json_writer *json, const sf_cluster *cluster)
{
    sf_json_key(json, "devices");
    sf_json_begin_array(json);
    for (int i = 0; i < cluster->nkinds; i++)
        put_device(json, cluster->kinds[i]);
    sf_json_end_array(json);
    sf_json_key(json, "nodes");
    sf_json_begin_array(json);
    for (int i = 0; i < cluster->nruns; i++)
        put_nodes(json, cluster, &cluster->nodes[i]);
    sf_json_end_array(json);
    if (cluster->rack_nodes) {
        sf_json_key(json, "racks");
        sf_json_begin_object(json);
        sf_json_add_int(json, "nodes", cluster->rack_nodes);
        put_link(json, "uplink", &cluster->uplink);
        sf_json_end_object(json);
    }
    if (cluster->nmeasured > 0) {
        sf_json_key(json, "collectives");
        sf_json_begin_array(json);
        for (int i = 0; i < cluster->nmeasured; i++)
            put_measured(json, &cluster->measured[i]);
        sf_json_end_array(json);
    }
    if (cluster->nseen > 0)
        put_seen(json, cluster);
}

void sf_cluster_write(const sf_cluster *cluster, sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_add_string(&json, "format", CLUSTER_FORMAT);
    sf_json_add_int(&json, "version", CLUSTER_VERSION);
    sf_json_add_string(&json, "name", cluster->name);
    sf_json_add_string(&json, "source", cluster->source);
    put_lists(&json, cluster);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}

/* Reading */

typedef struct reader {
    sf_str text;
    const char *file;
    sf_diag *diag;
    sf_arena tree;
    sf_cluster *cluster;
} reader;

/* An object with no keys but these; the list ends with NULL. */
static sf_status expect_object(reader *r, const sf_json *value, const char *what,
                               const char *const *keys)
{
    if (sf_json_kind_of(value) != SF_JSON_OBJECT)
        return SF_JSON_FAIL(r, value, "%s is an object, not %s", what,
                            sf_json_kind_name(sf_json_kind_of(value)));
    for (size_t i = 0; i < sf_json_count(value); i++) {
        sf_str key = sf_json_key_at(value, i);
        int k = 0;
        while (keys[k] && !sf_str_is(key, keys[k]))
            k++;
        if (!keys[k])
            return SF_JSON_FAIL(r, sf_json_value_at(value, i), "%s has no \"%.*s\"", what,
                                SF_STR_ARGS(key));
    }
    return SF_OK;
}

static sf_status expect_list(reader *r, const sf_json *object, const char *key, size_t least,
                             size_t most, const sf_json **out)
{
    *out = sf_json_get(object, key);
    size_t count = sf_json_count(*out);
    if (!*out)
        return SF_JSON_FAIL(r, object, "\"%s\" is missing", key);
    if (sf_json_kind_of(*out) != SF_JSON_ARRAY || count < least || count > most)
        return SF_JSON_FAIL(r, *out, "\"%s\" is an array of %zu to %zu items", key, least, most);
    return SF_OK;
}

static sf_status get_string(reader *r, const sf_json *object, const char *key, const char **out)
{
    const sf_json *value = sf_json_get(object, key);
    sf_str text;
    if (!value)
        return SF_JSON_FAIL(r, object, "\"%s\" is missing", key);
    if (!sf_json_string(value, &text))
        return SF_JSON_FAIL(r, value, "\"%s\" is a string", key);
    *out = sf_arena_string(&r->cluster->arena, text.at, text.length);
    return SF_OK;
}

/* May be left out. */
static sf_status get_source(reader *r, const sf_json *object, const char **out)
{
    *out = "";
    return sf_json_get(object, "source") ? get_string(r, object, "source", out) : SF_OK;
}

static sf_status get_int(reader *r, const sf_json *object, const char *key, int64_t least,
                         int64_t most, int64_t *out)
{
    const sf_json *value = sf_json_get(object, key);
    if (!value)
        return SF_JSON_FAIL(r, object, "\"%s\" is missing", key);
    if (!sf_json_int(value, out) || *out < least || *out > most)
        return SF_JSON_FAIL(r, value, "\"%s\" is an integer from %lld to %lld", key,
                            (long long)least, (long long)most);
    return SF_OK;
}

static sf_status get_small(reader *r, const sf_json *object, const char *key, int least, int *out)
{
    int64_t value;
    SF_TRY(get_int(r, object, key, least, SF_MAX_DEVICES, &value));
    *out = (int)value;
    return SF_OK;
}

static bool is_number(const sf_json *value, double least, double most, double *out)
{
    return sf_json_number(value, out) && *out >= least && *out <= most;
}

static sf_status get_number(reader *r, const sf_json *object, const char *key, double least,
                            double most, double *out)
{
    const sf_json *value = sf_json_get(object, key);
    if (!value)
        return SF_JSON_FAIL(r, object, "\"%s\" is missing", key);
    if (!is_number(value, least, most, out))
        return SF_JSON_FAIL(r, value, "\"%s\" is a %s number of at most %g", key,
                            least > 0 ? "positive" : "non-negative", most);
    return SF_OK;
}

static sf_status get_link(reader *r, const sf_json *object, const char *key, sf_link *out)
{
    static const char *const keys[] = {"latency", "bandwidth", "lanes", NULL};
    static const char *const inside_keys[] = {"latency", "bandwidth", "lanes", "peer", NULL};
    const sf_json *value = sf_json_get(object, key);
    if (!value)
        return SF_JSON_FAIL(r, object, "\"%s\" is missing", key);
    SF_TRY(expect_object(r, value, key, strcmp(key, "inside") == 0 ? inside_keys : keys));
    if (sf_json_get(value, "peer"))
        SF_TRY(get_number(r, value, "peer", LEAST_NUMBER, MOST_NUMBER, &out->peer));
    SF_TRY(get_number(r, value, "latency", 0, MOST_NUMBER, &out->latency));
    SF_TRY(get_number(r, value, "bandwidth", LEAST_NUMBER, MOST_NUMBER, &out->bandwidth));
    return get_small(r, value, "lanes", 0, &out->lanes);
}

static sf_status get_curve(reader *r, const sf_json *object, const char *key, sf_curve *out)
{
    const sf_json *list;
    SF_TRY(expect_list(r, object, key, 1, SF_CURVE_POINTS, &list));
    int count = (int)sf_json_count(list);
    double *amounts = SF_ARRAY(&r->cluster->arena, count, double);
    double *seconds = SF_ARRAY(&r->cluster->arena, count, double);
    for (int i = 0; i < count; i++) {
        const sf_json *point = sf_json_item(list, (size_t)i);
        if (sf_json_kind_of(point) != SF_JSON_ARRAY || sf_json_count(point) != 2 ||
            !is_number(sf_json_item(point, 0), LEAST_NUMBER, MOST_NUMBER, &amounts[i]) ||
            !is_number(sf_json_item(point, 1), LEAST_NUMBER, MOST_NUMBER, &seconds[i]))
            return SF_JSON_FAIL(
                r, point, "a point of a curve is [amount, seconds], both positive and at most %g",
                MOST_NUMBER);
        if (i > 0 && (amounts[i] <= amounts[i - 1] || seconds[i] < seconds[i - 1]))
            return SF_JSON_FAIL(r, point,
                                "along a curve amounts increase, and seconds do not decrease");
    }
    *out = (sf_curve){count, amounts, seconds};
    return SF_OK;
}

static const char *const math_keys[] = {"f64", "f32", "tf32", "bf16", "f16", "f8", NULL};

static sf_status get_flops(reader *r, const sf_json *device, sf_device_kind *out)
{
    const sf_json *flops = sf_json_get(device, "flops");
    if (!flops)
        return SF_JSON_FAIL(r, device, "\"flops\" is missing");
    SF_TRY(expect_object(r, flops, "flops", math_keys));
    for (int m = 0; m < SF_MATH_COUNT; m++)
        if (m == SF_MATH_F32 || sf_json_get(flops, math_keys[m]))
            SF_TRY(get_number(r, flops, math_keys[m], LEAST_NUMBER, MOST_NUMBER, &out->flops[m]));
    return SF_OK;
}

static sf_status get_products(reader *r, const sf_json *device, const char *key, sf_curve *out)
{
    const sf_json *curves = sf_json_get(device, key);
    if (!curves)
        return SF_OK;
    SF_TRY(expect_object(r, curves, key, math_keys));
    for (int m = 0; m < SF_MATH_COUNT; m++)
        if (sf_json_get(curves, math_keys[m]))
            SF_TRY(get_curve(r, curves, math_keys[m], &out[m]));
    return SF_OK;
}

static sf_status get_depths(reader *r, const sf_json *types, const char *key, sf_depths *out)
{
    static const char *const keys[] = {"depth", "seconds", NULL};
    const sf_json *list;
    SF_TRY(expect_list(r, types, key, 1, SF_MOST_DEPTHS, &list));
    int count = (int)sf_json_count(list);
    double *depths = SF_ARRAY(&r->cluster->arena, count, double);
    sf_curve *curves = SF_ARRAY(&r->cluster->arena, count, sf_curve);
    for (int i = 0; i < count; i++) {
        const sf_json *item = sf_json_item(list, (size_t)i);
        SF_TRY(expect_object(r, item, "products of a depth", keys));
        SF_TRY(get_number(r, item, "depth", LEAST_NUMBER, MOST_NUMBER, &depths[i]));
        SF_TRY(get_curve(r, item, "seconds", &curves[i]));
        if (i > 0 && depths[i] <= depths[i - 1])
            return SF_JSON_FAIL(r, item, "depths increase");
    }
    *out = (sf_depths){count, depths, curves};
    return SF_OK;
}

static sf_status get_gpu(reader *r, const sf_json *device, sf_device_kind *out)
{
    const sf_json *object = sf_json_get(device, "gpu");
    const char *keys[SF_UNIT_COUNT + SF_TOUCH_COUNT] = {"products"};
    if (!object)
        return SF_OK;
    for (int u = SF_UNIT_OTHER + 1; u < SF_UNIT_COUNT; u++)
        keys[u] = sf_unit_name((sf_unit)u);
    for (int t = SF_TOUCH_LOOP + 1; t < SF_TOUCH_COUNT; t++)
        keys[SF_UNIT_COUNT + t - 1] = sf_touch_name((sf_touch)t);
    SF_TRY(expect_object(r, object, "gpu", keys));
    sf_gpu *gpu = SF_NEW(&r->cluster->arena, sf_gpu);
    const sf_json *products = sf_json_get(object, "products");
    if (!products)
        return SF_JSON_FAIL(r, object, "\"products\" is missing");
    if (out->loops.count == 0)
        return SF_JSON_FAIL(r, device, "a device with \"gpu\" has \"loops\"");
    SF_TRY(expect_object(r, products, "products", math_keys));
    for (int m = 0; m < SF_MATH_COUNT; m++)
        if (sf_json_get(products, math_keys[m]))
            SF_TRY(get_depths(r, products, math_keys[m], &gpu->products[m]));
    for (int u = SF_UNIT_OTHER + 1; u < SF_UNIT_COUNT; u++)
        SF_TRY(get_products(r, object, sf_unit_name((sf_unit)u), gpu->units[u]));
    for (int t = SF_TOUCH_LOOP + 1; t < SF_TOUCH_COUNT; t++)
        if (sf_json_get(object, sf_touch_name((sf_touch)t)))
            SF_TRY(get_curve(r, object, sf_touch_name((sf_touch)t), &gpu->memory[t]));
    out->gpu = gpu;
    return SF_OK;
}

static sf_status get_device_curves(reader *r, const sf_json *device, sf_device_kind *out)
{
    SF_TRY(get_products(r, device, "products", out->products));
    SF_TRY(get_products(r, device, "batched", out->batched));
    if (sf_json_get(device, "loops"))
        SF_TRY(get_curve(r, device, "loops", &out->loops));
    if (sf_json_get(device, "paces"))
        SF_TRY(get_curve(r, device, "paces", &out->paces));
    if (sf_json_get(device, "convolutions"))
        SF_TRY(get_curve(r, device, "convolutions", &out->convolutions));
    return get_gpu(r, device, out);
}

/* A device that says nothing has what the engine has. */
static sf_status get_kernels(reader *r, const sf_json *device, sf_device_kind *out)
{
    const sf_json *list;
    const char *engine = engines[out->gpu != NULL];
    if (sf_json_get(device, "engine"))
        SF_TRY(get_string(r, device, "engine", &engine));
    out->is_gpu = strcmp(engine, engines[1]) == 0;
    if (strcmp(engine, engines[out->is_gpu]) != 0 || (out->gpu && !out->is_gpu))
        return SF_JSON_FAIL(r, sf_json_get(device, "engine"),
                            "\"engine\" is \"cpu\" or \"cuda\", and \"cuda\" where \"gpu\" says "
                            "what was measured");
    if (!sf_json_get(device, "kernels"))
        return SF_OK;
    SF_TRY(expect_list(r, device, "kernels", 0, 1, &list));
    out->is_plain = sf_json_count(list) == 0;
    sf_str name;
    if (!out->is_plain &&
        (!sf_json_string(sf_json_item(list, 0), &name) || !sf_str_is(name, ATTENTION)))
        return SF_JSON_FAIL(r, list, "\"kernels\" is [] or [\"" ATTENTION "\"]");
    return SF_OK;
}

static sf_status get_device(reader *r, const sf_json *device, sf_device_kind *out)
{
    static const char *const keys[] = {
        "name",         "source",         "memory",        "reserve",      "flops",
        "vector_flops", "bandwidth",      "product_share", "memory_share", "ramp",
        "launch",       "threads",        "drag",          "products",     "batched",
        "loops",        "paces",          "convolutions",  "divide",       "function",
        "fold",         "strided",        "run",           "pack",         "pack_across",
        "pack_run",     "host_bandwidth", "host_latency",  "turned",       "transposed_run",
        "window",       "engine",         "kernels",       "gpu",          NULL};
    SF_TRY(expect_object(r, device, "a device", keys));
    SF_TRY(get_string(r, device, "name", &out->name));
    SF_TRY(get_source(r, device, &out->source));
    SF_TRY(get_int(r, device, "memory", 1, INT64_C(1) << 60, &out->memory));
    if (sf_json_get(device, "reserve"))
        SF_TRY(get_int(r, device, "reserve", 0, out->memory - 1, &out->reserve));
    SF_TRY(get_flops(r, device, out));
    for (int i = 0; i < DEVICE_NUMBERS; i++) {
        if (device_numbers[i].may_miss && !sf_json_get(device, device_numbers[i].key))
            continue;
        SF_TRY(get_number(r, device, device_numbers[i].key, device_numbers[i].least,
                          device_numbers[i].most, number_in_row(out, i)));
    }
    SF_TRY(get_device_curves(r, device, out));
    return get_kernels(r, device, out);
}

static sf_status get_devices(reader *r, const sf_json *root)
{
    sf_cluster *cluster = r->cluster;
    const sf_json *list;
    SF_TRY(expect_list(r, root, "devices", 1, MOST_KINDS, &list));
    cluster->kinds = SF_ARRAY(&cluster->arena, sf_json_count(list), sf_device_kind);
    for (size_t i = 0; i < sf_json_count(list); i++) {
        const sf_json *item = sf_json_item(list, i);
        SF_TRY(get_device(r, item, &cluster->kinds[i]));
        for (size_t j = 0; j < i; j++)
            if (strcmp(cluster->kinds[j].name, cluster->kinds[i].name) == 0)
                return SF_JSON_FAIL(r, item, "two devices are called \"%s\"",
                                    cluster->kinds[i].name);
        cluster->nkinds++;
    }
    return SF_OK;
}

static sf_status get_nodes(reader *r, const sf_json *nodes, sf_nodes *out)
{
    static const char *const keys[] = {"count", "devices", "device", "inside", "network", NULL};
    const char *name = "";
    SF_TRY(expect_object(r, nodes, "an item of \"nodes\"", keys));
    SF_TRY(get_small(r, nodes, "count", 1, &out->count));
    SF_TRY(get_small(r, nodes, "devices", 1, &out->devices));
    SF_TRY(get_string(r, nodes, "device", &name));
    while (out->kind < r->cluster->nkinds && strcmp(r->cluster->kinds[out->kind].name, name) != 0)
        out->kind++;
    if (out->kind == r->cluster->nkinds)
        return SF_JSON_FAIL(r, sf_json_get(nodes, "device"), "\"devices\" has none called \"%s\"",
                            name);
    SF_TRY(get_link(r, nodes, "inside", &out->inside));
    return get_link(r, nodes, "network", &out->network);
}

static sf_status get_runs(reader *r, const sf_json *root)
{
    sf_cluster *cluster = r->cluster;
    const sf_json *list;
    SF_TRY(expect_list(r, root, "nodes", 1, SF_MAX_DEVICES, &list));
    cluster->nruns = (int)sf_json_count(list);
    cluster->nodes = SF_ARRAY(&cluster->arena, cluster->nruns, sf_nodes);
    for (int i = 0; i < cluster->nruns; i++)
        SF_TRY(get_nodes(r, sf_json_item(list, (size_t)i), &cluster->nodes[i]));
    return sf_cluster_finish(cluster, sf_json_loc(list, r->text, r->file), r->diag);
}

static sf_status get_racks(reader *r, const sf_json *root)
{
    static const char *const keys[] = {"nodes", "uplink", NULL};
    const sf_json *racks = sf_json_get(root, "racks");
    if (!racks)
        return SF_OK;
    SF_TRY(expect_object(r, racks, "racks", keys));
    SF_TRY(get_small(r, racks, "nodes", 1, &r->cluster->rack_nodes));
    return get_link(r, racks, "uplink", &r->cluster->uplink);
}

static sf_status get_measured(reader *r, const sf_json *item, sf_measured *out)
{
    static const char *const keys[] = {"kind", "shape", "seconds", NULL};
    const char *kind = "";
    const sf_json *shape;
    SF_TRY(expect_object(r, item, "an item of \"collectives\"", keys));
    SF_TRY(get_string(r, item, "kind", &kind));
    out->kind = sf_collective_find(sf_str_of(kind));
    if (out->kind == SF_COLLECTIVE_COUNT)
        return SF_JSON_FAIL(r, sf_json_get(item, "kind"), "there is no collective \"%s\"", kind);
    SF_TRY(expect_list(r, item, "shape", SF_LEVELS, SF_LEVELS, &shape));
    for (int l = 0; l < SF_LEVELS; l++) {
        int64_t size;
        if (!sf_json_int(sf_json_item(shape, (size_t)l), &size) || size < 1 ||
            size > SF_MAX_DEVICES)
            return SF_JSON_FAIL(r, shape,
                                "\"shape\" is members in a node, nodes in a rack, and racks");
        out->shape[l] = (int)size;
    }
    return get_curve(r, item, "seconds", &out->curve);
}

static sf_status get_collectives(reader *r, const sf_json *root)
{
    sf_cluster *cluster = r->cluster;
    const sf_json *list;
    if (!sf_json_get(root, "collectives"))
        return SF_OK;
    SF_TRY(expect_list(r, root, "collectives", 0, SF_MAX_MEASURED, &list));
    int count = (int)sf_json_count(list);
    cluster->measured = SF_ARRAY(&cluster->arena, count, sf_measured);
    for (int i = 0; i < count; i++) {
        const sf_json *item = sf_json_item(list, (size_t)i);
        sf_measured *measured = &cluster->measured[i];
        SF_TRY(get_measured(r, item, measured));
        for (int j = 0; j < i; j++)
            if (cluster->measured[j].kind == measured->kind &&
                memcmp(cluster->measured[j].shape, measured->shape, sizeof measured->shape) == 0)
                return SF_JSON_FAIL(r, item,
                                    "this collective in groups of this shape is given twice");
        cluster->nmeasured++;
    }
    return SF_OK;
}

static sf_status get_seen(reader *r, const sf_json *root)
{
    sf_cluster *cluster = r->cluster;
    const sf_json *list;
    if (!sf_json_get(root, "seen"))
        return SF_OK;
    SF_TRY(expect_list(r, root, "seen", 0, SF_MAX_SEEN, &list));
    int count = (int)sf_json_count(list);
    cluster->seen = SF_ARRAY(&cluster->arena, count, sf_seen_op);
    for (int i = 0; i < count; i++) {
        const sf_json *item = sf_json_item(list, (size_t)i);
        sf_seen_op *seen = &cluster->seen[i];
        if (sf_json_kind_of(item) != SF_JSON_ARRAY || sf_json_count(item) != 2 ||
            !sf_json_hex(sf_json_item(item, 0), &seen->key) ||
            !is_number(sf_json_item(item, 1), 0, MOST_NUMBER, &seen->seconds) ||
            (i > 0 && seen->key <= cluster->seen[i - 1].key))
            return SF_JSON_FAIL(r, item,
                                "what was seen is [key, seconds], keys of 16 digits that increase");
        cluster->nseen++;
    }
    return SF_OK;
}

static sf_status read_root(reader *r)
{
    static const char *const keys[] = {"format", "version", "name",        "source", "devices",
                                       "nodes",  "racks",   "collectives", "seen",   NULL};
    const sf_json *root;
    const char *format = "";
    int64_t version;
    SF_TRY(sf_json_parse(r->text, r->file, &r->tree, &root, r->diag));
    SF_TRY(expect_object(r, root, "a cluster", keys));
    SF_TRY(get_string(r, root, "format", &format));
    if (strcmp(format, CLUSTER_FORMAT) != 0)
        return SF_JSON_FAIL(r, sf_json_get(root, "format"), "this is \"%s\", not \"%s\"", format,
                            CLUSTER_FORMAT);
    SF_TRY(get_int(r, root, "version", CLUSTER_VERSION, CLUSTER_VERSION, &version));
    SF_TRY(get_string(r, root, "name", &r->cluster->name));
    SF_TRY(get_source(r, root, &r->cluster->source));
    SF_TRY(get_devices(r, root));
    SF_TRY(get_runs(r, root));
    SF_TRY(get_racks(r, root));
    SF_TRY(get_collectives(r, root));
    return get_seen(r, root);
}

sf_status sf_cluster_read(sf_str text, const char *file, sf_diag *diag, sf_cluster **out)
{
    reader r = {.text = text, .file = file, .diag = diag, .cluster = sf_cluster_new()};
    sf_status status = read_root(&r);
    sf_arena_free(&r.tree);
    if (status == SF_OK)
        *out = r.cluster;
    else
        sf_cluster_free(r.cluster);
    return status;
}

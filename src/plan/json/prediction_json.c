#include "plan/json/prediction_json.h"

#include <stddef.h>
#include <stdlib.h>

#include "cluster/part.h"

/* The numbers, which both directions need. */
static const struct {
    const char *key;
    size_t offset;
} numbers[] = {
    {"seconds", offsetof(sf_prediction, seconds)}, {"compute", offsetof(sf_prediction, compute)},
    {"exposed", offsetof(sf_prediction, exposed)}, {"hidden", offsetof(sf_prediction, hidden)},
    {"traffic", offsetof(sf_prediction, traffic)}, {"bound", offsetof(sf_prediction, bound)},
    {"margin", offsetof(sf_prediction, margin)},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static double *number_at_key(sf_prediction *predicted, int index)
{
    return (double *)(void *)((char *)predicted + numbers[index].offset);
}

static void put_alternative(const sf_alternative *alternative, sf_json_writer *json)
{
    sf_json_begin_row(json);
    sf_json_put_string(json, alternative->name);
    sf_json_put_string(json, alternative->mesh);
    sf_json_put_double(json, alternative->seconds);
    sf_json_put_int(json, alternative->memory);
    sf_json_put_bool(json, alternative->fits);
    sf_json_put_bool(json, alternative->lowered);
    sf_json_end_array(json);
}

void sf_unused_devices_put(const sf_prediction *predicted, sf_json_writer *json)
{
    sf_json_key(json, "unused_devices");
    sf_json_begin_array(json);
    for (int i = 0; i < predicted->nunused; i++) {
        sf_json_begin_row(json);
        sf_json_put_string(json, predicted->unused[i].nodes);
        sf_json_put_string(json, predicted->unused[i].what);
        sf_json_put_string(json, predicted->unused[i].why);
        sf_json_end_array(json);
    }
    sf_json_end_array(json);
}

void sf_prediction_put(const sf_prediction *predicted, const char *file, sf_json_writer *json)
{
    sf_prediction copy = *predicted;
    sf_json_begin_object(json);
    if (file && *predicted->step)
        sf_json_add_path(json, "step", predicted->step);
    sf_json_add_path(json, "cluster", predicted->cluster);
    if (file && predicted->cluster_file.path) {
        sf_json_key(json, "cluster_file");
        sf_reference_put(&predicted->cluster_file, file, json);
    }
    sf_json_add_hex(json, "cluster_hash", predicted->cluster_hash);
    if (*predicted->nodes)
        sf_json_add_string(json, "nodes", predicted->nodes);
    if (predicted->nunused > 0)
        sf_unused_devices_put(predicted, json);
    for (int i = 0; i < NUMBERS; i++)
        sf_json_add_double(json, numbers[i].key, *number_at_key(&copy, i));
    sf_json_add_int(json, "memory", predicted->memory);
    sf_json_add_int(json, "limit", predicted->limit);
    sf_json_key(json, "alternatives");
    sf_json_begin_array(json);
    for (int i = 0; i < predicted->nalternatives; i++)
        put_alternative(&predicted->alternatives[i], json);
    sf_json_end_array(json);
    sf_json_end_object(json);
}

typedef struct reader {
    sf_str text;
    const char *file;
    sf_arena *arena;
    sf_diag *diag;
} reader;

static sf_status read_string(reader *r, const sf_json *object, const char *key, const char **out)
{
    *out = sf_json_path(object, key, r->arena);
    if (!*out)
        return SF_JSON_FAIL(r, object, "\"predicted\" has no string \"%s\"", key);
    return SF_OK;
}

/* The written form is kept when the plan is written once more. */
static void read_cluster_file(reader *r, const sf_json *value, sf_reference *out)
{
    sf_str digest;
    const char *path = sf_reference_find(value, r->file, r->arena);
    if (path && sf_json_int(sf_json_get(value, "bytes"), &out->bytes) &&
        sf_json_string(sf_json_get(value, "digest"), &digest)) {
        out->path = path;
        out->digest = strtoull(digest.at, NULL, 16);
    }
}

static sf_status read_hash(reader *r, const sf_json *object, uint64_t *out)
{
    if (!sf_json_hex(sf_json_get(object, "cluster_hash"), out))
        return SF_JSON_FAIL(r, object, "\"cluster_hash\" is not 16 hex digits");
    return SF_OK;
}

static sf_status read_alternative(reader *r, const sf_json *row, sf_alternative *out)
{
    sf_str name, mesh;
    if (sf_json_kind_of(row) != SF_JSON_ARRAY || sf_json_count(row) != 6 ||
        !sf_json_string(sf_json_item(row, 0), &name) ||
        !sf_json_string(sf_json_item(row, 1), &mesh) ||
        !sf_json_number(sf_json_item(row, 2), &out->seconds) ||
        !sf_json_int(sf_json_item(row, 3), &out->memory) ||
        !sf_json_bool(sf_json_item(row, 4), &out->fits) ||
        !sf_json_bool(sf_json_item(row, 5), &out->lowered) || out->seconds < 0 || out->memory < 0)
        return SF_JSON_FAIL(r, row, "expected [NAME, MESH, SECONDS, BYTES, FITS, LOWERED]");
    out->name = sf_arena_string(r->arena, name.at, name.length);
    out->mesh = sf_arena_string(r->arena, mesh.at, mesh.length);
    return SF_OK;
}

static sf_status read_alternatives(reader *r, const sf_json *object, sf_prediction *out)
{
    const sf_json *list = sf_json_get(object, "alternatives");
    if (sf_json_kind_of(list) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(r, object, "\"predicted\" has no list \"alternatives\"");
    out->nalternatives = (int)sf_json_count(list);
    out->alternatives = SF_ARRAY(r->arena, out->nalternatives, sf_alternative);
    for (int i = 0; i < out->nalternatives; i++)
        SF_TRY(read_alternative(r, sf_json_item(list, (size_t)i), &out->alternatives[i]));
    return SF_OK;
}

/* Neither need be there: then ranks are on all nodes. */
static sf_status read_nodes(reader *r, const sf_json *object, sf_prediction *out)
{
    const sf_json *nodes = sf_json_get(object, "nodes"),
                  *list = sf_json_get(object, "unused_devices");
    sf_str text;
    out->nodes = "";
    if (nodes && !sf_json_string(nodes, &text))
        return SF_JSON_FAIL(r, nodes, "\"nodes\" of \"predicted\" is no string");
    if (nodes)
        out->nodes = sf_arena_string(r->arena, text.at, text.length);
    if (!list)
        return SF_OK;
    if (sf_json_kind_of(list) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(r, list, "\"unused_devices\" of \"predicted\" is no list");
    out->unused = SF_ARRAY(r->arena, sf_json_count(list), sf_unused_devices);
    for (size_t i = 0; i < sf_json_count(list); i++) {
        const sf_json *row = sf_json_item(list, i);
        sf_str words[3];
        bool is_right = sf_json_kind_of(row) == SF_JSON_ARRAY && sf_json_count(row) == 3;
        for (size_t w = 0; w < 3 && is_right; w++)
            is_right = sf_json_string(sf_json_item(row, w), &words[w]);
        if (!is_right)
            return SF_JSON_FAIL(r, row, "expected [NODES, DEVICES, WHY]");
        out->unused[out->nunused++] =
            (sf_unused_devices){sf_arena_string(r->arena, words[0].at, words[0].length),
                                sf_arena_string(r->arena, words[1].at, words[1].length),
                                sf_arena_string(r->arena, words[2].at, words[2].length)};
    }
    return SF_OK;
}

sf_status sf_prediction_get(const sf_json *value, sf_str text, const char *file, sf_arena *arena,
                            sf_diag *diag, sf_prediction **out)
{
    reader r = {text, file, arena, diag};
    sf_prediction *predicted = SF_NEW(arena, sf_prediction);
    predicted->step = "";
    if (sf_json_get(value, "step"))
        SF_TRY(read_string(&r, value, "step", &predicted->step));
    SF_TRY(read_string(&r, value, "cluster", &predicted->cluster));
    read_cluster_file(&r, sf_json_get(value, "cluster_file"), &predicted->cluster_file);
    SF_TRY(read_hash(&r, value, &predicted->cluster_hash));
    SF_TRY(read_nodes(&r, value, predicted));
    for (int i = 0; i < NUMBERS; i++)
        if (!sf_json_number(sf_json_get(value, numbers[i].key), number_at_key(predicted, i)) ||
            *number_at_key(predicted, i) < 0)
            return SF_JSON_FAIL(&r, value, "\"predicted\" has no number \"%s\" that is 0 or more",
                                numbers[i].key);
    if (!sf_json_int(sf_json_get(value, "memory"), &predicted->memory) ||
        !sf_json_int(sf_json_get(value, "limit"), &predicted->limit) || predicted->memory < 0 ||
        predicted->limit < 0)
        return SF_JSON_FAIL(
            &r, value, "\"predicted\" has no integers \"memory\" and \"limit\" that are 0 or more");
    SF_TRY(read_alternatives(&r, value, predicted));
    *out = predicted;
    return SF_OK;
}

bool sf_plan_is_for(const sf_plan *plan, const sf_cluster *cluster)
{
    return plan->predicted && plan->predicted->cluster_hash ==
                                  sf_cluster_hash(cluster->whole ? cluster->whole : cluster);
}

sf_status sf_plan_cluster(const sf_plan *plan, const sf_cluster *cluster, sf_arena *arena,
                          sf_diag *diag, const sf_cluster **out)
{
    *out = cluster;
    if (sf_plan_is_for(plan, cluster) && *plan->predicted->nodes) {
        sf_cluster *part;
        SF_TRY(sf_cluster_part_of(cluster, sf_str_of(plan->predicted->nodes), arena, diag, &part));
        *out = part;
    }
    if (sf_mesh_size(&plan->mesh) != (*out)->ndevices)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the plan is for %d ranks, the cluster has %d",
                       sf_mesh_size(&plan->mesh), (*out)->ndevices);
    return SF_OK;
}

/* The contest's JSON: arrays beside arrays, one item a node or an edge.
 *
 *   {"problem": {"nodes": {"intervals": [[begin, end], ...], "costs": [[...], ...],
 *                          "usages": [[...], ...]},
 *                "edges": {"nodes": [[a, b], ...], "costs": [[...], ...]},
 *                "usage_limit": N}}
 *
 * The object that holds "nodes" may also be the whole file. Without a limit, or with null for one,
 * intervals and usages may be left out. Other keys are skipped. */
#include <inttypes.h>

#include "base/file.h"
#include "base/json.h"
#include "solve/problem/problem.h"

typedef struct reader {
    sf_str text;
    const char *file;
    sf_arena *scratch;
    sf_problem_builder builder;
    int64_t *numbers; /* of the row that was read last */
    size_t capacity;
    sf_diag *diag;
} reader;

/* The array under a key; with `count` items unless that is SIZE_MAX. */
static sf_status get_array(reader *in, const sf_json *object, const char *key, size_t count,
                           const sf_json **out)
{
    const sf_json *array = sf_json_get(object, key);
    if (!array)
        return SF_JSON_FAIL(in, object, "there is no \"%s\" here", key);
    if (sf_json_kind_of(array) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(in, array, "\"%s\" must be an array, not %s", key,
                            sf_json_kind_name(sf_json_kind_of(array)));
    if (count != SIZE_MAX && sf_json_count(array) != count)
        return SF_JSON_FAIL(in, array, "\"%s\" has %zu items where %zu are needed", key,
                            sf_json_count(array), count);
    *out = array;
    return SF_OK;
}

/* A number of any size: one out of range is forbidden, or as bad. */
static bool get_cost(const sf_json *value, int64_t *out)
{
    double number;
    if (sf_json_int(value, out))
        return true;
    if (!sf_json_number(value, &number) || number < (double)SF_FORBIDDEN)
        return false;
    *out = SF_FORBIDDEN;
    return true;
}

/* A row of integers into in->numbers: `count` of them unless that is SIZE_MAX. */
static sf_status get_row(reader *in, const sf_json *row, const char *what, size_t id, size_t count)
{
    size_t have = sf_json_count(row);
    if (sf_json_kind_of(row) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(in, row, "%s %zu must be an array", what, id);
    if (count != SIZE_MAX && have != count)
        return SF_JSON_FAIL(in, row, "%s %zu: %zu numbers where %zu are needed", what, id, have,
                            count);
    if (have > in->capacity) {
        in->capacity = 2 * have;
        in->numbers = SF_ARRAY(in->scratch, in->capacity, int64_t);
    }
    for (size_t i = 0; i < have; i++)
        if (!get_cost(sf_json_item(row, i), &in->numbers[i]))
            return SF_JSON_FAIL(in, sf_json_item(row, i), "%s %zu: not an integer of 64 bits", what,
                                id);
    return SF_OK;
}

/* The builder has the error, the reader its place: its message with a place. */
static sf_status place_failure(reader *in, const sf_json *value, sf_diag *found, sf_status status)
{
    if (status != SF_OK)
        SF_JSON_FAIL(in, value, "%s",
                     found->messages[0].text ? found->messages[0].text : "no memory");
    sf_diag_clear(found);
    return status;
}

static sf_status read_uses(reader *in, const sf_json *nodes)
{
    const sf_json *intervals, *usages;
    size_t count = in->builder.nnodes;
    SF_TRY(get_array(in, nodes, "intervals", count, &intervals));
    SF_TRY(get_array(in, nodes, "usages", count, &usages));
    for (size_t v = 0; v < count; v++) {
        const sf_json *interval = sf_json_item(intervals, v), *row = sf_json_item(usages, v);
        SF_TRY(get_row(in, interval, "the interval of node", v, 2));
        int64_t begin = in->numbers[0], end = in->numbers[1];
        SF_TRY(
            get_row(in, row, "the usages of node", v, sf_problem_builder_count(&in->builder, v)));
        sf_diag found = {0};
        sf_status status =
            sf_problem_add_use(&in->builder, (uint32_t)v, begin, end, in->numbers, &found);
        SF_TRY(place_failure(in, begin > end ? interval : row, &found, status));
    }
    return SF_OK;
}

static sf_status read_nodes(reader *in, const sf_json *nodes, bool limited)
{
    const sf_json *costs;
    SF_TRY(get_array(in, nodes, "costs", SIZE_MAX, &costs));
    for (size_t v = 0; v < sf_json_count(costs); v++) {
        const sf_json *row = sf_json_item(costs, v);
        SF_TRY(get_row(in, row, "the costs of node", v, SIZE_MAX));
        sf_diag found = {0};
        sf_status status =
            sf_problem_add_node(&in->builder, (uint32_t)sf_json_count(row), in->numbers, &found);
        SF_TRY(place_failure(in, row, &found, status));
    }
    return limited ? read_uses(in, nodes) : SF_OK;
}

static sf_status read_edges(reader *in, const sf_json *edges)
{
    const sf_json *ends, *costs;
    size_t nnodes = in->builder.nnodes;
    SF_TRY(get_array(in, edges, "nodes", SIZE_MAX, &ends));
    SF_TRY(get_array(in, edges, "costs", sf_json_count(ends), &costs));
    for (size_t e = 0; e < sf_json_count(ends); e++) {
        const sf_json *pair = sf_json_item(ends, e), *row = sf_json_item(costs, e);
        SF_TRY(get_row(in, pair, "the nodes of edge", e, 2));
        uint64_t a = (uint64_t)in->numbers[0], b = (uint64_t)in->numbers[1];
        if (a >= nnodes || b >= nnodes)
            return SF_JSON_FAIL(in, pair,
                                "edge %zu goes to node %" PRId64 ", and there are %zu nodes", e,
                                (int64_t)(a >= nnodes ? a : b), nnodes);
        size_t cells = (size_t)sf_problem_builder_count(&in->builder, a) *
                       sf_problem_builder_count(&in->builder, b);
        SF_TRY(get_row(in, row, "the costs of edge", e, cells));
        sf_diag found = {0};
        sf_status status =
            sf_problem_add_edge(&in->builder, (uint32_t)a, (uint32_t)b, in->numbers, &found);
        SF_TRY(place_failure(in, row, &found, status));
    }
    return SF_OK;
}

static sf_status read_problem(reader *in, const sf_json *problem)
{
    const sf_json *nodes = sf_json_get(problem, "nodes"), *edges = sf_json_get(problem, "edges");
    const sf_json *limit = sf_json_get(problem, "usage_limit");
    bool limited = sf_json_kind_of(limit) != SF_JSON_NULL;
    if (sf_json_kind_of(nodes) != SF_JSON_OBJECT)
        return SF_JSON_FAIL(in, nodes ? nodes : problem, "a problem needs an object \"nodes\"");
    if (limited) {
        int64_t value;
        if (!sf_json_int(limit, &value) || value < 0)
            return SF_JSON_FAIL(in, limit, "\"usage_limit\" must be an integer from 0 to 2^63 - 1");
        sf_problem_set_limit(&in->builder, value);
    }
    SF_TRY(read_nodes(in, nodes, limited));
    if (!edges)
        return SF_OK;
    if (sf_json_kind_of(edges) != SF_JSON_OBJECT)
        return SF_JSON_FAIL(in, edges, "\"edges\" must be an object");
    return read_edges(in, edges);
}

static sf_status parse_problem(sf_str text, const char *file, sf_arena *scratch, sf_arena *arena,
                               sf_problem *out, sf_diag *diag)
{
    const sf_json *root;
    SF_TRY(sf_json_parse(text, file, scratch, &root, diag));
    reader in = {.text = text, .file = file, .scratch = scratch, .diag = diag};
    in.builder.arena = arena;
    const sf_json *problem = sf_json_get(root, "problem");
    SF_TRY(read_problem(&in, problem ? problem : root));
    return sf_problem_finish(&in.builder, out, diag);
}

sf_status sf_problem_parse(sf_str text, const char *file, sf_arena *arena, sf_problem *out,
                           sf_diag *diag)
{
    sf_arena scratch = {0};
    sf_status status = parse_problem(text, file, &scratch, arena, out, diag);
    sf_arena_free(&scratch);
    return status;
}

sf_status sf_problem_read(const char *path, sf_arena *arena, sf_problem *out, sf_diag *diag)
{
    sf_arena scratch = {0};
    sf_str text;
    sf_status status = sf_file_read(path, &scratch, 0, &text, diag);
    if (status == SF_OK)
        status = sf_problem_parse(text, path, arena, out, diag);
    sf_arena_free(&scratch);
    return status;
}

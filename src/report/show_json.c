/* The summary for machines. The keys are documented in docs/reference/cli.md; they are added to, not changed. */
#include "base/json.h"
#include "ir/opdef.h"
#include "report/report_show.h"

/* An index, or null for none. */
static void put_index_of(sf_json_writer *w, const char *key, uint32_t index)
{
    sf_json_key(w, key);
    if (index == SF_NONE)
        sf_json_put_null(w);
    else
        sf_json_put_int(w, index);
}

/* Costs are counts; as long as a double holds them exactly they are written as integers. */
static void put_json_number(sf_json_writer *w, const char *key, double value)
{
    sf_json_key(w, key);
    if (value >= 0 && value < 9007199254740992.0 && value == (double)(int64_t)value)
        sf_json_put_int(w, (int64_t)value);
    else
        sf_json_put_double(w, value);
}

static void put_costs(sf_json_writer *w, const sf_cost *cost)
{
    sf_json_add_int(w, "nodes", cost->nodes);
    put_json_number(w, "flops", cost->flops);
    put_json_number(w, "bytes", cost->bytes);
    sf_json_add_bool(w, "unknown_trip_count", cost->unknown_trips);
}

static void put_cost(sf_json_writer *w, const char *key, const sf_cost *cost)
{
    sf_json_key(w, key);
    sf_json_begin_object(w);
    put_costs(w, cost);
    sf_json_end_object(w);
}

static void put_recomputed(sf_json_writer *w, const sf_summary *summary)
{
    sf_json_key(w, "recomputed");
    sf_json_begin_object(w);
    put_costs(w, &summary->recomputed);
    sf_json_key(w, "scopes");
    sf_json_begin_row(w);
    for (uint32_t i = 0; i < summary->nrecomputed_in; i++)
        sf_json_put_string(w, summary->recomputed_in[i]->path);
    sf_json_end_array(w);
    sf_json_end_object(w);
}

static void put_sources(sf_json_writer *w, sf_finding finding, const char *key,
                        const int64_t from[SF_SOURCE_COUNT])
{
    sf_json_key(w, key);
    sf_json_begin_object(w);
    for (int i = 0; i < SF_SOURCE_COUNT; i++)
        if (from[i])
            sf_json_add_int(w, sf_finding_source(finding, (sf_source)i), from[i]);
    sf_json_end_object(w);
}

static void put_findings(sf_json_writer *w, const sf_summary *summary)
{
    sf_json_key(w, "findings");
    sf_json_begin_object(w);
    for (int f = 0; f < SF_FINDING_COUNT; f++) {
        sf_json_key(w, sf_finding_name((sf_finding)f));
        sf_json_begin_object(w);
        for (int known = 1; known >= 0; known--) {
            int64_t from[SF_SOURCE_COUNT] = {0};
            for (int i = SF_FROM_NOTHING + 1; i < SF_SOURCE_COUNT; i++)
                if (sf_source_is_known((sf_source)i) == known)
                    from[i] = summary->found[f][i];
            put_sources(w, (sf_finding)f, known ? "known" : "guessed", from);
        }
        sf_json_end_object(w);
    }
    sf_json_end_object(w);
}

static void put_type(sf_json_writer *w, const sf_type *type)
{
    sf_json_add_string(w, "dtype", sf_dtype_get(type->dtype)->name);
    sf_json_key(w, "shape");
    sf_json_begin_row(w);
    for (int i = 0; i < type->rank; i++)
        sf_json_put_int(w, type->dims[i]);
    sf_json_end_array(w);
    sf_json_add_int(w, "bytes", sf_type_bytes(type));
}

static void put_roles(sf_json_writer *w, const sf_summary *summary)
{
    sf_json_key(w, "roles");
    sf_json_begin_object(w);
    for (int i = 0; i < SF_ROLE_COUNT; i++) {
        const sf_role_total *total = &summary->roles[i];
        sf_json_key(w, sf_role_name((sf_role)i));
        sf_json_begin_object(w);
        sf_json_add_int(w, "count", total->count);
        sf_json_add_int(w, "elements", total->elements);
        sf_json_add_int(w, "bytes", total->bytes);
        put_sources(w, SF_FOUND_ROLES, "from", total->from);
        sf_json_end_object(w);
    }
    sf_json_end_object(w);
}

static void put_argument_list(sf_json_writer *w, const sf_graph *graph)
{
    sf_json_key(w, "arguments");
    sf_json_begin_array(w);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        sf_json_begin_object(w);
        sf_json_add_string(w, "name", argument->name);
        put_type(w, sf_argument_type(graph, i));
        sf_json_add_string(w, "role", sf_role_name(argument->role));
        sf_json_add_string(w, "role_from", sf_source_name(argument->role_from));
        put_index_of(w, "next", argument->next);
        sf_json_add_string(w, "next_from",
                           argument->next == SF_NONE ? NULL : sf_source_name(argument->next_from));
        sf_json_add_string(w, "sharding", argument->sharding);
        sf_json_end_object(w);
    }
    sf_json_end_array(w);
}

static void put_results(sf_json_writer *w, const sf_summary *summary)
{
    const sf_graph *graph = summary->graph;
    sf_json_key(w, "results");
    sf_json_begin_array(w);
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        sf_json_begin_object(w);
        sf_json_add_string(w, "name", graph->results[i].name);
        put_type(w, sf_result_type(graph, i));
        put_index_of(w, "becomes", summary->becomes[i]);
        sf_json_add_string(w, "sharding", graph->results[i].sharding);
        sf_json_end_object(w);
    }
    sf_json_end_array(w);
}

static void put_ops(sf_json_writer *w, const sf_summary *summary)
{
    sf_json_key(w, "ops");
    sf_json_begin_array(w);
    for (uint32_t i = 0; i < summary->nops; i++) {
        sf_json_begin_object(w);
        sf_json_add_string(w, "name", summary->ops[i].def->name);
        sf_json_add_string(w, "dialect", summary->ops[i].def->dialect);
        put_costs(w, &summary->ops[i].cost);
        sf_json_end_object(w);
    }
    sf_json_end_array(w);
}

static void put_scopes(sf_json_writer *w, const sf_summary *summary)
{
    sf_json_key(w, "scopes");
    sf_json_begin_array(w);
    for (uint32_t i = 0; i < summary->nscopes; i++) {
        const sf_scope_cost *scope = &summary->scopes[i];
        sf_json_begin_object(w);
        sf_json_add_string(w, "path", scope->scope->path);
        sf_json_add_int(w, "depth", scope->scope->depth);
        put_index_of(w, "parent", i == 0 ? SF_NONE : scope->parent);
        put_costs(w, &scope->all);
        sf_json_add_int(w, "parameters", scope->parameters);
        sf_json_key(w, "flops_by_phase");
        sf_json_begin_object(w);
        for (int p = 0; p < SF_PHASE_COUNT; p++)
            put_json_number(w, sf_phase_name((sf_phase)p), scope->phases[p]);
        sf_json_end_object(w);
        put_cost(w, "own", &scope->own);
        sf_json_end_object(w);
    }
    sf_json_end_array(w);
}

void sf_summary_json(const sf_summary *summary, sf_buf *out)
{
    sf_json_writer writer = {.buf = out, .indent = true}, *w = &writer;
    sf_json_begin_object(w);
    sf_json_add_string(w, "step", summary->graph->name);
    sf_json_add_string(w, "file", summary->file);
    sf_json_add_hex(w, "hash", summary->hash);
    sf_json_add_int(w, "parameters", summary->roles[SF_ROLE_PARAM].elements);
    put_cost(w, "total", &summary->total);
    put_recomputed(w, summary);
    sf_json_add_int(w, "loops", summary->loops);
    sf_json_add_int(w, "branches", summary->branches);
    put_roles(w, summary);
    sf_json_key(w, "state");
    sf_json_begin_object(w);
    sf_json_add_int(w, "links", summary->links);
    put_sources(w, SF_FOUND_STATE, "from", summary->found[SF_FOUND_STATE]);
    sf_json_end_object(w);
    put_index_of(w, "loss", summary->loss);
    put_findings(w, summary);
    sf_json_add_string(w, "phases_from", "flow");
    sf_json_key(w, "phases");
    sf_json_begin_object(w);
    for (int i = 0; i < SF_PHASE_COUNT; i++)
        put_cost(w, sf_phase_name((sf_phase)i), &summary->phases[i]);
    sf_json_end_object(w);
    put_ops(w, summary);
    put_scopes(w, summary);
    put_argument_list(w, summary->graph);
    put_results(w, summary);
    sf_json_end_object(w);
    sf_buf_putc(out, '\n');
}

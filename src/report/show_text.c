/* The summary for people.
 *
 *     step NAME, then its file; arguments by role and the largest of them; results and state;
 *     costs by op, by phase, by scope. Inferred facts have their source beside them. */
#include <inttypes.h>

#include "ir/opdef.h"
#include "report/report_show.h"

enum { LARGEST_SHOWN = 5, OPS_SHOWN = 10, DEPTH_SHOWN = 3, SCOPES_SHOWN = 3 };

struct page {
    const sf_summary *summary;
    bool all;
    int depth;
    sf_style style;
    sf_buf *out;
    sf_arena arena;
};

/* "sidecar", or "alias 12, name 3" when there are several; "-" for none. */
static const char *sources_text(struct page *page, sf_finding finding,
                                const int64_t from[SF_SOURCE_COUNT])
{
    int kinds = 0;
    for (int i = 0; i < SF_SOURCE_COUNT; i++)
        kinds += from[i] > 0;
    sf_buf buf = {0};
    for (int i = 0; i < SF_SOURCE_COUNT; i++) {
        if (from[i] == 0)
            continue;
        sf_buf_puts(&buf, buf.length ? ", " : "");
        sf_buf_puts(&buf, sf_finding_source(finding, (sf_source)i));
        if (kinds > 1)
            sf_buf_printf(&buf, " %" PRId64, from[i]);
    }
    if (kinds == 0)
        sf_buf_puts(&buf, "-");
    const char *text = sf_arena_string(&page->arena, buf.text, buf.length);
    sf_buf_free(&buf);
    return text;
}

static void print_table(struct page *page, const sf_table *table)
{
    sf_table_print(table, page->style, page->out);
}

/* By finding: its known sources, and the sources of guesses. */
static void show_findings(struct page *page)
{
    static const sf_column columns[] = {{"finding", false, SF_STAYS},
                                        {"known from", false, SF_STAYS},
                                        {"guessed from", false, SF_STAYS}};
    sf_table table = sf_table_new(&page->arena, 3, columns);
    for (int f = 0; f < SF_FINDING_COUNT; f++) {
        int64_t parts[2][SF_SOURCE_COUNT] = {0}; /* guessed, known */
        for (int i = SF_FROM_NOTHING + 1; i < SF_SOURCE_COUNT; i++)
            parts[sf_source_is_known((sf_source)i)][i] = page->summary->found[f][i];
        sf_table_add(&table, "%s", sf_finding_name((sf_finding)f));
        sf_table_add(&table, "%s", sources_text(page, (sf_finding)f, parts[1]));
        sf_table_add(&table, "%s", sources_text(page, (sf_finding)f, parts[0]));
    }
    sf_heading(page->out, page->style, "known and guessed");
    print_table(page, &table);
}

/* Nodes that the text recomputes, and their scopes: "... 213 ops ..., in layer_0, layer_1: 23.1% of
 * the flops". */
static const char *recomputed_text(struct page *page)
{
    const sf_summary *summary = page->summary;
    uint32_t count = summary->nrecomputed_in;
    sf_buf buf = {0};
    sf_buf_printf(&buf, "the text recomputes %s ops of the forward pass",
                  sf_text_count(summary->recomputed.nodes).at);
    for (uint32_t i = 0; i < count && count <= SCOPES_SHOWN; i++)
        sf_buf_printf(&buf, "%s%s", i ? ", " : ", in ", summary->recomputed_in[i]->name);
    if (count > SCOPES_SHOWN)
        sf_buf_printf(&buf, ", in %s .. %s (%" PRIu32 " scopes)", summary->recomputed_in[0]->name,
                      summary->recomputed_in[count - 1]->name, count);
    sf_buf_printf(&buf, ": %s of the flops",
                  sf_text_share(summary->recomputed.flops, summary->total.flops).at);
    const char *text = sf_arena_string(&page->arena, buf.text, buf.length);
    sf_buf_free(&buf);
    return text;
}

static void show_head(struct page *page)
{
    static const sf_column columns[] = {{"", false, SF_STAYS}, {"", false, SF_STAYS}};
    const sf_summary *summary = page->summary;
    sf_table table = sf_table_new(&page->arena, 2, columns);
    sf_heading(page->out, page->style, "step %s", summary->graph->name);
    if (summary->file) {
        sf_table_add(&table, "file");
        sf_table_add(&table, "%s", summary->file);
    }
    sf_table_add(&table, "hash");
    sf_table_add(&table, "%016" PRIx64, summary->hash);
    sf_table_add(&table, "parameters");
    sf_table_add(&table, "%s", sf_text_count(summary->roles[SF_ROLE_PARAM].elements).at);
    sf_table_add(&table, "nodes");
    sf_table_add(&table, "%s", sf_text_count(summary->total.nodes).at);
    sf_table_add(&table, "cost");
    sf_table_add(&table, "%s flops, %s read and written, unfused",
                 sf_text_flops(summary->total.flops).at, sf_text_bytes(summary->total.bytes).at);
    if (summary->recomputed.nodes) {
        sf_table_add(&table, "again");
        sf_table_add(&table, "%s", recomputed_text(page));
    }
    print_table(page, &table);
}

static void add_total(sf_table *table, const char *name, const sf_role_total *total,
                      const char *found)
{
    sf_table_add(table, "%s", name);
    sf_table_add(table, "%s", sf_text_count(total->count).at);
    sf_table_add(table, "%s", sf_text_count(total->elements).at);
    sf_table_add(table, "%s", sf_text_bytes((double)total->bytes).at);
    sf_table_add(table, "%s", found);
}

static void show_arguments(struct page *page)
{
    static const sf_column columns[] = {{"role", false, SF_STAYS},
                                        {"count", true, SF_STAYS},
                                        {"elements", true, SF_STAYS},
                                        {"bytes", true, SF_STAYS},
                                        {"role from", false, SF_STAYS}};
    const sf_summary *summary = page->summary;
    sf_table table = sf_table_new(&page->arena, 5, columns);
    for (int i = 0; i < SF_ROLE_COUNT; i++)
        if (summary->roles[i].count)
            add_total(&table, sf_role_name((sf_role)i), &summary->roles[i],
                      sources_text(page, SF_FOUND_ROLES, summary->roles[i].from));
    add_total(&table, "all", &summary->arguments, "");
    sf_heading(page->out, page->style, "arguments");
    print_table(page, &table);
}

static void show_largest(struct page *page)
{
    static const sf_column columns[] = {
        {"argument", true, SF_STAYS},      {"role", false, SF_GOES_THIRD},
        {"type", false, SF_STAYS},         {"bytes", true, SF_GOES_FIRST},
        {"becomes", true, SF_GOES_SECOND}, {"name", false, SF_SHRINKS}};
    const sf_graph *graph = page->summary->graph;
    uint32_t count = graph->top->narguments, shown = count;
    if (!page->all && shown > LARGEST_SHOWN)
        shown = LARGEST_SHOWN;
    if (count == 0)
        return;
    sf_table table = sf_table_new(&page->arena, 6, columns);
    for (uint32_t i = 0; i < shown; i++) {
        char text[SF_TYPE_TEXT];
        uint32_t index = page->all ? i : page->summary->largest[i];
        const sf_argument *argument = &graph->arguments[index];
        const sf_type *type = sf_argument_type(graph, index);
        sf_table_add(&table, "%" PRIu32, index);
        sf_table_add(&table, "%s", sf_role_name(argument->role));
        sf_table_add(&table, "%s", sf_type_text(type, text));
        sf_table_add(&table, "%s", sf_text_bytes((double)sf_type_bytes(type)).at);
        if (argument->next == SF_NONE)
            sf_table_add(&table, "-");
        else
            sf_table_add(&table, "%" PRIu32, argument->next);
        sf_table_add(&table, "%s", argument->name);
    }
    sf_heading(page->out, page->style, "%s arguments", shown < count ? "largest" : "all");
    print_table(page, &table);
}

static void show_results(struct page *page)
{
    static const sf_column columns[] = {{"", false, SF_STAYS}, {"", false, SF_STAYS}};
    const sf_summary *summary = page->summary;
    const sf_graph *graph = summary->graph;
    sf_table table = sf_table_new(&page->arena, 2, columns);
    sf_table_add(&table, "results");
    sf_table_add(&table, "%s, %s elements, %s", sf_text_count(summary->results.count).at,
                 sf_text_count(summary->results.elements).at,
                 sf_text_bytes((double)summary->results.bytes).at);
    sf_table_add(&table, "state");
    if (summary->links)
        sf_table_add(&table, "%s of them become arguments of the next step; from %s",
                     sf_text_count(summary->links).at,
                     sources_text(page, SF_FOUND_STATE, summary->found[SF_FOUND_STATE]));
    else
        sf_table_add(&table, "none was found");
    sf_table_add(&table, "loss");
    if (summary->loss == SF_NONE) {
        sf_table_add(&table, "none was found");
    } else {
        char text[SF_TYPE_TEXT];
        const char *name = graph->results[summary->loss].name;
        const sf_type *type = sf_result_type(graph, summary->loss);
        sf_table_add(&table, "result %" PRIu32 "%s%s, %s", summary->loss, *name ? ", " : "", name,
                     sf_type_text(type, text));
    }
    sf_heading(page->out, page->style, "results");
    print_table(page, &table);
}

static void show_links(struct page *page)
{
    static const sf_column columns[] = {{"result", true, SF_STAYS},
                                        {"becomes argument", true, SF_STAYS},
                                        {"from", false, SF_STAYS},
                                        {"name", false, SF_SHRINKS}};
    const sf_summary *summary = page->summary;
    const sf_graph *graph = summary->graph;
    sf_table table = sf_table_new(&page->arena, 4, columns);
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        uint32_t argument = summary->becomes[i];
        if (argument == SF_NONE)
            continue;
        sf_table_add(&table, "%" PRIu32, i);
        sf_table_add(&table, "%" PRIu32, argument);
        sf_table_add(&table, "%s", sf_source_name(graph->arguments[argument].next_from));
        sf_table_add(&table, "%s", graph->arguments[argument].name);
    }
    if (!page->all || table.ncells == 0)
        return;
    sf_heading(page->out, page->style, "state");
    print_table(page, &table);
}

static void add_cost(struct page *page, sf_table *table, const char *name, const sf_cost *cost)
{
    const sf_cost *total = &page->summary->total;
    sf_table_add(table, "%s%s", name, cost->unknown_trips ? " x ?" : "");
    sf_table_add(table, "%s", sf_text_count(cost->nodes).at);
    sf_table_add(table, "%s", sf_text_flops(cost->flops).at);
    sf_table_add(table, "%s", sf_text_share(cost->flops, total->flops).at);
    sf_table_add(table, "%s", sf_text_bytes(cost->bytes).at);
    sf_table_add(table, "%s", sf_text_share(cost->bytes, total->bytes).at);
}

static void show_ops(struct page *page)
{
    static const sf_column columns[] = {
        {"op", false, SF_STAYS},   {"count", true, SF_STAYS},       {"flops", true, SF_STAYS},
        {"share", true, SF_STAYS}, {"bytes", true, SF_GOES_SECOND}, {"share", true, SF_GOES_FIRST}};
    const sf_summary *summary = page->summary;
    uint32_t shown = summary->nops;
    if (!page->all && shown > OPS_SHOWN + 1)
        shown = OPS_SHOWN;
    sf_table table = sf_table_new(&page->arena, 6, columns);
    for (uint32_t i = 0; i < shown; i++)
        add_cost(page, &table, summary->ops[i].def->name, &summary->ops[i].cost);
    if (shown < summary->nops) {
        sf_cost rest = {0};
        for (uint32_t i = shown; i < summary->nops; i++)
            sf_cost_add(&rest, &summary->ops[i].cost);
        sf_buf name = {0};
        sf_buf_printf(&name, "%" PRIu32 " others", summary->nops - shown);
        add_cost(page, &table, name.text, &rest);
        sf_buf_free(&name);
    }
    sf_heading(page->out, page->style, "ops");
    print_table(page, &table);
}

static void show_phases(struct page *page)
{
    static const sf_column columns[] = {
        {"phase", false, SF_STAYS},      {"nodes", true, SF_STAYS},
        {"flops", true, SF_STAYS},       {"share", true, SF_STAYS},
        {"bytes", true, SF_GOES_SECOND}, {"share", true, SF_GOES_FIRST}};
    const sf_summary *summary = page->summary;
    sf_table table = sf_table_new(&page->arena, 6, columns);
    for (int i = 0; i < SF_PHASE_COUNT; i++)
        add_cost(page, &table, sf_phase_name((sf_phase)i), &summary->phases[i]);
    sf_heading(page->out, page->style, "phases");
    print_table(page, &table);
}

static void show_scopes(struct page *page)
{
    static const sf_column columns[] = {
        {"scope", false, SF_SHRINKS},    {"nodes", true, SF_GOES_THIRD},
        {"flops", true, SF_STAYS},       {"share", true, SF_STAYS},
        {"bytes", true, SF_GOES_SECOND}, {"share", true, SF_GOES_FIRST},
        {"parameters", true, SF_STAYS}};
    sf_table table = sf_table_new(&page->arena, 7, columns);
    sf_scope_rows(page->summary, page->all, page->depth, &table);
    sf_heading(page->out, page->style, "scopes");
    print_table(page, &table);
    if (page->summary->nscopes == 1)
        sf_remark(page->out, page->style,
                  "the text has no scopes, and paths of parameters name no modules");
}

static void show_remarks(struct page *page)
{
    const sf_summary *summary = page->summary;
    if (!summary->loops && !summary->branches)
        return;
    sf_buf_putc(page->out, '\n');
    if (summary->total.unknown_trips)
        sf_remark(page->out, page->style,
                  "x ?: holds a loop whose trip count is not known; its body is counted once "
                  "(%" PRId64 " in all)",
                  summary->loops);
    else if (summary->loops)
        sf_remark(page->out, page->style, "%" PRId64 " loop%s counted once per iteration",
                  summary->loops, summary->loops == 1 ? " is" : "s are");
    if (summary->branches)
        sf_remark(page->out, page->style,
                  "%" PRId64 " choice%s between branches: every branch is counted",
                  summary->branches, summary->branches == 1 ? "" : "s");
}

void sf_summary_text(const sf_summary *summary, const sf_show_options *options, sf_buf *out)
{
    struct page page = {
        .summary = summary,
        .all = options->all,
        .depth = options->depth > 0 ? options->depth : DEPTH_SHOWN,
        .style = {options->width, options->colour},
        .out = out,
    };
    show_head(&page);
    show_arguments(&page);
    show_largest(&page);
    show_results(&page);
    show_links(&page);
    show_findings(&page);
    show_ops(&page);
    show_phases(&page);
    show_scopes(&page);
    show_remarks(&page);
    sf_arena_free(&page.arena);
}

/* A simulation beside a run that was timed: train --profile writes its trace. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "report/report_sim.h"

enum { LARGEST = 10 };

typedef struct reader {
    sf_str text;
    const char *file;
    sf_diag *diag;
} reader;

static bool is_word(const sf_json *event, const char *key, const char *word)
{
    sf_str text;
    return sf_json_string(sf_json_get(event, key), &text) && sf_str_is(text, word);
}

/* Whose program it is: the first rank of the group that is shown. */
static int shown_rank(const sf_sim_report *r)
{
    return r->runs.at[r->runs.busiest].rank;
}

/* The time of an instruction of that rank; other events say nothing. */
static sf_status read_event(reader *in, sf_sim_report *r, const sf_json *event, uint32_t *found)
{
    const sf_json *args = sf_json_get(event, "args");
    int64_t rank = -1, index = -1;
    double start, length, exposed = 0;
    if (!is_word(event, "ph", "X") || !sf_json_int(sf_json_get(event, "pid"), &rank) ||
        rank != shown_rank(r) || sf_json_get(args, "within"))
        return SF_OK;
    if (!sf_json_int(sf_json_get(args, "instruction"), &index) ||
        !sf_json_number(sf_json_get(event, "ts"), &start) ||
        !sf_json_number(sf_json_get(event, "dur"), &length) || !(start >= 0) || !(length >= 0))
        return SF_JSON_FAIL(in, event, "this event has no instruction time");
    if (index < 0 || (uint64_t)index >= r->program->ninsts ||
        !is_word(event, "cat", sf_inst_kind_name(r->program->insts[index].kind)))
        return SF_JSON_FAIL(in, event, "the trace is of another program than that of this plan");
    sf_json_number(sf_json_get(args, "exposed_us"), &exposed);
    r->timed[index] = (sf_timing){
        .start = 1e-6 * start, .end = 1e-6 * (start + length), .exposed = 1e-6 * exposed};
    r->timed_seconds = fmax(r->timed_seconds, 1e-6 * (start + length));
    ++*found;
    return SF_OK;
}

static sf_status read_events(reader *in, sf_sim_report *r, const sf_json *root)
{
    const sf_json *events = sf_json_get(root, "traceEvents");
    uint32_t found = 0;
    if (sf_json_kind_of(events) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(in, root, "this is no trace: it has no list \"traceEvents\"");
    for (size_t i = 0; i < sf_json_count(events); i++)
        SF_TRY(read_event(in, r, sf_json_item(events, i), &found));
    if (found != r->program->ninsts)
        return SF_JSON_FAIL(in, root, "the trace has %u instructions of rank %d, the program %zu",
                            found, shown_rank(r), r->program->ninsts);
    return SF_OK;
}

static double length_of(const sf_timing *t)
{
    return t->end - t->start;
}

typedef struct difference {
    uint32_t inst;
    double seconds;
} difference;

static int by_difference(const void *a, const void *b)
{
    const difference *x = a, *y = b;
    double left = fabs(x->seconds), right = fabs(y->seconds);
    return (left < right) - (left > right);
}

static void find_differing(sf_sim_report *r)
{
    size_t count = r->program->ninsts;
    difference *list = SF_ARRAY(&r->arena, count, difference);
    for (uint32_t i = 0; i < count; i++)
        list[i] = (difference){i, length_of(&r->timed[i]) - length_of(&r->sim.insts[i])};
    if (count > 0)
        qsort(list, count, sizeof *list, by_difference);
    r->differing = SF_ARRAY(&r->arena, count, uint32_t);
    for (size_t i = 0; i < count; i++)
        r->differing[i] = list[i].inst;
}

static void add_up_timed(sf_sim_report *r)
{
    for (uint32_t i = 0; i < r->program->ninsts; i++) {
        sf_inst_kind kind = r->program->insts[i].kind;
        r->timed_kinds[kind] += length_of(&r->timed[i]);
        r->timed_waits += sf_goes_beside(&r->program->insts[i]) ? r->timed[i].exposed : 0;
    }
}

sf_status sf_sim_read_timed(sf_sim_report *r, const char *path, sf_diag *diag)
{
    reader in = {.file = path, .diag = diag};
    const sf_json *root;
    SF_TRY(sf_file_read(path, &r->arena, 0, &in.text, diag));
    SF_TRY(sf_json_parse(in.text, path, &r->arena, &root, diag));
    r->timed = SF_ARRAY(&r->arena, r->program->ninsts, sf_timing);
    SF_TRY(read_events(&in, r, root));
    add_up_timed(r);
    find_differing(r);
    return SF_OK;
}

static void add_beside(sf_table *table, const char *what, double simulated, double timed)
{
    sf_table_add(table, "%s", what);
    sf_table_add(table, "%s", sf_text_seconds(simulated).at);
    sf_table_add(table, "%s", sf_text_seconds(timed).at);
    sf_table_add(table, "%s", timed > 0 ? sf_text_share(simulated, timed).at : "-");
}

static void put_kinds_beside(sf_sim_report *r, sf_style style, sf_buf *out)
{
    static const sf_column columns[] = {{"what", false, SF_STAYS},
                                        {"simulated", true, SF_STAYS},
                                        {"measured", true, SF_STAYS},
                                        {"of measured", true, SF_STAYS}};
    sf_table table = sf_table_new(&r->arena, 4, columns);
    for (int k = 0; k < SF_INST_KIND_COUNT; k++)
        if (r->kinds[k].count > 0 && k != SF_INST_COMM && k != SF_INST_COPY)
            add_beside(&table, sf_inst_kind_name((sf_inst_kind)k), r->kinds[k].seconds,
                       r->timed_kinds[k]);
    add_beside(&table, "waiting", r->sim.exposed, r->timed_waits);
    add_beside(&table, "step", r->sim.seconds, r->timed_seconds);
    sf_heading(out, style, "simulated beside measured");
    sf_table_print(&table, style, out);
}

void sf_sim_text_beside(sf_sim_report *r, sf_style style, bool all, sf_buf *out)
{
    static const sf_column columns[] = {{"number", true, SF_STAYS},   {"simulated", true, SF_STAYS},
                                        {"measured", true, SF_STAYS}, {"kind", false, SF_STAYS},
                                        {"phase", false, SF_STAYS},   {"op", false, SF_STAYS},
                                        {"scope", false, SF_SHRINKS}};
    put_kinds_beside(r, style, out);
    sf_heading(out, style, "largest differences");
    sf_table table = sf_table_new(&r->arena, 7, columns);
    for (size_t i = 0; i < r->program->ninsts && (all || i < LARGEST); i++) {
        uint32_t at = r->differing[i];
        const sf_inst *inst = &r->program->insts[at];
        sf_table_add(&table, "%u", at);
        sf_table_add(&table, "%s", sf_text_seconds(length_of(&r->sim.insts[at])).at);
        sf_table_add(&table, "%s", sf_text_seconds(length_of(&r->timed[at])).at);
        sf_table_add(&table, "%s", sf_inst_kind_name(inst->kind));
        sf_table_add(&table, "%s", sf_phase_name(inst->origin.phase));
        sf_table_add(&table, "%s", inst->origin.op);
        sf_table_add(&table, "%s", inst->origin.scope);
    }
    sf_table_print(&table, style, out);
}

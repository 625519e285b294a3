#include "report/report_explain.h"

#include <inttypes.h>

const char *sf_explain_made_for(const sf_explanation *e)
{
    const sf_prediction *predicted = e->plan->predicted;
    if (!predicted || sf_plan_is_for(e->plan, e->cluster))
        return NULL;
    return *predicted->cluster ? predicted->cluster : "(unnamed)";
}

const char *sf_explain_layout(sf_explanation *e, sf_value value, const sf_layout *layout)
{
    const sf_type *type = sf_type_of(e->graph, value);
    sf_buf text = {0};
    sf_layout_print(layout, &e->plan->mesh, type->rank, type->dims, &text);
    const char *kept = sf_arena_string(&e->arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

const char *sf_explain_peak(sf_explanation *e)
{
    const sf_origin *peak = &e->simulated->price.peak;
    sf_buf text = {0};
    sf_buf_printf(&text, "at %s, ", peak->op);
    if (peak->node != SF_NONE)
        sf_buf_printf(&text, "node %" PRIu32 ", ", peak->node);
    sf_buf_printf(&text, "%s, in %s", sf_phase_name(peak->phase),
                  *peak->scope ? peak->scope : "no scope");
    const char *kept = sf_arena_string(&e->arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

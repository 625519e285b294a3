#include "report/explain.h"

const char *sf_explain_made_for(const sf_explanation *e)
{
    const sf_prediction *predicted = e->plan->predicted;
    if (!predicted || predicted->cluster_hash == sf_cluster_hash(e->cluster))
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

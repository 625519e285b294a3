#include "front/roles_and_state.h"

#include "base/mem.h"
#include "front/find_loss.h"
#include "front/lost_state.h"
#include "front/role.h"
#include "front/sidecar.h"
#include "front/state_links.h"

sf_status sf_state_infer(sf_graph *graph, const sf_import_options *options, sf_diag *diag)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        graph->arguments[i].role = SF_ROLE_OTHER;
        graph->arguments[i].role_from = SF_FROM_NOTHING;
    }
    const char *said = NULL, *state = options->state;
    if (options->sidecar)
        SF_TRY(sf_sidecar_read(options->sidecar, options->sidecar_file, graph, &said, diag));
    if (!state)
        state = said;
    SF_TRY(sf_link_state(graph, state, state == said ? SF_FROM_SIDECAR : SF_FROM_USER,
                         options->strict, diag));
    uint32_t *becomes = sf_find_new_state(graph);
    bool *kept = sf_alloc(graph->top->narguments * sizeof *kept);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        kept[i] = graph->arguments[i].next != SF_NONE;
    uint32_t loss = sf_guess_loss(graph, becomes, kept, true);
    sf_free(kept);
    if (loss != SF_NONE && !graph->results[loss].is_loss) {
        graph->results[loss].is_loss = true;
        graph->results[loss].loss_from = SF_FROM_FLOW;
    }
    bool *needed = sf_needed_by(graph, becomes, loss);
    sf_find_roles(graph, needed, sf_any_link(graph));
    if (!state)
        sf_find_loose(graph);
    sf_free(needed);
    sf_free(becomes);
    return SF_OK;
}

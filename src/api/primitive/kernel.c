/* Kernels by name, in the place of what they are in a module. Engines look for them by themselves; here it is held that they find
 * them. */
#include <string.h>

#include "api/primitive/primitives.h"
#include "ir/clone.h"
#include "op/attention.h"
#include "prog/attention/attention.h"
#include "run/runner.h"

static bool has_attention(const sf_regraph *found, const char *module)
{
    for (uint32_t i = 0; found->graph && i < found->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(found->graph, i);
        if (node->def->id == SF_ATTENTION && sf_is_in_module(node->scope->path, module))
            return true;
    }
    return false;
}

static sf_status fail_missing(const sf_primitive *said, const char *module,
                              sf_kernel_choice kernels, sf_diag *diag)
{
    if (kernels == SF_KERNELS_NONE)
        return sf_fail(diag, SF_EWRONG, sf_said_at(said),
                       "no kernels are wanted, as the schedule says: kernels(\"none\")");
    sf_fail(diag, SF_EWRONG, sf_said_at(said), "%s has no %s that a kernel stands for", module,
            said->kernel);
    return kernels == SF_KERNELS_ALL
               ? SF_EWRONG
               : sf_hint(diag,
                         "sch:kernels(\"all\"), before this, has kernels stand for what they can");
}

sf_status sf_check_kernel(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    const sf_entry *set = sf_find_setting(list, "kernels");
    if (strcmp(said->kernel, "attention") != 0)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said),
                       "there is no kernel \"%s\": it is \"attention\"", said->kernel);
    if (said->nsubgraphs > 0 || said->sketches || said->fragment || said->backwards ||
        said->backward)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said),
                       "a kernel stands for all that it is in a module, not for subgraphs");
    sf_graph *graph = sf_graph_clone(list->graph);
    if (set)
        sf_kernel_choice_read(sf_str_of(set->said.value), &graph->kernels);
    sf_regraph found = sf_find_attention(graph, sf_engine_target(NULL), false);
    sf_status status = SF_OK;
    for (size_t m = 0; m < entry->nmodules && status == SF_OK; m++)
        if (!has_attention(&found, entry->modules[m]))
            status = fail_missing(said, entry->modules[m], graph->kernels, diag);
    sf_regraph_free(&found);
    sf_graph_free(graph);
    return status;
}

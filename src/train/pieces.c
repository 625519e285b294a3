#include "train/pieces.h"

sf_pieces sf_pieces_whole(const sf_graph *graph, sf_arena *arena)
{
    return (sf_pieces){.graph = graph,
                       .layouts = SF_ARRAY(arena, graph->top->narguments, sf_layout)};
}

const sf_type *sf_pieces_type(const sf_pieces *pieces, uint32_t argument)
{
    return sf_type_of(pieces->graph, pieces->graph->top->arguments[argument]);
}

sf_runs sf_pieces_runs(const sf_pieces *pieces, uint32_t argument)
{
    return sf_runs_of(&pieces->layouts[argument], &pieces->mesh, pieces->rank,
                      sf_pieces_type(pieces, argument));
}

bool sf_pieces_is_split(const sf_pieces *pieces, uint32_t argument)
{
    for (int a = 0; a < pieces->mesh.naxes; a++)
        if (pieces->layouts[argument].axes[a].kind == SF_SPLIT && pieces->mesh.axes[a].size > 1)
            return true;
    return false;
}

bool sf_pieces_is_first(const sf_pieces *pieces, uint32_t argument)
{
    for (int a = 0; a < pieces->mesh.naxes; a++)
        if (pieces->layouts[argument].axes[a].kind != SF_SPLIT &&
            sf_mesh_coordinate(&pieces->mesh, pieces->rank, a) != 0)
            return false;
    return true;
}

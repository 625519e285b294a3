#include "train/pieces.h"

const sf_type *sf_holder_type(const sf_holder *holder, uint32_t argument)
{
    return holder->engine ? sf_engine_argument_type(holder->engine, argument)
                          : holder->tensors[argument].type;
}

sf_status sf_holder_lend(const sf_holder *holder, uint32_t argument, bool writes, sf_diag *diag,
                         sf_tensor *out)
{
    if (holder->engine)
        return sf_engine_lend(holder->engine, argument, writes, diag, out);
    *out = holder->tensors[argument];
    return SF_OK;
}

sf_status sf_holder_give_back(const sf_holder *holder, uint32_t argument, sf_diag *diag)
{
    return holder->engine ? sf_engine_give_back(holder->engine, argument, diag) : SF_OK;
}

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

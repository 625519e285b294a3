#include "search/specs/folded.h"

#include "plan/fold/shorten.h"

/* The numbers of layers that stacks have, those first that have most items; stacks with hardly more layers than are kept, and of
 * numbers beyond what `lengths` has room for, stay whole. */
static int list_lengths(const sf_repeats *repeats, uint32_t lengths[SF_MOST_SHORT_STEPS - 1])
{
    int count = 0;
    for (uint32_t s = 0; s < repeats->count; s++) {
        uint32_t layers = repeats->stacks[s].layers;
        bool is_new = layers > SF_FEWEST_KEPT + 1;
        for (int i = 0; i < count; i++)
            is_new = is_new && lengths[i] != layers;
        if (is_new && count < SF_MOST_SHORT_STEPS - 1)
            lengths[count++] = layers;
    }
    return count;
}

/* With the fewest layers, and one more in stacks of `longer` layers; NULL where the step cannot be shortened so. */
static sf_graph *shorten(const sf_graph *whole, const sf_repeats *repeats, int count,
                         const uint32_t *lengths, uint32_t longer, sf_arena *arena)
{
    uint32_t *keep = SF_ARRAY(arena, repeats->count, uint32_t);
    sf_short_step found;
    for (uint32_t s = 0; s < repeats->count; s++) {
        keep[s] = repeats->stacks[s].layers;
        for (int i = 0; i < count; i++)
            if (repeats->stacks[s].layers == lengths[i])
                keep[s] = SF_FEWEST_KEPT + (lengths[i] == longer);
    }
    return sf_shorten_step(whole, repeats, keep, arena, &found) ? found.graph : NULL;
}

void sf_fold_step(const sf_graph *whole, sf_folded *out)
{
    sf_arena arena = {0};
    uint32_t lengths[SF_MOST_SHORT_STEPS - 1];
    sf_repeats repeats = sf_find_repeats(whole, &arena);
    int count = list_lengths(&repeats, lengths);
    uint64_t nodes = 0;
    *out = (sf_folded){.whole = whole, .weight = {1}};
    for (int i = 0; i <= count && count > 0; i++) {
        sf_graph *step =
            shorten(whole, &repeats, count, lengths, i > 0 ? lengths[i - 1] : 0, &arena);
        if (!step)
            break;
        nodes += step->nnodes;
        out->steps[out->count++] = step;
        if (i > 0) {
            out->weight[i] = lengths[i - 1] - (double)SF_FEWEST_KEPT;
            out->weight[0] -= out->weight[i];
        }
    }
    if (out->count != count + 1 || nodes >= whole->nnodes) {
        sf_folded_free(out);
        *out = (sf_folded){.whole = whole, .count = 1, .steps = {whole}, .weight = {1}};
    }
    sf_arena_free(&arena);
}

void sf_folded_free(sf_folded *folded)
{
    for (int i = 0; i < folded->count; i++)
        if (folded->steps[i] != folded->whole)
            sf_graph_free((sf_graph *)folded->steps[i]);
}

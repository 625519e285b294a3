/* The prefetch of ZeRO-3, to compare with: when a tensor is fetched, those that are needed next are fetched, too, as one
 * collective, as long as what was fetched ahead and not yet used is at most a fixed number of bytes. Memory is not looked
 * at. */
#include <inttypes.h>

#include "base/units.h"
#include "pass/gather_placement.h"
#include "pass/passes.h"

enum { BUCKET };

static void fetch_ahead(sf_placing *p, int64_t bucket)
{
    size_t count = 0, next = 0;
    sf_arena *arena = p->passing->scratch;
    uint32_t *list = SF_ARRAY(arena, p->gathers.count, uint32_t);
    int64_t ahead = 0;
    for (uint32_t i = 0; i < p->program->ninsts; i++)
        if (p->gathers.is_gather[i])
            list[count++] = i;
    for (size_t i = 0; i < count; i++) {
        if (i == next)
            next++; /* nobody fetched it before */
        else
            ahead -= sf_placing_bytes(p, list[i]);
        size_t first = next;
        for (; next < count && ahead + sf_placing_bytes(p, list[next]) <= bucket; next++)
            ahead += sf_placing_bytes(p, list[next]);
        sf_place_gathers(p, &list[first], next - first, list[i] + 1, 0);
    }
}

sf_status sf_pass_zero3(sf_passing *passing)
{
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(passing, passing->scratch, &scopes), moved = 0;
    for (size_t s = 0; s < count; s++) {
        sf_placing p = sf_placing_of(passing, scopes[s].program);
        if (p.gathers.count == 0)
            continue;
        fetch_ahead(&p, (int64_t)passing->options[BUCKET]);
        sf_placing_end(&p);
        moved += p.moved;
    }
    sf_buf_printf(passing->note, "%zu gather%s ahead, %s at a time", moved, sf_plural(moved),
                  sf_text_bytes(passing->options[BUCKET]).at);
    return SF_OK;
}

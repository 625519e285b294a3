/* Proactive prefetch (DeepCompile, Algorithm 1): the list is walked from its end, with the pending
 * gathers met so far. They move upwards as long as memory allows, up to a number of bytes in a
 * group; if it does not, they are placed, and joined. The paper checks memory at gathers alone;
 * this checks it at every instruction: a peak between two of them counts, too.
 *
 * Two ways to place: all pending gathers, as in the paper, which makes the largest groups; or only
 * the one needed last, until the others can move on. Both are tried, with several sizes of a group
 * unless the option is set; the simulator chooses. */
#include <inttypes.h>
#include <math.h>

#include "base/units.h"
#include "pass/gather_placement.h"
#include "pass/passes.h"

enum { GROUP, ALPHA };

typedef struct walking {
    sf_placing placing;
    const sf_pass_scope *scope;
    int64_t limit, group;
    double alpha;
    bool all;       /* all pending gathers are placed at once */
    uint32_t *hand; /* gathers, the one that is needed last first */
    int64_t *bytes;
    size_t count, from; /* those from `from` on are in hand */
    int64_t held;
} walking;

/* Places the gather needed last before the instruction, until so many bytes more can move on. */
static void put_down(walking *w, int64_t room, uint32_t before)
{
    size_t end = w->from;
    while (end < w->count && (w->held > room || (w->all && end > w->from)))
        w->held -= w->bytes[end++];
    size_t n = end - w->from;
    uint32_t *list = SF_ARRAY(w->placing.passing->scratch, n, uint32_t);
    for (size_t i = 0; i < n; i++)
        list[i] = w->hand[end - 1 - i];
    sf_place_gathers(&w->placing, list, n, before, w->alpha);
    w->from = end;
}

static void take_up(walking *w, uint32_t gather)
{
    int64_t bytes = sf_placing_bytes(&w->placing, gather);
    if (w->held + bytes > w->group)
        put_down(w, w->group - bytes, gather + 1);
    w->hand[w->count] = gather;
    w->bytes[w->count++] = bytes;
    w->held += bytes;
}

static bool is_moving(const walking *w, uint32_t inst)
{
    return w->placing.gathers.is_gather[inst] || w->placing.emission.lazy[inst];
}

static void walk_up(walking *w)
{
    const sf_program *p = w->scope->program;
    for (uint32_t i = (uint32_t)p->ninsts; i-- > 0;) {
        int64_t room = w->limit - w->scope->base - w->scope->live[i];
        if (w->placing.gathers.is_gather[i])
            take_up(w, i);
        else if (!is_moving(w, i) && w->held > room)
            put_down(w, room, i + 1);
    }
    put_down(w, -1, 0);
}

/* Where nothing that stays is at an index, the next is as good. */
static void prefetch_scope(const sf_passing *passing, const sf_pass_scope *scope, int64_t group,
                           size_t *moved, size_t *joined)
{
    sf_program *p = scope->program;
    walking w = {.placing = sf_placing_of(passing, p), .scope = scope, .limit = passing->limit};
    if (w.placing.gathers.count == 0)
        return;
    w.group = group;
    w.all = passing->variant % 2 == 0;
    w.alpha = passing->options[ALPHA];
    w.hand = SF_ARRAY(passing->scratch, w.placing.gathers.count, uint32_t);
    w.bytes = SF_ARRAY(passing->scratch, w.placing.gathers.count, int64_t);
    walk_up(&w);
    sf_placing_end(&w.placing);
    *moved += w.placing.moved;
    *joined += w.placing.joined;
}

/* All gathered bytes in the scopes together, halved repeatedly. */
static int64_t choose_group(const sf_passing *passing, const sf_pass_scope *scopes, size_t count)
{
    int64_t total = 0;
    if (!isnan(passing->options[GROUP]))
        return (int64_t)passing->options[GROUP];
    for (size_t s = 0; s < count; s++) {
        const sf_program *p = scopes[s].program;
        sf_gathers gathers = sf_gathers_find(p, passing->scratch);
        for (uint32_t i = 0; i < p->ninsts; i++)
            total += gathers.is_gather[i] ? sf_gather_bytes(p, &p->insts[i]) : 0;
    }
    return total >> (passing->variant / 2 * 2);
}

sf_status sf_pass_prefetch(sf_passing *passing)
{
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(passing, passing->scratch, &scopes), moved = 0, joined = 0;
    int64_t group = choose_group(passing, scopes, count);
    for (size_t s = 0; s < count; s++)
        prefetch_scope(passing, &scopes[s], group, &moved, &joined);
    sf_buf_printf(passing->note,
                  "%zu gather%s earlier, %zu of them joined with another, up to %s ahead", moved,
                  sf_plural(moved), joined, sf_text_bytes((double)group).at);
    return SF_OK;
}

/* The pass offload: copies buffers that do not fit to the host. */
#include <inttypes.h>
#include <math.h>

#include "base/units.h"
#include "pass/offload.h"
#include "pass/passes.h"
#include "prog/edit_program.h"

enum { TRIES = 12 };

static sf_offload offload_of(const sf_passing *passing, int64_t limit, int64_t least)
{
    sf_program *p = passing->program;
    sf_offload o = {.program = p,
                    .sim = &passing->profile.sim,
                    .costs = passing->costs,
                    .limit = limit,
                    .least = least,
                    .arena = passing->scratch};
    o.curve = SF_ARRAY(passing->scratch, p->ninsts + 1, int64_t);
    for (size_t i = 0; i < p->ninsts; i++)
        o.curve[i] = passing->profile.memory[i];
    sf_offload_find(&o);
    return o;
}

static void note_moves(const sf_passing *passing, sf_offload *o)
{
    sf_rest **list;
    size_t count = sf_offload_taken(o, &list), states = 0, housed = 0, recomputed = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        recomputed += list[i]->is_recomputed;
        if (list[i]->is_recomputed)
            continue;
        bytes += o->program->buffers[list[i]->buffer].bytes;
        states += list[i]->is_state;
        housed += list[i]->is_housed;
    }
    passing->note->length = 0;
    if (count == 0)
        sf_buf_puts(passing->note, "nothing: it fits");
    else
        sf_buf_printf(passing->note,
                      "%zu tensor%s, %s, to the host and back: %zu of state, %zu between passes",
                      count - recomputed, count - recomputed == 1 ? "" : "s",
                      sf_text_bytes((double)bytes).at, states, count - recomputed - states);
    if (recomputed > 0)
        sf_buf_printf(passing->note, "; %zu recomputed", recomputed);
    if (housed > 0)
        sf_buf_printf(passing->note, "; %zu have their home there", housed);
}

/* A variant, and its result. */
typedef struct way {
    bool with_guests, without_housed, with_recompute;
    int64_t least;
    bool fits;
    int64_t bytes;
    double seconds;
    sf_kept *kept;
    const char *note;
} way;

static double seconds_of(const sf_passing *passing)
{
    sf_arena scratch = {0};
    sf_simulation sim;
    sf_simulate(passing->program, passing->costs, &scratch, &sim);
    sf_arena_free(&scratch);
    return sim.seconds;
}

static void settle(const sf_passing *passing)
{
    if (passing->is_trial)
        sf_program_settle_lives(passing->program);
    else
        sf_program_settle(passing->program);
}

/* Placement leaves gaps, and a late copy keeps memory longer: the limit is lowered until the
 * program fits. */
static void go_way(sf_passing *passing, sf_kept *before, way *w)
{
    sf_program *p = passing->program;
    int64_t limit = passing->limit;
    for (int t = 0;; t++) {
        sf_program_put_back(p, before);
        settle(passing);
        sf_offload o = offload_of(passing, limit, w->least);
        o.with_guests = w->with_guests;
        o.without_housed = w->without_housed;
        o.with_recompute = w->with_recompute;
        sf_offload_choose(&o);
        sf_offload_schedule(&o);
        sf_offload_insert(&o);
        note_moves(passing, &o);
        settle(passing);
        w->bytes = sf_program_bytes(p);
        int64_t over = w->bytes - passing->limit;
        w->fits = over <= 0;
        if (w->fits || t == TRIES || limit <= over || passing->is_trial)
            break;
        limit -= over / 4 + passing->limit / 256 + 1;
    }
    w->seconds = seconds_of(passing);
    w->kept = sf_program_keep(p, passing->scratch);
    w->note = sf_arena_string(passing->scratch, passing->note->text, passing->note->length);
}

static bool is_better_way(const way *a, const way *b)
{
    if (a->fits != b->fits)
        return a->fits;
    if (!a->fits && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->seconds < b->seconds;
}

/* The value of the option, or the default. */
static int64_t said_least(const sf_passing *passing, int64_t usual)
{
    double said = passing->options[0];
    return isnan(said) ? usual : said < 1 ? 1 : (int64_t)said;
}

static bool said_again(const sf_passing *passing)
{
    return passing->options[1] > 0;
}

/* All ways with tensors from a size on; the first that fits without a wait is good enough. To compare, the plainest will do,
 * and if that is not enough, the one that frees most. */
static way go_all_ways(sf_passing *passing, sf_kept *before, int64_t least)
{
    way ways[] = {{.without_housed = true},
                  {.without_housed = true, .with_guests = true},
                  {.with_guests = true},
                  {.with_guests = false},
                  {.with_recompute = true}};
    enum { WAYS = sizeof ways / sizeof *ways, LAST = 3 };
    const double slack = 1.001;
    int best = 0, count = said_again(passing) ? WAYS : WAYS - 1;
    for (int i = 0; i < count; i += passing->is_trial && i < LAST ? LAST : 1) {
        ways[i].least = least;
        go_way(passing, before, &ways[i]);
        best = is_better_way(&ways[i], &ways[best]) ? i : best;
        bool is_good = ways[best].seconds <= slack * passing->profile.sim.seconds;
        if (ways[best].fits && (is_good || (passing->is_trial && !said_again(passing))))
            break;
    }
    return ways[best];
}

/* Small tensors only where large ones are not enough. */
sf_status sf_pass_offload(sf_passing *passing)
{
    enum { PARTS = 1024 };
    sf_kept *before = sf_program_keep(passing->program, passing->scratch);
    int64_t least = said_least(passing, SF_OFFLOAD_LEAST), finer = passing->limit / PARTS + 1;
    way best = go_all_ways(passing, before, least);
    if (!best.fits && isnan(passing->options[0]) && finer < least && !passing->is_trial) {
        way small = go_all_ways(passing, before, finer);
        best = is_better_way(&small, &best) ? small : best;
    }
    sf_program_put_back(passing->program, best.kept);
    settle(passing);
    passing->program->offloads = true;
    passing->note->length = 0;
    sf_buf_puts(passing->note, best.note);
    return SF_OK;
}

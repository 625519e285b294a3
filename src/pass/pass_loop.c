/* The loop of passes and profiles. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "pass/passes.h"
#include "pass/step_lower_bound.h"
#include "prog/buffer_content.h"
#include "prog/check_program.h"
#include "prog/edit_program.h"

/* If placement leaves gaps, a pass gets a lower memory limit, and is tried once more. */
enum { TRIES = 6 };

typedef struct looping {
    sf_program *p;
    const sf_pass_run *run;
    int64_t limit;
    sf_diag *diag;
    uint64_t meaning; /* of the program before the pass */
    sf_arena scratch; /* of one pass */
} looping;

/* The best variant of a pass, its memory limit, and whether it is kept. */
typedef struct decision {
    int variant;
    int64_t limit;
    bool kept;
} decision;

/* A way in which a pass could leave the program. */
typedef struct attempt {
    double seconds;
    int64_t bytes;
} attempt;

/* The result of a pass. */
typedef struct result {
    sf_buf note;
    bool kept;
    double hides, could_hide;
} result;

void sf_profile_take(const sf_program *p, const sf_costs *costs, sf_arena *arena, sf_profile *out)
{
    uint32_t at;
    sf_simulate(p, costs, arena, &out->sim);
    sf_live_bytes(p, arena, &out->memory, &at);
    for (size_t i = 0; i < p->ninsts; i++)
        out->memory[i] += p->state_bytes + p->constant_bytes;
    out->bytes = sf_program_bytes(p);
}

static void take_profile(const looping *l, sf_arena *arena, sf_profile *out)
{
    sf_profile_take(l->p, l->run->costs, arena, out);
}

static void count_exchange(void *context, const sf_inst *exchange, const sf_timing *timing,
                           double times, uint32_t within)
{
    (void)exchange, (void)timing, (void)within;
    *(double *)context += times;
}

static void note_outcome(const looping *l, const char *name, const result *found,
                         sf_pass_outcome *out)
{
    const char *note = found->note.text ? found->note.text : "";
    sf_profile profile = {0};
    sf_arena *arena = l->run->arena;
    double count = 0;
    take_profile(l, arena, &profile);
    sf_see_exchanges(l->p, &profile.sim, count_exchange, &count);
    *out = (sf_pass_outcome){.name = name,
                             .note = sf_arena_string(arena, note, strlen(note)),
                             .kept = found->kept,
                             .hides = found->hides,
                             .could_hide = found->could_hide,
                             .seconds = profile.sim.seconds,
                             .exposed = profile.sim.exposed,
                             .bytes = profile.bytes,
                             .ncollectives = (int)count,
                             .traffic = profile.sim.traffic,
                             .npoints = (uint32_t)l->p->ninsts,
                             .memory = profile.memory};
}

static void note_lowered(const looping *l, const char *note, sf_pass_outcome *out)
{
    result found = {.kept = true};
    sf_buf_puts(&found.note, note);
    note_outcome(l, "none", &found, out);
    sf_buf_free(&found.note);
}

/* The rewritten program can be run, and computes the same as before. One without places is never run. */
static sf_status check_left(looping *l, const sf_program_pass *pass)
{
    sf_program_number(l->p);
    sf_program_settle(l->p);
    if (l->p->is_unplaced)
        return SF_OK;
    sf_status status = sf_program_check(l->p, l->diag);
    if (status == SF_OK && !pass->rounds && sf_program_meaning(l->p) != l->meaning)
        status = sf_fail(l->diag, SF_EMISMATCH, SF_NOWHERE,
                         "the program computes something else than before");
    if (status == SF_EMISMATCH)
        return sf_hint(l->diag, "pass %s did it; leave it out of the list", pass->name);
    return status;
}

static sf_passing passing_of(looping *l, const sf_chosen_pass *chosen, const sf_profile *profile,
                             int variant, int64_t limit, sf_buf *note)
{
    sf_passing passing = {.program = l->p,
                          .costs = l->run->costs,
                          .profile = *profile,
                          .limit = limit,
                          .variant = variant,
                          .user = chosen->user,
                          .scratch = &l->scratch,
                          .note = note,
                          .diag = l->diag};
    memcpy(passing.options, chosen->options, sizeof passing.options);
    return passing;
}

/* One try. */
static sf_status try_pass(looping *l, const sf_chosen_pass *chosen, const sf_profile *profile,
                          int variant, int64_t limit, sf_buf *note)
{
    note->length = 0;
    sf_passing passing = passing_of(l, chosen, profile, variant, limit, note);
    SF_TRY(chosen->pass->run(&passing));
    return check_left(l, chosen->pass);
}

/* Whether the rewritten program is better than the original or another variant. */
static bool is_better(const looping *l, const sf_program_pass *pass, const attempt *a,
                      const attempt *than)
{
    bool fits = a->bytes <= l->limit, fitted = than->bytes <= l->limit;
    if (pass->aim == SF_PASS_TO_BEGIN)
        return true;
    if (fits != fitted)
        return fits;
    if (pass->aim == SF_PASS_FOR_MEMORY || !fits)
        return a->bytes < than->bytes || (a->bytes == than->bytes && a->seconds < than->seconds);
    return a->seconds < than->seconds || (a->seconds == than->seconds && a->bytes < than->bytes);
}

static attempt measure(const looping *l)
{
    sf_arena arena = {0};
    sf_profile profile = {0};
    take_profile(l, &arena, &profile);
    attempt a = {.seconds = profile.sim.seconds, .bytes = profile.bytes};
    sf_arena_free(&arena);
    return a;
}

/* One variant, with lower memory limits until it fits; the program is as it left it. */
static sf_status try_variant(looping *l, const sf_chosen_pass *chosen, const sf_profile *profile,
                             sf_kept *before, decision *d, sf_buf *note)
{
    d->limit = l->limit;
    for (int t = 0;; t++) {
        SF_TRY(try_pass(l, chosen, profile, d->variant, d->limit, note));
        int64_t over = sf_program_bytes(l->p) - l->limit;
        if (over <= 0 || t == TRIES || d->limit < over || profile->bytes > l->limit)
            return SF_OK;
        sf_program_put_back(l->p, before);
        d->limit -= over + over / 4;
    }
}

/* All ways, by lives alone: places are found for the best. How many there are. */
static sf_status try_variants(looping *l, const sf_chosen_pass *chosen, const sf_profile *profile,
                              sf_kept *before, attempt *out, int *count)
{
    *count = 0;
    for (int v = 0; v < chosen->pass->variants; v++) {
        sf_buf unheard = {0};
        sf_passing passing = passing_of(l, chosen, profile, v, l->limit, &unheard);
        passing.is_trial = true;
        sf_status status = chosen->pass->run(&passing);
        sf_program_settle_lives(l->p);
        out[(*count)++] = measure(l);
        sf_buf_free(&unheard);
        sf_program_put_back(l->p, before);
        SF_TRY(status);
        if (passing.is_last)
            break;
    }
    return SF_OK;
}

/* The best of them that was not taken yet; -1: there is none. */
static int best_variant(const looping *l, const sf_program_pass *pass, const attempt *all,
                        const bool *taken, int count)
{
    int best = -1;
    for (int v = 0; v < count; v++)
        if (!taken[v] && (best < 0 || is_better(l, pass, &all[v], &all[best])))
            best = v;
    return best;
}

/* No step is faster than the least that its gathers allow. */
static void find_hideable(looping *l, const sf_chosen_pass *chosen, const sf_profile *profile,
                          result *out)
{
    sf_passing passing = passing_of(l, chosen, profile, 0, l->limit, NULL);
    if (chosen->pass->hides)
        out->could_hide = fmax(0, profile->sim.seconds - sf_least_seconds(&passing));
}

static void note_hidden(const sf_program_pass *pass, double seconds, result *out)
{
    if (!pass->hides || out->could_hide <= 0)
        return;
    out->hides = seconds;
    sf_buf_printf(&out->note, "; hides %s of %s that could be", sf_text_seconds(seconds).at,
                  sf_text_seconds(out->could_hide).at);
}

/* The best variant, or none; *now is what it takes. One that is no better by lives is no better by places either; one that
 * is better by lives, and not with places, is replaced by the next, and finally by one that is
 * sure. */
static sf_status decide(looping *l, const sf_chosen_pass *chosen, const sf_profile *profile,
                        sf_kept *before, decision *out, attempt *now, sf_buf *note)
{
    enum { PLACED = 4 };
    const sf_program_pass *pass = chosen->pass;
    attempt was = {.seconds = profile->sim.seconds, .bytes = profile->bytes};
    attempt *all = SF_ARRAY(&l->scratch, pass->variants + 1, attempt);
    bool *taken = SF_ARRAY(&l->scratch, pass->variants + 1, bool);
    int count, best = 0;
    SF_TRY(try_variants(l, chosen, profile, before, all, &count));
    for (int t = 0; t < (count > 0 ? PLACED : 1) && !out->kept; t++) {
        if (count > 0)
            best = best_variant(l, pass, all, taken,
                                t == PLACED - 1 && pass->sure > 0 ? pass->sure : count);
        if (best < 0 ||
            (count > 0 && all[best].bytes <= l->limit && !is_better(l, pass, &all[best], &was)))
            return SF_OK;
        taken[best] = true;
        out->variant = best;
        sf_program_put_back(l->p, before);
        SF_TRY(try_variant(l, chosen, profile, before, out, note));
        *now = measure(l);
        out->kept = is_better(l, pass, now, &was);
    }
    return SF_OK;
}

static sf_status run_pass(looping *l, const sf_chosen_pass *chosen, result *out)
{
    sf_profile profile = {0};
    decision d = {0};
    attempt now = {0};
    take_profile(l, &l->scratch, &profile);
    find_hideable(l, chosen, &profile, out);
    sf_kept *before = sf_program_keep(l->p, &l->scratch);
    SF_TRY(decide(l, chosen, &profile, before, &d, &now, &out->note));
    out->kept = d.kept;
    if (out->kept) {
        note_hidden(chosen->pass, profile.sim.seconds - now.seconds, out);
        return SF_OK;
    }
    sf_program_put_back(l->p, before);
    out->note.length = 0;
    sf_buf_puts(&out->note, "nothing: it would take longer, or more memory");
    return SF_OK;
}

static bool is_kept_by_force(const sf_pass_list *list)
{
    for (int i = 0; i < list->count; i++)
        if (list->at[i].pass->is_forced)
            return true;
    return false;
}

/* The list as a whole: passes that later ones build on may cost time, which these must gain. */
static bool is_worth_it(const looping *l, const attempt *now, const attempt *was)
{
    bool fits = now->bytes <= l->limit, fitted = was->bytes <= l->limit;
    if (fits != fitted)
        return fits;
    return fits ? now->seconds <= was->seconds : now->bytes <= was->bytes;
}

sf_status sf_pass_force(sf_passing *passing)
{
    sf_buf_puts(passing->note, "the list is kept, whether or not it is faster");
    return SF_OK;
}

static sf_status run_list(looping *l, sf_pass_outcome *outcomes)
{
    const sf_pass_list *list = l->run->list;
    if (outcomes)
        note_lowered(l, "as lowered", &outcomes[0]);
    for (int i = 0; i < list->count; i++) {
        result found = {0};
        if (!l->p->is_unplaced && (i == 0 || list->at[i - 1].pass->rounds))
            l->meaning = sf_program_meaning(l->p);
        sf_status status = run_pass(l, &list->at[i], &found);
        if (status == SF_OK && outcomes)
            note_outcome(l, list->at[i].file ? list->at[i].file : list->at[i].pass->name, &found,
                         &outcomes[i + 1]);
        sf_buf_free(&found.note);
        sf_arena_free(&l->scratch);
        l->scratch = (sf_arena){0};
        SF_TRY(status);
    }
    return SF_OK;
}

/* All passes; then the program as it was, where they were not worth it. */
static sf_status run_guarded(looping *l, sf_arena *arena, sf_pass_outcome *outcomes, int *count)
{
    const sf_pass_list *list = l->run->list;
    sf_kept *before = sf_program_keep(l->p, arena);
    attempt was = measure(l);
    *count = list->count + 1;
    SF_TRY(run_list(l, outcomes));
    attempt now = measure(l);
    if (is_kept_by_force(list) || is_worth_it(l, &now, &was))
        return SF_OK;
    sf_program_put_back(l->p, before);
    if (outcomes)
        note_lowered(l, "as lowered: the list as a whole is slower, or larger",
                     &outcomes[(*count)++]);
    return SF_OK;
}

sf_status sf_passes_run(sf_program *program, const sf_pass_run *run, sf_diag *diag,
                        sf_pass_outcome *outcomes, int *count)
{
    sf_arena arena = {0};
    looping l = {.p = program, .run = run, .limit = run->limit, .diag = diag};
    int unheard;
    if (l.limit <= 0)
        l.limit = sf_costs_memory(run->costs);
    l.limit -= sf_scratch_bytes(program, run->costs);
    count = count ? count : &unheard;
    sf_status status = run_guarded(&l, &arena, outcomes, count);
    sf_arena_free(&l.scratch);
    sf_arena_free(&arena);
    return status;
}

#include "search/price/moments.h"

/* What goes as one, a move or a bucket: when it can be sent, and when it is first wanted. */
typedef struct sending {
    uint32_t after, wanted;
} sending;

typedef struct finding {
    const sf_efforts *efforts;
    const sf_reshards *reshards;
    const bool *is_second;
    uint32_t *moments;
    sending *by_move, *by_bucket;
} finding;

uint32_t sf_reading_inst(const sf_efforts *efforts, const sf_resharding *reshard)
{
    return reshard->wanted == SF_NONE ? efforts->ninsts : efforts->nodes[reshard->wanted].inst;
}

static uint32_t moment_made(const finding *f, sf_value value)
{
    const sf_node *maker = sf_maker(f->efforts->graph, value);
    uint32_t made = f->efforts->made[value];
    bool second = maker && f->is_second[maker->id];
    return made > 0 ? sf_moment(made - 1, second ? SF_BEHIND_ALL : SF_BEHIND) : 0;
}

static sending *sending_of(const finding *f, uint32_t reshard)
{
    uint32_t bucket = f->reshards->reshards[reshard].bucket;
    return bucket == SF_NONE ? &f->by_move[reshard] : &f->by_bucket[bucket];
}

/* Where it stands in the text. */
static void find_moment(finding *f, uint32_t index)
{
    const sf_reshards *m = f->reshards;
    const sf_resharding *reshard = &m->reshards[index];
    const sf_value_version *from = &m->versions[m->versions[reshard->from].same];
    uint32_t after =
        from->reshard != SF_NONE ? f->moments[from->reshard] : moment_made(f, reshard->value);
    uint32_t wanted = sf_moment(sf_reading_inst(f->efforts, reshard), SF_BEFORE);
    sending *all = sending_of(f, index);
    f->moments[index] = sf_starts_early(reshard) || wanted < after ? after : wanted;
    all->after = after > all->after ? after : all->after;
    all->wanted = wanted < all->wanted ? wanted : all->wanted;
}

/* Whether it is the last of those that go as one, which is where that stands. */
static bool is_last_of_sending(const finding *f, uint32_t index)
{
    uint32_t bucket = f->reshards->reshards[index].bucket;
    return bucket == SF_NONE || f->reshards->buckets[bucket].last == index;
}

/* In the order of the text: `behind` of a gather becomes the moment at which it goes ahead, or UINT32_MAX. */
static void find_ahead(finding *f)
{
    const sf_reshards *m = f->reshards;
    uint32_t before = UINT32_MAX; /* when the collective before is wanted */
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index;
        if (!m->steps[i].is_reshard || sf_is_local_reshard(m->reshards[index].kind) ||
            !is_last_of_sending(f, index))
            continue;
        sending *all = sending_of(f, index);
        bool goes = all->after <= before && before < all->wanted;
        all->after = goes ? before : UINT32_MAX;
        before = all->wanted;
    }
}

const uint32_t *sf_find_moments(const sf_efforts *efforts, const sf_reshards *reshards,
                                const bool *is_second, sf_arena *arena)
{
    finding f = {.efforts = efforts,
                 .reshards = reshards,
                 .is_second = is_second,
                 .moments = SF_ARRAY(arena, reshards->nreshards, uint32_t),
                 .by_move = SF_ARRAY(arena, reshards->nreshards, sending),
                 .by_bucket = SF_ARRAY(arena, reshards->nbuckets, sending)};
    for (size_t i = 0; i < reshards->nreshards; i++)
        f.by_move[i].wanted = UINT32_MAX;
    for (size_t i = 0; i < reshards->nbuckets; i++)
        f.by_bucket[i].wanted = UINT32_MAX;
    for (uint32_t i = 0; i < reshards->nreshards; i++)
        find_moment(&f, i);
    find_ahead(&f);
    for (uint32_t i = 0; i < reshards->nreshards; i++) {
        const sf_resharding *reshard = &reshards->reshards[i];
        uint32_t ahead = sending_of(&f, i)->after;
        if (reshard->kind == SF_RESHARD_GATHER && !sf_starts_early(reshard) && ahead < f.moments[i])
            f.moments[i] = ahead;
    }
    return f.moments;
}

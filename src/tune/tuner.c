#include "tune/tuner.h"

#include <math.h>
#include <string.h>

#include "tune/algorithm.h"

static bool ask_in_order(sf_tuner *tuner, size_t *point)
{
    for (*point = 0; *point < tuner->points->count; ++*point)
        if (!tuner->observed[*point].known)
            return true;
    return false;
}

static const struct {
    const char *name;
    bool (*ask)(sf_tuner *tuner, size_t *point);
} algorithms[] = {
    {"model", sf_ask_model},
    {"exhaustive", ask_in_order},
};

const char *sf_tuner_name(int index)
{
    return index >= 0 && (size_t)index < sizeof algorithms / sizeof *algorithms
               ? algorithms[index].name
               : NULL;
}

sf_tuner *sf_tuner_new(const char *name, const sf_points *points, sf_arena *arena)
{
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        if (name && strcmp(algorithms[i].name, name) != 0)
            continue;
        sf_tuner *tuner = SF_NEW(arena, sf_tuner);
        *tuner = (sf_tuner){.points = points,
                            .arena = arena,
                            .ask = algorithms[i].ask,
                            .observed = SF_ARRAY(arena, points->count, sf_observed)};
        return tuner;
    }
    return NULL;
}

bool sf_tuner_ask(sf_tuner *tuner, size_t *point)
{
    return tuner->ntold < tuner->points->count && tuner->ask(tuner, point);
}

void sf_tuner_observe(sf_tuner *tuner, size_t point, sf_observed observed)
{
    tuner->ntold += !tuner->observed[point].known;
    tuner->observed[point] = observed;
    tuner->observed[point].known = true;
}

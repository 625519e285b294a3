/* "Did you mean": the name that somebody who wrote another may have meant. */
#ifndef SF_BASE_NEAREST_H
#define SF_BASE_NEAREST_H

#include "base/str.h"

/* Looks at one name after the other; `best` is the nearest so far, or NULL. A zeroed one with `text` set is new.
 *
 *     sf_nearest nearest = {.text = written};
 *     for (...)
 *         sf_nearest_try(&nearest, names[i]);
 *     if (nearest.best) ...
 */
typedef struct sf_nearest {
    sf_str text;
    const char *best;
    size_t distance; /* of it */
} sf_nearest;

/* A near name has the same letters in another case, or is at most two insertions, deletions,
 * replacements or transpositions away, but fewer than half of the written letters. */
void sf_nearest_try(sf_nearest *nearest, const char *name);

#endif

#include "base/nearest.h"

#include <ctype.h>

enum { LONGEST = 64, FARTHEST = 2 };

static char lower(char c)
{
    return (char)tolower((unsigned char)c);
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The optimal string alignment distance; both are shorter than LONGEST. Row i has the distances of the first i letters
 * of a to the beginnings of b. */
static size_t distance_of(sf_str a, sf_str b)
{
    size_t rows[3][LONGEST];
    for (size_t j = 0; j <= b.length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.length; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.length; j++) {
            char x = lower(a.at[i - 1]), y = lower(b.at[j - 1]);
            row[j] = least_of(above[j - 1] + (x != y), least_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == lower(b.at[j - 2]) && lower(a.at[i - 2]) == y)
                row[j] = least_of(row[j], before[j - 2] + 1);
        }
    }
    return rows[a.length % 3][b.length];
}

void sf_nearest_try(sf_nearest *nearest, const char *name)
{
    sf_str other = sf_str_of(name);
    if (nearest->text.length >= LONGEST || other.length >= LONGEST)
        return;
    size_t distance = distance_of(nearest->text, other);
    if (distance > FARTHEST || 2 * distance >= nearest->text.length + (distance == 0) ||
        (nearest->best && distance >= nearest->distance))
        return;
    nearest->best = name;
    nearest->distance = distance;
}

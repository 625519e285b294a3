/* Random numbers: splitmix64 (Steele, Lea, Flood 2014). The same on every machine. */
#ifndef SF_SOLVE_SEARCH_DICE_H
#define SF_SOLVE_SEARCH_DICE_H

#include <stdint.h>

typedef struct sf_dice {
    uint64_t state;
} sf_dice;

static inline uint64_t sf_dice_roll(sf_dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Less than `count`, which is not 0. */
static inline uint32_t sf_dice_below(sf_dice *dice, uint32_t count)
{
    return (uint32_t)(((sf_dice_roll(dice) >> 32) * count) >> 32);
}

#endif

/* Rests of buffers, and which of them are spent on the host. */
#ifndef SF_PASS_OFFLOAD_H
#define SF_PASS_OFFLOAD_H

#include "pass/pass.h"

/* From an instruction that touches a buffer to the next that does. */
typedef struct sf_rest {
    uint32_t buffer;
    uint32_t before, after; /* these two; before = SF_NONE: the beginning of the step */
    uint32_t first; /* the instruction before which it can be copied: earlier accesses have ended */
    int64_t bytes;  /* as it is placed */
    double seconds; /* of a copy */
    bool is_state;  /* of an argument that is not touched before the update */
    bool
        is_housed; /* of an argument whose home is the host: it is there from `tail` on, to the next step's `after` */
    uint32_t tail;
    /* the rest of the same argument that excludes this one: on the host, or from the beginning;
     * SF_NONE */
    uint32_t rival;
    /* seconds of its maker, if that can run once more before `after`; below 0: it cannot */
    double recomputed;
    bool is_recomputed; /* it is not copied to the host, but recomputed */
    bool is_taken;      /* it is spent on the host, then: */
    uint32_t join;      /* before which instruction its copy is waited for, */
    uint32_t back;      /* and before which the copy back begins */
    uint32_t host;      /* the buffer there */
} sf_rest;

typedef struct sf_offload {
    sf_program *program;
    const sf_simulation *sim; /* of the program */
    const sf_costs *costs;
    int64_t limit;
    int64_t least;  /* smallest buffer to copy, in bytes */
    int64_t *curve; /* by instruction: bytes of the device in use then, updated by taken rests */
    /* a buffer that comes back early would need memory that others use meanwhile: it waits for
     * them */
    bool with_guests;
    uint32_t *next_over,
        *last_over; /* by instruction: where there is too much, from there on and up to there */
    bool *is_guest; /* by buffer: it has the place of one that is away */
    bool without_housed; /* no argument has its home on the host */
    bool with_recompute; /* rests may be spent nowhere, where that is faster */
    uint32_t
        *makers; /* by buffer: the one instruction that writes it; SF_NONE: none, or several do */
    double copying;   /* seconds of copies one way of all that are taken */
    uint32_t *ntaken; /* by buffer: how many of its rests are taken */
    bool *is_pinned;  /* by buffer: it is read to recompute another, so it stays */
    double queued;    /* seconds that the link to the host has at the beginning of the step */
    sf_rest *rests;
    size_t nrests, rest_capacity;
    sf_arena *arena;
} sf_offload;

/* rematerialize.c: finds buffers that could be recomputed; whether one still can be, given the
 * taken rests; records that one is; and the instruction that recomputes it, into a buffer of its
 * own that later instructions read, and its later rests use. */
void sf_recompute_find(sf_offload *offload);
bool sf_recompute_can(const sf_offload *offload, const sf_rest *rest);
void sf_recompute_take(sf_offload *offload, sf_rest *rest);
sf_inst sf_recompute_inst(sf_offload *offload, const sf_rest *rest);

/* All rests of the program, which is settled, at the top. */
void sf_offload_find(sf_offload *offload);

/* Takes one: the curve is that without it, as long as it is away. */
void sf_offload_take(sf_offload *offload, sf_rest *rest);

/* Takes rests until the curve is below the limit, or nothing helps; no more than are needed. */
void sf_offload_choose(sf_offload *offload);

/* When those that are taken go, are waited for, and come back. */
void sf_offload_schedule(sf_offload *offload);

/* Copies and joins, in the program. */
void sf_offload_insert(sf_offload *offload);

/* Those that are taken; how many. In the arena. */
size_t sf_offload_taken(sf_offload *offload, sf_rest ***out);

#endif

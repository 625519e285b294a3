/* The state of the pass unshard, which gathers tensors once instead of repeatedly; its files share
 * it. */
#ifndef SF_PASS_UNSHARDING_H
#define SF_PASS_UNSHARDING_H

#include "pass/pass_scope.h"
#include "prog/buffer_content.h"
#include "prog/edit_program.h"

typedef struct gather_part {
    uint32_t inst, part;
} gather_part;

/* Gathers of a scope that make the same. */
typedef struct keeping {
    size_t scope;
    sf_content content;
    gather_part *at; /* in order */
    size_t count, capacity;
    int64_t bytes;
    double seconds, saving; /* of all of them together; in a step */
    double price;           /* its cost: bytes, or bytes times the time that they are in memory */
    bool hoists;            /* it can go before the loop whose body the scope is */
    bool chosen;            /* to go there */
} keeping;

typedef struct unsharding {
    const sf_passing *passing;
    sf_arena *arena;
    sf_pass_scope *scopes;
    size_t nscopes;
    sf_gathers *gathers; /* by scope */
    bool ***gone;        /* by scope, by instruction: by part, that it is left out; NULL: none is */
    keeping *list;
    size_t count, capacity;
    size_t savings;                /* in the list: those that would save time, 64 at most */
    size_t kept, hoisted, dropped; /* for people */
} unsharding;

/* The pass, of those that would save time, numbered as they come, only where a bit is set; from the 65th on all. How many
 * there are, 64 at most. */
size_t unshard_some(const sf_passing *passing, uint64_t allowed);

/* The scope of a program. */
size_t unshard_scope_of(const unsharding *u, const sf_program *program);

/* Whether the gathered tensor is the same in every iteration of the loop whose body the scope
 * is. */
bool unshard_can_hoist(const unsharding *u, size_t scope, gather_part at);

/* Applies the choice: gathers before loops, visible in their bodies; then drops redundant
 * instructions. */
void unshard_apply(unsharding *u);

#endif

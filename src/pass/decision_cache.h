/* What a list of passes decided for a program, on disk: which variant of each was best, of how much memory it had to be told, and
 * whether it was kept. Decisions and not programs: who finds them makes the program anew by them, without a search, and it is
 * held to all that it is held to anyway. So an entry that is wrong can cost time, and nothing else.
 *
 * Entries are in the user's cache (base/cache.h), named by the hash of the program, which graph, plan and shapes make, of the
 * costs, the limit and the list. */
#ifndef SF_PASS_DECISION_CACHE_H
#define SF_PASS_DECISION_CACHE_H

#include "pass/pass.h"

typedef struct sf_pass_decision {
    int variant;
    int64_t limit; /* that it was told of */
    bool kept;
} sf_pass_decision;

typedef struct sf_pass_record {
    sf_pass_decision at[SF_PASSES_MOST];
    uint64_t left; /* hash of the program that came of it */
} sf_pass_record;

/* Of instructions, shapes and places, as they are printed. */
uint64_t sf_pass_cache_hash(const sf_program *program);

/* The name of what is asked. */
uint64_t sf_pass_cache_key(const sf_program *program, const sf_pass_run *run, int64_t limit);

/* False where there is none, or one that does not read as it was written. */
bool sf_pass_cache_read(uint64_t key, int count, sf_pass_record *out);

/* Written beside its place and renamed; where that cannot be, nothing is said. */
void sf_pass_cache_write(uint64_t key, int count, const sf_pass_record *record);

#endif

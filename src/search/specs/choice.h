/* A candidate of the search: a plan specification (sheaf/spec.h), as numbers that moves change.
 *
 * The axes of its mesh have roles, and a role has recipes:
 *
 *     unused   devices that repeat what the others do
 *     pipe     pipeline ranks                  stages, schedule
 *     replica  rows of the batch               replicas: state is sharded over data, and the same for all replicas
 *     data     rows of the batch               dp, zero1, zero2, zero3, zero1-between
 *     seq      tokens                          sequence
 *     expert   experts, and the batch          expert
 *     model    products                        megatron
 */
#ifndef SF_SEARCH_SPECS_CHOICE_H
#define SF_SEARCH_SPECS_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "sheaf/spec.h"

typedef enum sf_axis_role {
    SF_AXIS_UNUSED,
    SF_AXIS_PIPE,
    SF_AXIS_REPLICA,
    SF_AXIS_DATA,
    SF_AXIS_SEQ,
    SF_AXIS_EXPERT,
    SF_AXIS_MODEL,
    SF_AXIS_ROLES
} sf_axis_role;

/* What else is chosen: each by its place in a list of texts. */
typedef enum sf_choice_gene {
    SF_GENE_STATE,
    SF_GENE_RECOMPUTE,
    SF_GENE_SCHEDULE,
    SF_GENE_PASSES,
    SF_GENE_ORDER, /* of axes: which of them stay within a node */
    SF_GENES
} sf_choice_gene;

/* Of state: shards of what is between steps; from that on, passes gather it. */
enum { SF_STATE_BY_PASSES = 4 };

/* All int: compared byte by byte. */
typedef struct sf_choice {
    int axes[SF_AXIS_ROLES]; /* sizes, 1: it is not there */
    int genes[SF_GENES];
    int micro_batches, chunks;
} sf_choice;

int sf_gene_count(sf_choice_gene gene);
const char *sf_gene_text(const sf_choice *choice, sf_choice_gene gene);

bool sf_choice_same(const sf_choice *a, const sf_choice *b);

/* How many devices it is for. */
int sf_choice_devices(const sf_choice *choice);

/* What a person fixed, and choices can say. */
typedef struct sf_choice_rules {
    sf_plan_spec said;
    bool has_mesh;
    int axes[SF_AXIS_ROLES]; /* of that */
    bool is_fixed[SF_GENES];
    int genes[SF_GENES];
    int stages; /* 0: any */
} sf_choice_rules;

/* False where choices cannot say it: a mesh with other axes, a recipe, stages by scopes, a table of tasks. Texts are borrowed. */
bool sf_choice_rules_read(const sf_plan_spec *said, sf_choice_rules *out);

/* The nearest choice that keeps to the rules; false: there is none. */
bool sf_choice_obey(const sf_choice_rules *rules, sf_choice *choice);

/* The specification, with its texts and with what a person fixed. Without stages: what ranks of a stage would do, had they all
 * stages. */
typedef struct sf_choice_text {
    sf_plan_spec spec;
    char mesh[96], recipe[64], stages[16], chunks[16];
} sf_choice_text;
void sf_choice_write(const sf_choice *choice, const sf_choice_rules *rules, bool staged,
                     sf_choice_text *out);

/* Calls `see` for each choice that one move makes of this one: those that rewrite programs by passes, which take several times as
 * long to estimate, or all others. */
typedef void sf_see_choice(void *context, const sf_choice *choice);
void sf_choice_moves(const sf_choice *choice, bool passes, sf_see_choice *see, void *context);

#endif

/* A plan specification (sheaf/spec.h), parsed.
 *
 * The text form of each field is read here and nowhere else:
 *
 *     mesh         data=2,model=4                                   (shard/mesh.h)
 *     stages       auto | N | STAGE,...     STAGE: SCOPE, @GROUPS or SCOPE@GROUPS     GROUPS: all |
 *                  0 | 0-1 | 0+2
 *     schedule     1f1b, ... (plan/pipeline/schedules.h), or the file of a table
 *     recompute    auto | none | text | parts | cheap | layer[:N] | full[:N] | ITEM,...     ITEM:
 *                  SCOPE | #OP+OP
 *     co_shard     auto | none | ITEM,...   ITEM: [RECIPE:]N[@SCOPE]
 *     shard_state  auto | full | between
 *     kernels      best | none | all
 *
 * An error names the field, the text, the character and what was expected there. Pins, recipes and passes stay text: pins are
 * read on the mesh of the plan (plan/pin.h), passes where programs are known (pass/pass.h).
 */
#ifndef SF_PLAN_SPEC_H
#define SF_PLAN_SPEC_H

#include "plan/pipeline/schedule.h"
#include "plan/plan.h"
#include "sheaf/spec.h"

/* A text field that is not said, and "auto", are different in a search: "auto" overrides the text of the step. */
typedef enum sf_stages_kind {
    SF_STAGES_UNSAID = 0,
    SF_STAGES_AUTO,
    SF_STAGES_COUNT, /* so many, found by the planner */
    SF_STAGES_LIST,  /* each has a scope, or groups, or both */
} sf_stages_kind;

typedef struct sf_stages_spec {
    sf_stages_kind kind;
    uint32_t count;
    const char *const *
        scopes; /* [count]: where stages begin, of the first NULL; or NULL: the planner cuts them */
    const uint64_t *groups; /* [count]: a bit for each group of devices; or NULL */
    uint32_t ngroups;       /* that these speak of */
} sf_stages_spec;

typedef enum sf_recompute_kind {
    SF_RECOMPUTE_UNSAID = 0,
    SF_RECOMPUTE_AUTO,
    SF_RECOMPUTE_NONE,
    SF_RECOMPUTE_TEXT,
    SF_RECOMPUTE_PARTS,
    SF_RECOMPUTE_CHEAP,
    SF_RECOMPUTE_LAYER,
    SF_RECOMPUTE_FULL,
    SF_RECOMPUTE_SCOPES,
} sf_recompute_kind;

/* A scope, or ops by their numbers. */
typedef struct sf_recompute_scope {
    const char *pattern; /* or NULL */
    size_t nops;
    const uint32_t *ops;
} sf_recompute_scope;

typedef struct sf_recompute_spec {
    sf_recompute_kind kind;
    uint32_t layers; /* LAYER, FULL: so many together, 1 or more */
    size_t nscopes;
    const sf_recompute_scope *scopes; /* SCOPES */
} sf_recompute_spec;

typedef struct sf_co_shard_spec {
    bool is_said; /* else, and where it is "auto", the planner chooses */
    size_t count; /* 0: none */
    const sf_co_shard *at;
} sf_co_shard_spec;

typedef enum sf_state_split {
    SF_STATE_AS_RECIPE,
    SF_STATE_FULL,    /* all of it is sharded, and gathered when it is used */
    SF_STATE_BETWEEN, /* parameters are sharded between steps, and gathered once in each */
} sf_state_split;

typedef struct sf_spec {
    const sf_mesh *mesh; /* or NULL */
    int npins;
    const char *const *pins;
    int ranks;
    const char *recipe; /* or NULL */
    sf_stages_spec stages;
    const char *schedule;     /* a name; or NULL */
    const sf_schedule *table; /* that was read from a file; then `schedule` is NULL */
    int micro_batches;        /* 0: not said */
    sf_recompute_spec recompute;
    sf_co_shard_spec co_shard;
    sf_state_split shard_state;
    const char *passes; /* or NULL */
    bool has_kernels;
    sf_kernel_choice kernels;
    int64_t memory; /* 0: not said */
} sf_spec;

/* Parses all fields; the result lives in the arena, or is the caller's. SF_EUSAGE. */
sf_status sf_spec_read(const sf_plan_spec *text, sf_arena *arena, sf_diag *diag, sf_spec *out);

/* The text form, from which sf_spec_read makes the same. A table is none: its schedule is NULL. In the arena. */
void sf_spec_print(const sf_spec *spec, sf_arena *arena, sf_plan_spec *out);

/* The same of recompute alone; NULL where it is not said. */
sf_status sf_recompute_read(const char *text, sf_arena *arena, sf_diag *diag,
                            sf_recompute_spec *out);
const char *sf_recompute_text(const sf_recompute_spec *recompute, sf_arena *arena);

/* A text that is known to be right, such as "layer", or NULL. */
sf_recompute_spec sf_recompute_of(const char *text, sf_arena *arena);

/* Sets a field from its text, once the parser has taken it; an error is about `where`. */
sf_status sf_spec_set(sf_plan_spec *spec, const char *field, const char *value, sf_loc where,
                      sf_diag *diag);

/* The name of a field with a text; NULL past the last. */
const char *sf_spec_field(int index);

/* Adds the fields of `more` to `into`; pins of `more` come first. Returns the name of a field that
 * both set, which a caller refuses, or NULL. Lists are in the arena. */
const char *sf_spec_merge(const sf_plan_spec *more, sf_arena *arena, sf_plan_spec *into);

#endif

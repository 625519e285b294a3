/* What the attacker tries: specifications, how they are drawn and changed, and the climb (attack_bench.c). */
#ifndef BENCH_ATTACK_ATTEMPT_H
#define BENCH_ATTACK_ATTEMPT_H

#include "base/str.h"
#include "cluster/cluster.h"
#include "ir/graph.h"
#include "plan/plan.h"
#include "sheaf/sheaf.h"

enum { TEXT = 160, ELITE = 8, SEEN = 1 << 12, MOST_PINS = 6, MOST_CUTS = 64, AXIS = 24 };

/* The parts of a specification that are texts from a list; "" is that nothing is said. */
typedef enum gene { SCHEDULE, MICRO, RECOMPUTE, CHUNKS, STATE, PASSES, KERNELS, GENES } gene;

extern const char *const gene_names[GENES];
extern const char *const choices[GENES][24]; /* NULL after the last */

typedef struct axis {
    char name[AXIS];
    int size;
} axis;

/* Pins come first, then those of the planner's layouts, if it has them, then the recipe. */
typedef struct attempt {
    int naxes;
    axis axes[SF_MAX_AXES];
    char recipe[TEXT];
    bool own;   /* it has the layouts of the returned plan, as pins */
    bool exact; /* it is the returned plan, with other passes */
    int npins;
    char pins[MOST_PINS][TEXT];
    int ncuts; /* scopes that begin stages, by their number; 0: stages are a count */
    int cuts[MOST_CUTS];
    char genes[GENES][TEXT];
    double seconds;
    int64_t memory,
        state; /* bytes of a rank: at its peak, and of parameters and state of the optimizer */
} attempt;

typedef struct texts {
    int count;
    char **at;
} texts;

typedef struct attack {
    const sf_graph *graph;
    const sf_cluster *cluster;
    const sf_plan *plan; /* that the planner returned */
    int ranks;
    int64_t memory;
    uint64_t random;
    texts recipes, patterns, layers, own; /* layers: scopes that are counted, in their order */
    uint64_t seen[SEEN];                  /* hashes of specifications */
    attempt planned;                      /* the specification of the returned plan */
    attempt best[ELITE];
    int count, tried, made, fitted;
} attack;

void list_recipes(attack *a);

/* The names that pins go by, digits hidden; and the scopes whose first part is counted. */
void list_names(attack *a);

void write_mesh(const attempt *t, char out[TEXT]);

/* A number of stages that suits mesh and schedule, or the scopes that begin them; "": none. */
void write_stages(const attack *a, const attempt *t, sf_buf *out);

const char *said(const attempt *t, gene g);

/* Makes the plan and simulates it; false where it cannot be made or does not fit. */
bool try_attempt(attack *a, attempt *t);

void keep(attack *a, const attempt *t);

bool is_new(attack *a, const attempt *t);

/* A share of the memory that the fastest of the recipes takes: no search has a part in that. */
int64_t find_limit(const attack *a, double share);

void run_attack(attack *a, int evaluations, double seconds);

void add_text(texts *t, const char *text);

void free_texts(texts *t);

double processor_seconds(void);

/* "layer_12/attn" becomes "layer_??/attn". */
bool hide_digits(const char *name, char out[TEXT]);

/* The specification of the plan, as near as it can be said: its recipe, or pins of all arguments. */
void take_planned(attack *a, const sf_plan *plan);

#endif

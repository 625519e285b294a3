/* A sketch, for matching and for building: sheaf/sketch.h defines it. */
#ifndef SF_MATCH_SKETCH_H
#define SF_MATCH_SKETCH_H

#include "base/arena.h"
#include "op/op.h"
#include "sheaf/sketch.h"

enum { SF_SKETCH_NODES = 256, SF_SKETCH_OPERANDS = 32 };

typedef enum sf_sketch_kind { SF_SKETCH_INPUT, SF_SKETCH_NUMBER, SF_SKETCH_OP } sf_sketch_kind;

/* An attribute that is said, in its slot. */
typedef struct sf_sketched_attr {
    int slot;
    sf_attrkind kind;
    int count;
    int64_t integer;
    const int64_t *ints;
    const char *text;
} sf_sketched_attr;

typedef struct sf_sketch_node {
    sf_sketch_kind kind;
    int input; /* INPUT: which */
    double number;
    const sf_opdef *def;
    int noperands;
    const int *operands;
    int nattrs;
    const sf_sketched_attr *attrs;
    int rank; /* -1: not said */
    const int64_t *dims;
    bool has_dtype;
    sf_dtype dtype;
} sf_sketch_node;

struct sf_sketch {
    sf_arena arena; /* the sketch is in it */
    int count, ninputs;
    sf_sketch_node nodes[SF_SKETCH_NODES];
    int nresults; /* 0: not returned yet */
    int results[SF_SKETCH_OPERANDS];
};

/* The public functions of these names, without a guard. An op that exists already, on the same
 * operands, is reused: *number is its number. `like` has the given parts of the type. */
sf_status sf_sketch_add_op(sf_sketch *sketch, const char *op, int noperands, const int *operands,
                           int nattrs, const sf_sketch_attr *const *attrs,
                           const sf_sketch_node *like, sf_diag *diag, int *number);
sf_status sf_sketch_add(sf_sketch *sketch, const sf_sketch_node *node, sf_diag *diag);
sf_status sf_sketch_end(sf_sketch *sketch, int count, const int *results, sf_diag *diag);

#endif

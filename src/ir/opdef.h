/* What an op is, said once.
 *
 * A definition answers every question the library has about an op: how it is written, what its
 * results are, how it splits, what it costs, and what it computes. Parsers, printer, planner,
 * evaluator and tests all read it. The table of definitions is op/ops.def.
 */
#ifndef SF_IR_OPDEF_H
#define SF_IR_OPDEF_H

#include "ir/factor.h"
#include "ir/graph.h"
#include "ir/tensor.h"

/* How StableHLO's pretty form of the op is read. Every op also has the generic form
 * "dialect.name"(operands) <{attributes}> ({regions}) : types. */
typedef enum sf_form {
    SF_FORM_GENERIC,  /* only the generic form */
    SF_FORM_OPERANDS, /* op %a, %b, key = value : types */
    SF_FORM_CONSTANT, /* dense<...> : type */
    SF_FORM_COMPARE,  /* LT, %a, %b, FLOAT : types */
    SF_FORM_DOT,      /* %a, %b, batching_dims = [..] x [..], contracting_dims = ... : types */
    SF_FORM_CONV,     /* (%a, %b) dim_numbers = ..., window = {...} {...} : types */
    SF_FORM_SLICE,    /* %a [0:4, 0:8:2] : types */
    SF_FORM_REDUCE,   /* (%a init: %b) applies op across dimensions = [..] : types */
    SF_FORM_WHILE,    /* (%x = %a, ...) : types cond { } do { } */
    SF_FORM_CALL,     /* @target(%a, ...) {...} : types */
    SF_FORM_PAREN,    /* op(%a, k = 2) : types */
} sf_form;

/* What an op's regions are to it. Operands behind those of its own are *given*: each region has them as its last
 * arguments, and they are what they are in every turn and branch. Import gives regions all that they would see of
 * the blocks around them, constants apart, which they have of their own; text has no such operands, and print
 * leaves them out. */
typedef enum sf_control {
    SF_CONTROL_NONE,
    SF_CONTROL_LOOP, /* condition and body; as many operands of its own as it has results, which it carries */
    SF_CONTROL_BRANCH, /* one operand of its own, which says the region */
} sf_control;

/* What an absent attribute stands for. Import drops an attribute that says no more than this, so that
 * equal ops have equal attributes. */
typedef enum sf_absent {
    SF_ABSENT_EMPTY, /* an empty list; zero or false */
    SF_ABSENT_ZEROS, /* a list of zeros; zero */
    SF_ABSENT_ONES,  /* a list of ones; one */
} sf_absent;

/* How an attribute is written in the generic form. */
typedef enum sf_attrtext {
    SF_AS_DEFAULT, /* 3 : i64, array<i64: 1, 2>, a string or an enumerator */
    SF_AS_BOOL,    /* true */
    SF_AS_I32,     /* 3 : i32 */
    SF_AS_F32,     /* DENSE: 0.001 : f32 */
    SF_AS_BOOLS,   /* array<i1: true, false> */
    SF_AS_PAIRS,   /* dense<[[1, 2], [3, 4]]> : tensor<2x2xi64> */
    SF_AS_ENUMS,   /* "A,B" as [#prefix A>, #prefix B>] */
    SF_AS_SYMBOL,  /* @name */
    SF_AS_CONFIG,  /* a dictionary where the text is one and api_version is 4, else a string */
} sf_attrtext;

/* One attribute of an op, in the order in which nodes store them.
 *
 * Ops with a combining body (reduce, reduce_window, scatter, select_and_scatter) have a derived INT
 * slot named "body": an sf_monoid. Import recognises the region and sets it; the node then has no
 * region, and print writes the region again. A body that is no known monoid stays a region, and the
 * slot is absent. */
typedef struct sf_attrdef {
    const char *name;  /* in the generic form */
    const char *group; /* the struct attribute that holds it there ("dimension_numbers"), or NULL */
    const char *key;   /* in the pretty form, where that differs, or NULL */
    const char *hlo;   /* in HLO text, where that differs, or NULL */
    sf_attrkind kind;
    const char *prefix; /* TEXT: of the enumeration ("#stablehlo<precision "), NULL for a string */
    sf_attrtext text;
    bool required;
    sf_absent absent; /* where it is not required */
    bool always;      /* MLIR insists on this number even where it is the default */
    bool derived;     /* not in any text: import sets it, print turns it back (see `body` below) */
    bool note;        /* derived, and says nothing about what is computed: not in the hash */
} sf_attrdef;

/* An op applied to operands of known types. Inference, factors and costs need no more than this; it
 * exists without a node, so a question can be asked before anything is built. */
typedef struct sf_op {
    const sf_opdef *def;
    int noperands, nresults, nregions;
    const sf_type *const *in;    /* types of the operands, whole */
    const sf_type *const *out;   /* types of the results; before inference, as declared in the text,
                                    or NULL */
    const sf_attr *const *attrs; /* def->nattrs */
    sf_block *const *regions;
    const sf_graph *graph; /* of the regions */
    sf_pool *pool;
    sf_loc loc;
} sf_op;

typedef struct sf_eval sf_eval;

/* How much time an op takes for what it makes: whether to recompute it, and where it may run twice, goes by this. */
typedef enum sf_cost_class {
    SF_COST_PASS,    /* a pass over operands and results: cheap to recompute */
    SF_COST_LOOKUP,  /* a pass that goes by indices */
    SF_COST_RANDOM,  /* a pass that draws random bits: each rank draws those of the whole tensor */
    SF_COST_PRODUCT, /* heavy: a matrix product or a convolution */
    SF_COST_HEAVY,   /* other heavy ops, and those that run regions */
} sf_cost_class;

/* "%a: tensor<3x4xf32>", "%r = stablehlo.negate %a : tensor<3x4xf32>", "%r", "tensor<3x4xf32>". */
typedef struct sf_op_sample {
    const char *arguments, *use; /* use NULL: no sample */
    const char *results, *types; /* values, and the types of these */
} sf_op_sample;

struct sf_opdef {
    const char *name;    /* "dot_general" */
    const char *dialect; /* "stablehlo" or "chlo" */
    const char *hlo;     /* "dot", or NULL where HLO has no such op */
    const char *doc;     /* one sentence for docs/reference/ops.md */
    int id;              /* SF_OP_... of the row in ops.def */
    sf_form form;
    int min_operands, max_operands; /* of its own; max -1: any number */
    int nresults;                   /* -1: as declared */
    int nregions;                   /* most it may have */
    int effect; /* the slot, counted from 1, of the attribute that says whether it does something
                   besides its results: then it is kept, and stays in order, though nobody uses
                   them. 0: it never does */
    const sf_attrdef *attrs;
    int nattrs;
    const char *group; /* the mnemonic of the struct attribute: "#stablehlo.gather" */
    sf_control control;
    bool commutative; /* of two operands, whose order does not matter */
    bool declared;    /* the type of the result does not follow from the operand and is always
                          written out */
    /* The slot, counted from 1, of the attribute that asks for more of a product than a device may round its operands
     * to; 0: none. */
    int precision;
    bool positional; /* what it computes of an element depends on where that is, or is not known */
    bool looks_up;   /* it reads only some places of its first operand */
    /* Its results are its first operands with some places changed: no copy where nobody else reads these. */
    bool updates;
    int collective; /* the sf_collective that it is, counted from 1; 0: none */
    sf_cost_class cost;

    /* Checks operands and attributes and gives the types of the results. Where the text declares
     * them, op->out holds the declaration: it is an input only for ops whose results do not follow
     * from their operands (iota, reshape, convert, ...); the caller compares otherwise. */
    sf_status (*infer)(const sf_op *op, const sf_type **out, sf_diag *diag);

    /* Adds factors and walks every dimension of every tensor. */
    void (*factors)(const sf_op *op, sf_factoring *out);

    /* For walks with `halo`: the range [*need_first, *need_end) of dimension `dim` of tensor
     * `tensor` that the piece [first, end) of `factor` needs. Clipped to the tensor by the caller. */
    void (*halo)(const sf_op *op, int factor, int tensor, int dim, int64_t first, int64_t end,
                 int64_t *need_first, int64_t *need_end);

    /* Sets of operands (bit masks) such that, when exactly these are partial sums, the result is a
     * partial sum. Returns how many sets; at most SF_MAX_LINEAR. NULL: none. */
    int (*linear)(const sf_op *op, uint32_t masks[]);

    /* Rewrites the attributes that name sizes for an op on pieces, whose types are given, operands
     * first: the op on the pieces must be the piece of the op. NULL: they stay as they are. */
    void (*local)(const sf_op *op, const sf_type *const *pieces, const sf_attr **attrs);

    /* Floating-point (or integer) operations, and bytes read and written. NULL: no operations; every
     * operand read and every result written once. */
    double (*flops)(const sf_op *op);
    double (*bytes)(const sf_op *op);

    /* The oracle kernel: plain and exact. Works on pieces: `op` has the whole types, `in` and `out`
     * hold the parts of them that their spans say, and the kernel computes exactly the part of the
     * result that `out` asks for, from the parts it is given (for a reduce factor: the partial
     * result over the range it holds). out[i].data is zeroed. */
    sf_status (*eval)(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out);

    /* Bytes that `eval` takes beside operands and results. NULL: tables of places along each of
     * their dimensions (sf_scratch_places). */
    double (*scratch)(const sf_op *op);

    /* One use in a step, for docs/reference/ops.md and its tests. Element-wise ops have none: theirs follows. */
    sf_op_sample sample;
};

enum { SF_MAX_LINEAR = 4 };

/* How many operands are the op's own; the others are given to its regions. */
static inline uint32_t sf_own_operands(const sf_node *node)
{
    switch (node->def->control) {
    case SF_CONTROL_LOOP:
        return node->nresults;
    case SF_CONTROL_BRANCH:
        return 1;
    case SF_CONTROL_NONE:
        break;
    }
    return node->noperands;
}

/* The first operand that enters the regions, as their argument 0; those behind it follow. The index of branches does
 * not. */
static inline uint32_t sf_first_entering(const sf_node *node)
{
    return node->def->control == SF_CONTROL_BRANCH ? 1 : 0;
}

/* The attribute in a slot. The INT form gives `otherwise` when it is absent. */
static inline int64_t sf_op_int(const sf_op *op, int slot, int64_t otherwise)
{
    return op->attrs[slot] ? op->attrs[slot]->integer : otherwise;
}

typedef struct sf_ints {
    int count;
    const int64_t *at;
} sf_ints;

static inline sf_ints sf_op_ints(const sf_op *op, int slot)
{
    const sf_attr *attr = op->attrs[slot];
    return attr ? (sf_ints){attr->count, attr->ints} : (sf_ints){0, NULL};
}

/* "" when absent. */
static inline const char *sf_op_text(const sf_op *op, int slot)
{
    return op->attrs[slot] ? op->attrs[slot]->text : "";
}

/* A node seen as an applied op. `types` has room for the operands and then the results. */
sf_op sf_op_of(const sf_graph *graph, const sf_node *node, const sf_type **types);

/* The factors of an op; walks live in the arena. */
void sf_op_factors(const sf_op *op, sf_arena *arena, sf_factoring *out);

double sf_op_flops(const sf_op *op);
double sf_op_bytes(const sf_op *op);

/* The node, or one in its regions, does something besides its results. */
bool sf_node_has_effect(const sf_graph *graph, const sf_node *node);

/* Which slot of the definition has this name; -1 when none. */
int sf_attr_slot(const sf_opdef *def, sf_str name);

#endif

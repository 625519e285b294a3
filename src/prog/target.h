/* A target: the abilities and thresholds of an engine. Lowering reads it; the engine does not while
 * a step runs. */
#ifndef SF_PROG_TARGET_H
#define SF_PROG_TARGET_H

#include "ir/opdef.h"

struct sf_program;
struct sf_inst;
struct sf_loop;

/* Attention that was found (prog/attention/find_attention.h). */
typedef struct sf_attending {
    sf_dtype dtype;
    int64_t queries, keys, depth;
    int64_t offset;
    bool causal; /* a place sees those up to its own, and `offset` more */
    bool rounds; /* products of f32 may be rounded */
    bool asked;  /* somebody wants the kernel where there is one, whether it is better or not */
} sf_attending;

typedef struct sf_target {
    const char *name;

    /* Loops: the most nodes in one, and the longest row that a fold can hold as a whole. */
    size_t most_nodes;
    int64_t longest_row;

    /* A loop recomputes a value of another, rather than that both store and load it, if that takes
     * at most this many ops, and this many functions like exp. At most SF_MOST_RECOMPUTED. */
    int most_recomputed, most_functions;

    /* The same of functions where somebody wants all that is one loop to be one, whether it is better or not: less is kept. */
    int asked_functions;

    /* A pass over memory takes longer than the arithmetic and indexing that replace it: loops reach
     * across reshapes, make halves of their results, and use one read for several sums. */
    bool few_passes;

    /* Loops read padded tensors through windows (prog/loop.h), so that nobody stores them. */
    bool has_windows;

    /* Loops that touch so many bytes at most are brought together, to be launched as one (prog/fused_launch.h); 0: none are. */
    int64_t small_bytes;

    /* A loop becomes the epilogue of a product, block by block, if it has this many columns and, if
     * it needs whole rows, this many of these. */
    int64_t epilogue_columns, epilogue_rows;

    /* Or else, if its library does so: whether the loop, which is that of `inst`, is something that the product can do. NULL: not by
     * a library. */
    bool (*follows)(const struct sf_inst *product, const struct sf_inst *inst,
                    const struct sf_loop *loop);

    /* The result of a collective may be used when this many others, of this many bytes, have been
     * started after it: until then there is enough in flight, and enough to compute. */
    uint32_t in_flight;
    int64_t flight_bytes;

    /* Loops run as machine code, where somebody wants that. */
    bool compiles;

    /* Products of f32 may round their factors, whether or not who lowers says so. */
    bool rounds;

    /* Factors are rounded to the types that a product's algorithm asks for. Others are as exact as they are. */
    bool rounds_as_asked;

    /* A product of f32 that is rounded is slow if neither factor has contiguous sums: one of them
     * is transposed before, from this many flops on, and this many more for each of its elements;
     * 0: none is. */
    double transpose_flops, transpose_element;

    /* A library multiplies matrices whose rows or columns lie side by side, and batches of them that are one stride apart. Factors
     * that lie otherwise are copied before: in place of any but these, and of more calls, each of which takes as long as a copy of so
     * many bytes; 0: strides do not matter. */
    double call_bytes;

    /* Buffers of the arena are aligned to this, a power of two. */
    int64_t align;

    /* Whether there are products, and convolutions, of operands of the first two types with a result of the
     * third; the others are computed as any other op is. */
    bool (*multiplies)(sf_dtype a, sf_dtype b, sf_dtype c);

    /* Whether factors of that type must have contiguous sums, and are no images; NULL: no type
     * must. Other layouts are transposed by a copy first. */
    bool (*transposes)(sf_dtype dtype);

    /* The engine's kernel for an op that is no loop, product or convolution, on contiguous tensors, and the
     * variant of it, which are handed to the engine with the instruction; NULL: that of the op table. */
    const void *(*kernel)(const sf_op *op, int64_t *variant);

    /* Whether it has kernels for such attention (op/attention.h), and they are better than products and loops; NULL: it has
     * none. */
    bool (*attends)(const sf_attending *what);

    /* Bytes that the engine reserves beside the program, with so many threads: memory that kernels work in. */
    int64_t (*scratch)(const struct sf_program *program, int threads);
} sf_target;

enum { SF_MOST_RECOMPUTED = 32 };

#endif

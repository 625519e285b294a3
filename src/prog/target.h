/* A target: what an engine can do, and where its thresholds are. Lowering asks it; nobody asks while a step
 * runs. */
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

    /* A loop computes a value of another again, rather than that both store and load it, if that takes so many
     * ops at most, and so many of them functions like exp. At most SF_MOST_RECOMPUTED. */
    int most_recomputed, most_functions;

    /* The same of functions where somebody wants all that is one loop to be one, whether it is better or not: less is kept. */
    int asked_functions;

    /* A pass over memory takes longer than what a loop could compute and index meanwhile: loops reach across reshapes, make
     * halves of what they store, and read what they have read for several sums. */
    bool few_passes;

    /* Loops that touch so many bytes at most are brought together, to be launched as one (prog/fused_launch.h); 0: none are. */
    int64_t small_bytes;

    /* A loop runs behind a product, block by block, if it has so many columns and, where it needs whole rows, so
     * many of these. */
    int64_t epilogue_columns, epilogue_rows;

    /* Or else, if its library does so: whether the loop, which is that of `inst`, is something that the product can do. NULL: not by
     * a library. */
    bool (*follows)(const struct sf_inst *product, const struct sf_inst *inst,
                    const struct sf_loop *loop);

    /* What a collective makes may be asked for when so many others, of so many bytes, have been started after it:
     * until then there is enough on the way, and enough to compute. */
    uint32_t in_flight;
    int64_t flight_bytes;

    /* Loops run as machine code, where somebody wants that. */
    bool compiles;

    /* Products of f32 may round their factors, whether or not who lowers says so. */
    bool rounds;

    /* A product of f32 that is rounded is slow where both factors are summed over what lies apart: one of them is turned before,
     * from so many flops on, and so many more for each of its elements; 0: none is. */
    double transpose_flops, transpose_element;

    /* Buffers of the arena stand at multiples of this, a power of two. */
    int64_t align;

    /* Whether there are products, and convolutions, of operands of the first two types with a result of the
     * third; the others are computed as any other op is. */
    bool (*multiplies)(sf_dtype a, sf_dtype b, sf_dtype c);

    /* Whether factors of that type have to have what is summed side by side, and are no images; NULL: there are none such. Others are
     * turned by a copy first. */
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

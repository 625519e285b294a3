/* The state of a loop's text, which the shapes of run/text/text_loop.c share. */
#ifndef SF_RUN_TEXT_LOOP_TEXT_H
#define SF_RUN_TEXT_LOOP_TEXT_H

#include "run/text/scalar.h"

enum {
    THREADS = 256,
    MOST_ROW_THREADS = 512,
    MULTIPROCESSORS = 132,             /* of a large GPU */
    MANY_BLOCKS = 4 * MULTIPROCESSORS, /* that keep all of it at work */
    /* Threads of a multiprocessor that gather over rows. There are as many blocks as it has at a
     * time: were there more, the last ones would leave most of it idle, and fewer leave each thread
     * the registers that it needs. */
    GATHERING_THREADS = 768,
    MOST_ABREAST = 8,
    SHORT_ROW = 16, /* that a thread takes alone */
    ENOUGH = 8192,  /* threads, before each takes several elements */
    MOST_VECTOR = 8,
    MOST_HELD = 16, /* sums of columns that a thread keeps to itself */
    FINISH_COLUMNS = 8,
    LEAST_CHUNK = 16, /* rows of a thread for which another kernel is worth its while */
    MOST_THREADS = 1024,
    WARP = 32,
};

typedef enum shape { EACH, CROSSED, ROWS, TURNED, COLUMNS } shape;

typedef struct emitter {
    sf_writer *w;
    const sf_inst *inst;
    const sf_loop *loop;
    sf_buf *out;
    shape shape;
    int vector;            /* elements that a thread has beside each other, */
    int along;             /* in this dimension of the domain */
    int across;            /* of a crossed loop: the dimension in which it reads neighbours */
    const char *guard;     /* of stores of elements, or NULL */
    const char *index;     /* type of indices */
    uint32_t *operands[3]; /* by step: the step that makes a, b, c */
    int *level;            /* by step: how many folds must be done before it */
    bool *is_one;          /* by step: one variable, not one for each element of the vector */
    bool *is_bf16;         /* by step: its result is a bf16 number, whatever the class */
    bool *wanted;          /* by step: of the part that is written */
    bool *
        is_ready; /* by step: it is the same for all that the part goes over, and was loaded before */
    int64_t groups;     /* blocks that gather the same columns, */
    int64_t all_groups; /* and those that gather anything */
    int64_t held;       /* vectors of a row that a thread has, where it keeps their sums */
    int64_t *partial;   /* by step: scratch parameter of a GATHER */
    bool *in_room;      /* by step: its value is in `roomN` for each column c of the row */
    bool *in_tile;      /* by step: its load comes through a tile */
    int tile_pitch;     /* elements from one row of a tile to the next */
    int abreast; /* rows that a block has at a time, a warp each; 0: one, with all of its threads */
    sf_arena scratch;
} emitter;

/* A power of two, no less than x or `most`. */
static inline int64_t text_power_above(int64_t x, int64_t most)
{
    int64_t power = 1;
    while (power < x && power < most)
        power *= 2;
    return power;
}

#define PUT(...) sf_buf_printf(e->out, __VA_ARGS__)

extern const char *const text_classes[]; /* by class of registers */

/* Makes the arrays of an emitter, from its loop, but for `vector`; and the dependencies of its
 * steps. */
void text_begin(emitter *e);
void text_look(emitter *e);

int text_operand_count(const sf_loop_step *step);
int text_choose_vector(const emitter *e, int64_t threads);
int64_t text_farthest(const sf_loop *loop);
int text_out_param(const emitter *e, const sf_access *access);
void text_offset(emitter *e, const sf_access *access); /* of the element at hand */
void text_inside(emitter *e, const sf_access *access);
void text_name(emitter *e, const char *name); /* in small letters */
void text_constant(emitter *e, const sf_loop_step *step);
void text_load(emitter *e, uint32_t index);
void text_computation(emitter *e, uint32_t index);
bool text_is_row_step(const emitter *e, uint32_t index);
const char *text_combine_name(const sf_loop_step *step, char *text, size_t size);
void text_identity(emitter *e, const sf_loop_step *step);
void text_combination(emitter *e, uint32_t index, const char *variable, bool spread);
void text_want(emitter *e, uint32_t step);
void text_want_nothing(emitter *e);
void text_wanted(emitter *e, bool rows_too);
void text_row_loads(emitter *e);
void text_element_loads(emitter *e);
void text_elements(emitter *e, int level);
void text_stores(emitter *e);
void text_indices(emitter *e, const char *from, int first, int end);
void text_want_ends(emitter *e);
void text_row_stores(emitter *e, const char *condition);
bool text_is_gather(const emitter *e, uint32_t index);
void text_gathered(emitter *e, uint32_t index, const char *at, const char *value);
void text_add_partials(emitter *e);
void text_finish_gathers(emitter *e, const sf_param *params);
void text_declare_sums(emitter *e);
void text_scalar_gathers(emitter *e);
void text_row_steps(emitter *e, int level);
void text_begin_folds(emitter *e,
                      int level); /* before the loop over columns c, that of this level */
void text_fold_column(emitter *e, int level); /* the inside of it, and its end */
void text_find_pairs(emitter *e);
void text_halves(emitter *e, uint32_t index);  /* floats of the pairs of a step, */
void text_joined(emitter *e, uint32_t index);  /* or pairs of its floats, where it makes bf16 */
void text_rounded(emitter *e, uint32_t index); /* a ROUND to bf16 */
void text_stored_pairs(emitter *e, uint32_t index); /* a STORE of bf16 */
void text_each_element(emitter *e);
int text_crossed_dim(const sf_loop *loop); /* -1: it is not crossed */
void text_crossed(emitter *e);
void text_rows(emitter *e);
bool text_is_transposed(const sf_loop *loop);
void text_transposed(emitter *e);

#endif

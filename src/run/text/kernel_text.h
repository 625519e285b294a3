/* Kernels as text: CUDA C that is compiled when an engine is opened.
 *
 * The text of a kernel holds every size and stride as a number; the addresses of tensors are its
 * parameters. So loops that compute the same, layer after layer, have the same text, and equal
 * texts are one kernel:
 *
 *     module      the kernels of a program, those of bodies too, each once
 *       code      the launches of an instruction, in order
 *         launch  a kernel, blocks and threads, and its parameters
 *       fused launch  launches of several instructions as one */
#ifndef SF_RUN_TEXT_KERNEL_TEXT_H
#define SF_RUN_TEXT_KERNEL_TEXT_H

#include "base/intern.h"
#include "prog/program.h"

/* A plain file of run/text/cu/, carried by the library. */
typedef struct sf_text_file {
    const unsigned char *bytes;
    size_t size;
} sf_text_file;
extern const sf_text_file sf_text_base, sf_text_vector, sf_text_words, sf_text_key_sort,
    sf_text_attention, sf_text_attend, sf_text_attend_groups, sf_text_attend_turn;

typedef struct sf_kernel {
    const char *name; /* from its text */
    const char *text; /* the function with its name, without its prelude, */
    const char *body; /* and its body in braces */
    uint32_t ntable;  /* pointers in a table, which is its one parameter; 0: it has these: */
    int bound;        /* threads that it must run with; 0: few enough to run in any case */
    uint32_t nparams;
    const bool *is_number; /* by parameter: an integer rather than a pointer */
    int shared; /* bytes of shared memory, beside those that its text declares, on GPUs with groups of warps */
} sf_kernel;

/* What some of a module's kernels need, beside cu/kernel_base.cu. */
typedef struct sf_kernel_needs {
    bool words;     /* cu/kernel_words.cu */
    bool key_sort;  /* cu/key_sort.cu */
    bool attention; /* cu/attention_entry.cu */
    bool vector;    /* functions of run/vec/math.h, which compilers make vectors of */
    bool checks;    /* of each access to memory: run/text/kernel_check.h */
} sf_kernel_needs;

/* A zeroed one is empty. */
typedef struct sf_kernels {
    sf_arena arena;
    sf_interner names;
    sf_kernel **kernels;
    size_t nkernels, capacity;
    sf_kernel_needs needs;
} sf_kernels;

typedef enum sf_param_kind {
    SF_PARAM_IN,      /* view `index` of the instruction's `in` */
    SF_PARAM_OUT,     /* and of `out` */
    SF_PARAM_SCRATCH, /* `value` bytes into the scratch memory */
    SF_PARAM_NUMBER,  /* `value` itself */
    SF_PARAM_FAULTS,  /* where a kernel that checks notes what it found */
    /* Of a tile (run/text/loop_tile.c), by step `index` of the loop: */
    SF_PARAM_SUM,  /* where a GATHER grows */
    SF_PARAM_ROOM, /* room `value`, for a register of the loop, */
    SF_PARAM_FOLD, /* and the function that combines its columns */
    SF_PARAM_PLACE /* a number: the first row, how many, the first column, how many */
} sf_param_kind;

typedef struct sf_param {
    sf_param_kind kind;
    uint32_t index;
    int64_t value;
} sf_param;

typedef struct sf_launch {
    const sf_kernel *kernel;
    int64_t blocks;
    int threads;
    const sf_param *params;
} sf_launch;

/* Scratch memory for one purpose. */
typedef struct sf_scratch_room {
    int64_t at, bytes;
} sf_scratch_room;

typedef struct sf_code {
    sf_launch *launches;
    size_t nlaunches, capacity;
    int64_t scratch;        /* bytes that its kernels work in, */
    sf_scratch_room *rooms; /* and what they are for */
    size_t nrooms, room_capacity;
    size_t before; /* launches before the call of a library, */
    sf_param product
        [3]; /* and its arguments: factors and result, or the images of run/text/text_conv.h */
} sf_code;

/* Instructions of which none touches another's results (prog/fused_launch.h), launched as one:
 * blocks are divided among them, and the table has the parameters of each, one after the other. */
typedef struct sf_fused_launch {
    sf_launch launch; /* of all; its parameter follows from the others */
    uint32_t count;
    const uint32_t
        *members; /* instructions, by their numbers in the given list; the first is first there */
    const sf_launch *launches; /* and theirs */
} sf_fused_launch;

/* One kernel being written: its parameters are called p0, p1, ... in the order in which they are added. */
typedef struct sf_writer {
    sf_kernels *module;
    sf_code *code;
    const sf_inst *inst; /* that it is for; NULL: several */
    sf_buf body;
    sf_param *params;
    size_t nparams, param_capacity;
    sf_arena *arena; /* of the code */
    uint32_t ntable; /* of the kernel, as in sf_kernel */
    int shared;      /* of the kernel, as in sf_kernel; its body says it, too */
    int together;    /* wanted blocks of it on a multiprocessor at a time; 0: any */
} sf_writer;

/* Adds a parameter; returns its number. */
int sf_write_param(sf_writer *w, sf_param param);

/* All views of an instruction: `in` as p0, p1, ..., then `out`. */
void sf_write_views(sf_writer *w, const sf_inst *inst);

/* Room in the scratch memory, for this instruction; returns where it begins. */
int64_t sf_write_scratch(sf_writer *w, int64_t bytes);

/* The body becomes a kernel, unless the module has it, and a launch of it with the parameters is
 * added to the code. Body and parameters are then empty. `words`: it needs cu/kernel_words.cu. */
void sf_write_launch(sf_writer *w, int64_t blocks, int threads, bool words);

/* One more launch of the last kernel, with these parameters. */
void sf_write_again(sf_writer *w, int64_t blocks, int threads, const sf_param *params);

/* The whole text of some kernels of a module. `host`: with a function of an array of arguments for each. */
void sf_kernels_text(const sf_kernels *module, size_t first, size_t count, bool host, sf_buf *out);

void sf_kernels_free(sf_kernels *module);

/* The arguments of a library's product, and the launches around it. */
void sf_write_library(sf_writer *w, const sf_inst *inst);

/* The launches of loops (run/text/text_loop.c), products and convolutions (text_product.c) and
 * calls (library_kernel.c). */
void sf_write_loop(sf_writer *w, const sf_inst *inst);
void sf_write_product(sf_writer *w, const sf_inst *inst);

/* A loop as a function of a tile, for a processor: run/cpu/compiled_loops.h. Returns how many rooms it has. */
int sf_write_tile(sf_writer *w, const sf_inst *inst);

/* How many that will be. */
int sf_tile_rooms(const sf_loop *loop);

/* Adds up the parts of ranks of one process: sources in their order, the result and a number of
 * elements. */
enum { SF_MOST_FOLDED = 64 };
void sf_write_exchange(sf_writer *w, const sf_inst *inst);

/* False where the engine has no kernel for the call: a body of a kind that cannot be compiled. */
bool sf_write_call(sf_writer *w, const sf_inst *inst);

/* The code of an instruction; `library`: a library runs its product. *unknown is NULL, or names the
 * op without a kernel. */
void sf_write_inst(sf_kernels *module, sf_arena *arena, const sf_inst *inst, bool library,
                   sf_code *code, const sf_inst **unknown);

/* Fused launches of instructions, by their code: as few as possible. Returns how many of these have
 * several; instructions in none are launched alone. */
size_t sf_write_fused_launches(sf_kernels *module, sf_arena *arena, sf_code *const *codes,
                               uint32_t count, sf_fused_launch **out);

/* All kernels of a program, those of bodies too; returns the most scratch memory that an instruction works in. */
int64_t sf_write_program(sf_kernels *module, const sf_program *program, bool library);

/* The most scratch memory that an instruction of a program, or of a body, works in. */
int64_t sf_cuda_scratch(const sf_program *program);

/* Blocks of 256 threads for so many elements; kernels go on until all are done. */
int64_t sf_blocks_for(int64_t count, int threads);

/* "int" where all of these offsets are small enough, else "s64". */
const char *sf_index_type(int64_t most);

#endif

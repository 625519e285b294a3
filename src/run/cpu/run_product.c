#include "run/cpu/run_product.h"

#include "run/conv/conv.h"
#include "run/gemm/gemm.h"

static sf_gemm gemm_of(const sf_inst *inst, const sf_pointers *at, char *scratch)
{
    const sf_dot *dot = inst->dot;
    return (sf_gemm){
        .batches = 1,
        .m = dot->m,
        .n = dot->n,
        .k = dot->k,
        .a = {at->in ? at->in[0] : NULL, inst->in[0].dtype, 0, dot->a_row, dot->a_column},
        .b = {at->in ? at->in[1] : NULL, inst->in[1].dtype, 0, dot->b_row, dot->b_column},
        .c = {at->out ? at->out[0] : NULL, inst->out[0].dtype, 0, dot->c_row, dot->c_column},
        .scratch = scratch,
    };
}

static void run_dot(const sf_inst *inst, const sf_pointers *at, sf_epilogue *epilogue,
                    char *scratch, sf_threads *threads)
{
    const sf_dot *dot = inst->dot;
    if (sf_view_count(&inst->out[0]) == 0) /* a walk over no batches would still begin */
        return;
    sf_gemm gemm = gemm_of(inst, at, scratch);
    gemm.epilogue = epilogue;
    int outer = sf_dot_inner_batches(dot, &gemm.batches);
    if (dot->nbatch > 0) {
        gemm.a.batch = dot->a_batch[dot->nbatch - 1];
        gemm.b.batch = dot->b_batch[dot->nbatch - 1];
        gemm.c.batch = dot->c_batch[dot->nbatch - 1];
    }
    int64_t index[SF_MAX_RANK] = {0};
    int64_t a_width = sf_dtype_get(gemm.a.dtype)->bytes,
            b_width = sf_dtype_get(gemm.b.dtype)->bytes;
    int64_t c_width = sf_dtype_get(gemm.c.dtype)->bytes;
    do {
        int64_t x = 0, y = 0, z = 0;
        for (int d = 0; d < outer; d++) {
            x += index[d] * dot->a_batch[d];
            y += index[d] * dot->b_batch[d];
            z += index[d] * dot->c_batch[d];
        }
        gemm.a.data = at->in[0] + x * a_width;
        gemm.b.data = at->in[1] + y * b_width;
        gemm.c.data = at->out[0] + z * c_width;
        if (epilogue)
            epilogue->first = z / sf_dot_columns(dot);
        sf_gemm_run(&gemm, threads);
    } while (sf_next_index(outer, dot->batch, index));
}

static void run_conv(const sf_inst *inst, const sf_pointers *at, sf_epilogue *epilogue,
                     char *scratch, sf_threads *threads)
{
    sf_conv_job job = {.g = *inst->conv,
                       .lhs = at->in[0],
                       .rhs = at->in[1],
                       .out = at->out[0],
                       .epilogue = epilogue,
                       .scratch = scratch};
    sf_conv_run(&job, threads);
}

int64_t sf_product_scratch(const sf_inst *inst, int threads)
{
    int64_t bytes;
    if (inst->kind == SF_INST_CONV) {
        sf_conv_job job = {.g = *inst->conv};
        bytes = sf_conv_scratch(&job, threads);
    } else {
        sf_gemm gemm = gemm_of(inst, &(sf_pointers){0}, NULL);
        sf_dot_inner_batches(inst->dot, &gemm.batches);
        bytes = sf_gemm_scratch(&gemm, threads);
    }
    return (bytes + 63) / 64 * 64;
}

static void run_piece(const void *context, int part, int64_t row, int64_t rows, int64_t column,
                      int64_t columns)
{
    sf_loop_piece(context, part, row, rows, column, columns);
}

void sf_product_run(const sf_inst *inst, const struct sf_native *native, const sf_pointers *at,
                    char *scratch, sf_threads *threads)
{
    enum { STEP_WORK = 8 }; /* a step of a loop costs as much as some multiplications */
    void (*multiply)(const sf_inst *, const sf_pointers *, sf_epilogue *, char *, sf_threads *) =
        inst->kind == SF_INST_DOT ? run_dot : run_conv;
    if (!inst->loop) {
        multiply(inst, at, NULL, scratch, threads);
        return;
    }
    int parts = sf_threads_count(threads);
    sf_loop_job job =
        sf_loop_begin(inst->loop, native, *at, scratch + sf_product_scratch(inst, parts), parts);
    sf_epilogue epilogue = {.run = run_piece,
                            .context = &job,
                            .whole_rows = sf_loop_wants_rows(inst->loop),
                            .work = STEP_WORK * inst->loop->nsteps};
    multiply(inst, at, &epilogue, scratch, threads);
    sf_loop_end(&job);
}

#include "run/conv/conv.h"

#include <string.h>

#include "run/conv/conv_as_gemm.h"
#include "run/gemm/gemm.h"
#include "run/gemm/gemm_store.h"

/* Rows that follow each other in this dimension see elements that follow each other in memory. */
static bool is_run_of_rows(const sf_conv_job *c, const sf_conv_place *place)
{
    if (place->space < 0)
        return place->lhs_stride == 1;
    const sf_conv_dim *dim = &c->g.space[place->space];
    return dim->lhs_stride == 1 && dim->stride == 1 && dim->base == 1;
}

/* The places, in the order in which the result has them in memory. */
static void list_places(sf_conv_plan *plan)
{
    const sf_conv_job *c = plan->conv;
    plan->places[plan->nplaces++] = (sf_conv_place){-1, c->g.batch, c->g.lhs_batch, c->g.out_batch};
    for (int d = 0; d < c->g.spatial; d++) {
        const sf_conv_dim *dim = &c->g.space[d];
        plan->places[plan->nplaces++] =
            (sf_conv_place){d, dim->out, dim->stride * dim->lhs_stride, dim->out_stride};
    }
    for (int i = 1; i < plan->nplaces; i++)
        for (int j = i; j > 0 && plan->places[j - 1].out_stride < plan->places[j].out_stride; j--) {
            sf_conv_place earlier = plan->places[j - 1];
            plan->places[j - 1] = plan->places[j];
            plan->places[j] = earlier;
        }
}

/* Makes the places from number `which` on end with it. */
static void move_last(sf_conv_plan *plan, int which)
{
    sf_conv_place moved = plan->places[which];
    for (int i = which; i + 1 < plan->nplaces; i++)
        plan->places[i] = plan->places[i + 1];
    plan->places[plan->nplaces - 1] = moved;
}

/* Where channels do not lie side by side, rows may: a place of some length is best. */
static void choose_direction(sf_conv_plan *plan)
{
    enum { SHORT = 4 };
    const sf_conv_job *c = plan->conv;
    if (c->g.lhs_feature == 1 && c->g.channels >= SHORT)
        return;
    int best = -1;
    for (int i = 0; i < plan->nplaces; i++)
        if (is_run_of_rows(c, &plan->places[i]) &&
            (best < 0 || plan->places[i].size >= plan->places[best].size))
            best = i;
    if (best < 0 || (c->g.lhs_feature == 1 && plan->places[best].size <= c->g.channels))
        return;
    plan->along_rows = true;
    move_last(plan, best);
}

/* The one distance of rows of C, or -1. Places of size 1 do not count. */
static int64_t distance_of_rows(const sf_conv_plan *plan)
{
    int64_t distance = -1, next = -1;
    for (int i = plan->nplaces - 1; i >= 0; i--) {
        const sf_conv_place *place = &plan->places[i];
        if (place->size == 1)
            continue;
        if (distance < 0)
            distance = place->out_stride;
        else if (place->out_stride != next)
            return -1;
        next = place->out_stride * place->size;
    }
    return distance < 0 ? 0 : distance;
}

static bool kernel_is_plain(const sf_conv_job *c)
{
    int64_t next = c->g.channels * c->g.rhs_input;
    for (int d = c->g.spatial - 1; d >= 0; d--) {
        if (c->g.space[d].window != 1 && c->g.space[d].rhs_stride != next)
            return false;
        next *= c->g.space[d].window;
    }
    return true;
}

static sf_conv_plan plan_of(const sf_conv_job *c)
{
    sf_conv_plan plan = {
        .conv = c, .groups = c->g.feature_groups * c->g.batch_groups, .rows = c->g.batch};
    plan.type = sf_gemm_type_for(sf_gemm_set_get(), c->g.lhs_dtype, c->g.rhs_dtype);
    plan.features = c->g.features / plan.groups;
    plan.steps = c->g.channels;
    for (int d = 0; d < c->g.spatial; d++) {
        plan.rows *= c->g.space[d].out;
        plan.steps *= c->g.space[d].window;
    }
    plan.lhs_group =
        c->g.feature_groups > 1 ? c->g.channels * c->g.lhs_feature : c->g.batch * c->g.lhs_batch;
    plan.rhs_group = plan.features * c->g.rhs_output;
    plan.out_group = plan.features * c->g.out_feature;
    list_places(&plan);
    choose_direction(&plan);
    plan.c_row = distance_of_rows(&plan);
    plan.plain_kernel = kernel_is_plain(c);
    return plan;
}

/* Sums to the result where it is no matrix of the right type, row by row or, where rows lie side by
 * side, column by column. */
static void store_sums_at(const void *context, int64_t group, int64_t i, int64_t rows, int64_t j,
                          int64_t columns, const void *sums, int64_t ld)
{
    const sf_conv_plan *plan = context;
    const sf_conv_job *c = plan->conv;
    const sf_conv_place *last = &plan->places[plan->nplaces - 1];
    int64_t size = sf_dtype_get(c->g.out_dtype)->bytes;
    int64_t sum_size = sf_dtype_get(plan->type->sums)->bytes, at[SF_MAX_RANK];
    sf_conv_row(plan, i, at);
    for (int64_t r = 0; r < rows;) {
        int64_t offset = group * plan->out_group + j * c->g.out_feature, count = 1;
        for (int d = 0; d < plan->nplaces; d++)
            offset += at[d] * plan->places[d].out_stride;
        char *to = (char *)c->out + offset * size;
        const char *from = (const char *)sums + r * ld * sum_size;
        if (c->g.out_feature == 1 || last->out_stride != 1) {
            sf_sums_store(to, c->g.out_dtype, c->g.out_feature, from, columns, false);
        } else {
            char line[64 * 8];
            int64_t most = last->size - at[plan->nplaces - 1];
            count = most < rows - r ? most : rows - r;
            count = count < 64 ? count : 64;
            for (int64_t n = 0; n < columns; n++) {
                for (int64_t x = 0; x < count; x++)
                    memcpy(line + x * sum_size, from + (x * ld + n) * sum_size, (size_t)sum_size);
                sf_sums_store(to + n * c->g.out_feature * size, c->g.out_dtype, 1, line, count,
                              false);
            }
        }
        r += count;
        at[plan->nplaces - 1] += count - 1;
        sf_conv_next_row(plan, at);
    }
}

/* Every window sees just the element of its own number: a product of matrices as they are. Places
 * become one row dimension and, without groups, at most one of batches. */
static bool as_gemm(const sf_conv_plan *plan, sf_gemm *out)
{
    const sf_conv_job *c = plan->conv;
    enum { FEW_ROWS = 64 }; /* a product of fewer takes less time than to pack the kernel for it */
    sf_conv_place merged[2] = {{.size = 1}, {.size = 1}};
    int count = 0;
    for (int d = 0; d < c->g.spatial; d++) {
        const sf_conv_dim *dim = &c->g.space[d];
        if (dim->window != 1 || dim->stride != 1 || dim->low != 0 || dim->base != 1 ||
            dim->out > dim->lhs)
            return false;
    }
    for (int i = plan->nplaces - 1; i >= 0; i--) {
        const sf_conv_place *place = &plan->places[i];
        sf_conv_place *into = &merged[count ? count - 1 : 0];
        if (place->size == 1)
            continue;
        if (count && place->lhs_stride == into->size * into->lhs_stride &&
            place->out_stride == into->size * into->out_stride)
            into->size *= place->size;
        else if (count < 2)
            merged[count++] = *place;
        else
            return false;
    }
    if (count == 2 && (plan->groups > 1 || merged[0].size < FEW_ROWS))
        return false;
    bool groups = plan->groups > 1;
    *out = (sf_gemm){.batches = groups ? plan->groups : merged[1].size,
                     .m = merged[0].size,
                     .n = plan->features,
                     .k = c->g.channels,
                     .epilogue = c->epilogue,
                     .scratch = c->scratch};
    out->a = (sf_matrix){(void *)(uintptr_t)c->lhs, c->g.lhs_dtype,
                         groups ? plan->lhs_group : merged[1].lhs_stride, merged[0].lhs_stride,
                         c->g.lhs_feature};
    out->b = (sf_matrix){(void *)(uintptr_t)c->rhs, c->g.rhs_dtype, groups ? plan->rhs_group : 0,
                         c->g.rhs_input, c->g.rhs_output};
    out->c = (sf_matrix){c->out, c->g.out_dtype, groups ? plan->out_group : merged[1].out_stride,
                         merged[0].out_stride, c->g.out_feature};
    return true;
}

static bool is_empty(const sf_conv_job *c, const sf_conv_plan *plan)
{
    return plan->rows == 0 || c->g.features == 0;
}

static sf_blocks blocks_of_conv(const sf_conv_plan *plan)
{
    const sf_conv_job *c = plan->conv;
    return (sf_blocks){.type = plan->type,
                       .batches = plan->groups,
                       .m = plan->rows,
                       .n = plan->features,
                       .k = plan->steps,
                       .context = plan,
                       .pack_a = sf_conv_pack_lhs,
                       .pack_b = sf_conv_pack_rhs,
                       .direct = c->g.out_feature == 1 && plan->c_row >= 0 &&
                                 c->g.out_dtype == plan->type->sums,
                       .c = c->out,
                       .c_batch = plan->out_group,
                       .c_row = plan->c_row,
                       .store = store_sums_at,
                       .epilogue = c->epilogue,
                       .scratch = c->scratch};
}

static int64_t phase_scratch(const sf_conv_job *conv, int threads)
{
    sf_conv_plan plan = plan_of(conv);
    sf_gemm gemm;
    if (is_empty(conv, &plan))
        return 0;
    if (sf_conv_direct_can(&plan))
        return sf_conv_direct_scratch(&plan, threads);
    if (as_gemm(&plan, &gemm))
        return sf_gemm_scratch(&gemm, threads);
    sf_blocks blocks = blocks_of_conv(&plan);
    return sf_blocks_scratch(&blocks, threads);
}

static void run_phase(const sf_conv_job *conv, sf_threads *threads)
{
    sf_conv_plan plan = plan_of(conv);
    sf_gemm gemm;
    if (is_empty(conv, &plan))
        return;
    if (sf_conv_direct_can(&plan)) {
        sf_conv_direct(&plan, threads);
        return;
    }
    if (as_gemm(&plan, &gemm)) {
        sf_gemm_run(&gemm, threads);
        return;
    }
    sf_blocks blocks = blocks_of_conv(&plan);
    sf_blocks_run(&blocks, threads);
}

int64_t sf_conv_scratch(const sf_conv_job *conv, int threads)
{
    sf_conv_job phase;
    int64_t most = 0;
    for (int64_t number = 0; sf_conv_phase(conv, number, &phase); number++) {
        int64_t bytes = phase_scratch(&phase, threads);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* The rows of the product are the places of the result as it has them in memory: not so with phases,
 * which make every second place or the like, and where another order is better for packing. */
static bool in_order(const sf_conv_job *conv, const sf_conv_plan *plan)
{
    sf_conv_job second;
    return !sf_conv_phase(conv, 1, &second) && (plan->rows == 1 || plan->c_row == conv->g.features);
}

void sf_conv_run(const sf_conv_job *conv, sf_threads *threads)
{
    sf_conv_job phase;
    sf_conv_plan whole = plan_of(conv);
    bool later = conv->epilogue && !in_order(conv, &whole);
    for (int64_t number = 0; sf_conv_phase(conv, number, &phase); number++) {
        if (later)
            phase.epilogue = NULL;
        run_phase(&phase, threads);
    }
    if (later)
        sf_epilogue_run_all(conv->epilogue, whole.rows, conv->g.features, threads);
}

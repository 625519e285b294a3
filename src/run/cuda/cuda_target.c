#include "run/cuda/cuda_target.h"

#include "run/cuda/cublaslt_epilogue.h"
#include "run/text/text_conv.h"

/* Of 8 bits, cuBLASLt multiplies operands with contiguous sums. */
static bool transposes(sf_dtype dtype)
{
    return dtype == SF_F8E4M3FN || dtype == SF_F8E5M2;
}

/* Floats of one type, with a result of that type or, of narrow ones, of float. Those of 8 bits may be of two types, but for gradients
 * of gradients. */
static bool multiplies_types(sf_dtype a, sf_dtype b, sf_dtype c)
{
    if (transposes(a) && transposes(b))
        return (c == SF_F32 || c == SF_BF16) && (a != SF_F8E5M2 || b != SF_F8E5M2);
    bool is_narrow = a == SF_BF16 || a == SF_F16;
    return a == b && (a == SF_F32 || a == SF_F64 || is_narrow) &&
           (c == a || (c == SF_F32 && is_narrow));
}

/* Kernels are found when the engine writes their text. */
static const void *find_kernel(const sf_op *op, int64_t *variant)
{
    (void)op;
    *variant = 0;
    return NULL;
}

/* By the tensor cores: products of float are rounded to TF32. Places that see up to their own are all that there are. */
static bool attends(const sf_attending *what)
{
    bool is_wide = what->dtype == SF_F32 && what->rounds;
    bool is_all = !what->causal || (what->queries == what->keys && what->offset == 0);
    return is_all && what->depth % 16 == 0 &&
           (is_wide ? what->depth <= 64 : what->dtype == SF_BF16 && what->depth <= 128);
}

enum { LEAST_WORKSPACE = 32 << 20, MOST_WORKSPACE = 256 << 20 };

/* Ways that are fast for a convolution may put its images into another order first. */
static int64_t image_bytes(const sf_inst *inst)
{
    sf_convolve convolve;
    int64_t all = 0;
    if (inst->kind != SF_INST_CONV || !sf_convolve_of(inst->conv, &convolve) || convolve.is_product)
        return 0;
    for (int i = 0; i < 3; i++)
        all += convolve.images[i].bytes;
    return all < MOST_WORKSPACE ? all : MOST_WORKSPACE;
}

int64_t sf_cuda_workspace(const sf_program *program)
{
    int64_t most = LEAST_WORKSPACE;
    for (size_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        int64_t images = image_bytes(inst);
        most = images > most ? images : most;
        for (uint32_t j = 0; j < sf_body_count(inst); j++) {
            int64_t inner = sf_cuda_workspace(inst->nest->bodies[j]);
            most = inner > most ? inner : most;
        }
    }
    return most;
}

static int64_t scratch_bytes(const sf_program *program, int threads)
{
    (void)threads;
    return sf_cuda_scratch(program) + sf_cuda_workspace(program);
}

/* A GPU does much more arithmetic per load than a CPU, so loops recompute more. Only epilogues of
 * the library follow products: a kernel of ours cannot follow it block by block. A product of 17
 * Gflop in TF32, of whose factors neither has contiguous sums, took 97 us on an H200 and 65
 * otherwise, and to transpose one of 33 MB takes some 20. A call takes 5 us, in which 8 MB are read and written. */
#define CUDA_TARGET(may_round, attends_to)                                                         \
    .name = "cuda", .most_nodes = 96, .longest_row = 1 << 17, .most_recomputed = 24,               \
    .most_functions = 4, .asked_functions = 4, .few_passes = true, .has_windows = true,            \
    .rounds_as_asked = true, .follows = sf_cuda_follows, .in_flight = 2, .flight_bytes = 16 << 20, \
    .align = 256, .multiplies = multiplies_types, .transposes = transposes, .kernel = find_kernel, \
    .attends = attends_to, .small_bytes = 16 << 20, .scratch = scratch_bytes, .rounds = may_round, \
    .transpose_flops = 4e9, .transpose_element = 1100, .call_bytes = 8e6,

const sf_target sf_target_cuda = {CUDA_TARGET(false, attends)};
const sf_target sf_target_cuda_tf32 = {CUDA_TARGET(true, attends)};
const sf_target sf_target_cuda_plain = {CUDA_TARGET(false, NULL)};
const sf_target sf_target_cuda_tf32_plain = {CUDA_TARGET(true, NULL)};

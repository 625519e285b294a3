/* The kernel that adds up the operands of ranks of one process, on the host: bitwise the
 * communicator's result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/comm/comm_backend.h"
#include "run/cuda/cuda_device.h"
#include "support/emulate.h"

enum { MEMBERS = 3, COUNT = 300 };

/* Ordinary numbers, in every type. */
static void fill(sf_dtype dtype, int member, void *data)
{
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t number = (i * 37 + member * 101) % 23 - 11;
        if (sf_is_float(dtype))
            sf_store_f64(dtype, data, i, (double)number / 8);
        else
            sf_store_i64(dtype, data, i, number & (sf_is_unsigned(dtype) ? 7 : -1));
    }
}

static void fill_complex(sf_dtype dtype, int member, void *data)
{
    for (int64_t i = 0; i < 2 * COUNT; i++)
        sf_store_f64(sf_part_of(dtype), data, i, (double)((i * 7 + member * 5) % 9 - 4) / 2);
}

typedef struct kernel {
    sf_kernels module;
    sf_device *device;
    void *function;
    int threads;
} kernel;

static kernel compile(sf_dtype dtype, sf_monoid monoid)
{
    kernel k = {0};
    sf_exchange exchange = {.kind = SF_ALL_REDUCE, .size = MEMBERS, .monoid = monoid};
    sf_view view = {.dtype = dtype, .rank = 1, .dims = {COUNT}, .strides = {1}};
    sf_inst inst = {.kind = SF_INST_COMM,
                    .exchange = &exchange,
                    .nin = 1,
                    .nout = 1,
                    .in = &view,
                    .out = &view,
                    .origin = SF_NO_ORIGIN};
    sf_code code = {0};
    const sf_inst *unknown = NULL;
    sf_diag *diag = sf_diag_new();
    sf_write_inst(&k.module, &k.module.arena, &inst, false, &code, &unknown);
    assert_true(!unknown && code.nlaunches == 1);
    k.threads = code.launches[0].threads;
    assert_int_equal(sf_device_open(0, diag, &k.device), SF_OK);
    if (k.device->table->compile(k.device, &k.module, NULL, diag, &k.function) != SF_OK)
        fail_msg("%s by %s: %s", sf_dtype_get(dtype)->name, sf_monoid_name(monoid),
                 sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return k;
}

static void close_kernel(kernel *k)
{
    k->device->table->close(k->device);
    sf_kernels_free(&k->module);
}

/* As the engine does: sources in the order of segment `segment`, into the last of them. */
static void run(const kernel *k, char (*in)[COUNT * 16], int segment, char *out)
{
    uint64_t values[MEMBERS + 2];
    void *params[MEMBERS + 2];
    for (int i = 0; i < MEMBERS; i++)
        values[i] = (uint64_t)(uintptr_t)in[(segment + 1 + i) % MEMBERS];
    values[MEMBERS] = (uint64_t)(uintptr_t)out;
    values[MEMBERS + 1] = COUNT;
    for (int i = 0; i < MEMBERS + 2; i++)
        params[i] = &values[i];
    assert_int_equal(k->device->table->launch_on(k->device, SF_LANE_EXCHANGE, k->function, 2,
                                                 k->threads, params, NULL),
                     SF_OK);
}

static void check(sf_dtype dtype, sf_monoid monoid)
{
    static char in[MEMBERS][COUNT * 16], wanted[COUNT * 16];
    sf_combine combine;
    sf_dtype part = monoid == SF_MONOID_MUL ? dtype : sf_part_of(dtype);
    if (!sf_combine_get(part, monoid, &combine) || (sf_is_complex(dtype) && part != dtype))
        return;
    const void *sources[MEMBERS];
    kernel k = compile(dtype, monoid);
    for (int segment = 0; segment < MEMBERS; segment++) {
        for (int m = 0; m < MEMBERS; m++) {
            sources[m] = in[m];
            sf_is_complex(dtype) ? fill_complex(dtype, m, in[m]) : fill(dtype, m, in[m]);
        }
        sf_comm_fold(&combine, sources, MEMBERS, segment, wanted, COUNT);
        run(&k, in, segment, in[segment]);
        if (memcmp(in[segment], wanted, (size_t)(COUNT * combine.bytes)) != 0)
            fail_msg("%s by %s, segment %d", sf_dtype_get(dtype)->name, sf_monoid_name(monoid),
                     segment);
    }
    close_kernel(&k);
}

static void test_every_type(void **state)
{
    (void)state;
    static const sf_monoid monoids[] = {SF_MONOID_ADD, SF_MONOID_MUL, SF_MONOID_MAX, SF_MONOID_XOR};
    static const sf_dtype dtypes[] = {SF_PRED, SF_S8,  SF_U8,   SF_S32, SF_U64,
                                      SF_F32,  SF_F64, SF_BF16, SF_F16, SF_C64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (size_t j = 0; j < sizeof monoids / sizeof *monoids; j++)
            check(dtypes[i], monoids[j]);
}

int main(void)
{
    test_emulate_gpu();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_type)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

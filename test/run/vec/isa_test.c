/* What SHEAF_VEC allows, and what becomes of AMX where the system refuses it or a thread uses it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/gemm/gemm.h"
#include "run/gemm/gemm_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < SF_ISA_COUNT; i++) {
        sf_isa isa = (sf_isa)i;
        setenv("SHEAF_VEC", sf_isa_name(isa), 1);
        assert_int_equal(sf_isa_check(NULL), sf_isa_has(isa) ? SF_OK : SF_EUSAGE);
        if (!sf_isa_has(isa))
            continue;
        assert_int_equal(sf_gemm_set_get()->isa, isa);
        for (int j = i + 1; j < SF_ISA_COUNT; j++)
            assert_false(sf_isa_allowed((sf_isa)j));
        assert_true(sf_isa_allowed(SF_ISA_BASE));
    }
    unsetenv("SHEAF_VEC");
    assert_int_equal(sf_isa_check(NULL), SF_OK);
}

static void test_unknown_name(void **state)
{
    (void)state;
    static const char *const names[] = {"", "avx", "AVX2", "avx2 ", "neon7"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("SHEAF_VEC", names[i], 1);
        assert_int_equal(sf_isa_check(NULL), SF_EUSAGE);
        assert_true(sf_isa_allowed(SF_ISA_BASE));
    }
    unsetenv("SHEAF_VEC");
}

#if defined(__aarch64__)
/* SVE takes nothing away from products of bf16, and comes in one width. */
static void test_sve(void **state)
{
    (void)state;
    unsetenv("SHEAF_VEC");
    assert_int_equal(sf_gemm_set_get()->bf16 != NULL, sf_isa_has(SF_ISA_NEON_BF16));
    assert_false(sf_isa_has(SF_ISA_SVE256) && sf_isa_has(SF_ISA_SVE512));
}
#endif

#if defined(__x86_64__)
/* The exit status of run(), in a process of its own. */
static int in_child(int (*run)(void))
{
    pid_t child = fork();
    if (child == 0)
        _exit(run());
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* 1 = 1 * 1, by whatever kernels there are; the result is exact in all. */
static bool multiplies(void)
{
    enum { SIZE = 33 };
    uint16_t *one = sf_alloc(SIZE * SIZE * sizeof *one);
    float *c = sf_alloc(SIZE * SIZE * sizeof *c);
    bool right = true;
    for (int i = 0; i < SIZE * SIZE; i++)
        one[i] = 0x3f80;
    sf_threads *threads = sf_threads_new(1);
    sf_gemm g = {.batches = 1, .m = SIZE, .n = SIZE, .k = SIZE};
    g.a = g.b = (sf_matrix){one, SF_BF16, 0, SIZE, 1};
    g.c = (sf_matrix){c, SF_F32, 0, SIZE, 1};
    g.scratch = sf_alloc((size_t)sf_gemm_scratch(&g, 1));
    sf_gemm_run(&g, threads);
    for (int i = 0; i < SIZE * SIZE; i++)
        right = right && c[i] == SIZE;
    sf_threads_free(threads);
    sf_free(g.scratch);
    sf_free(one);
    sf_free(c);
    return right;
}

/* Linux refuses tiles to a process with a signal stack that their state would not fit on. */
static int run_refused(void)
{
    static char stack[4096];
    unsetenv("SHEAF_VEC");
    if (sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL) != 0)
        return 77;
    return sf_isa_has(SF_ISA_AMX) || sf_gemm_set_get()->isa == SF_ISA_AMX || !multiplies();
}

static void test_refused(void **state)
{
    (void)state;
    int status = in_child(run_refused);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

/* What the thread had described before is described after; or nothing, if nothing was. */
__attribute__((target("amx-tile"))) static int run_with_tiles(void)
{
    static const _Alignas(64) unsigned char mine[64] = {1, [16] = 32, [48] = 7};
    _Alignas(64) static unsigned char after[64];
    if (!sf_isa_has(SF_ISA_AMX))
        return 77;
    setenv("SHEAF_VEC", "amx", 1);
    bool right = multiplies();
    _tile_storeconfig(after);
    right = right && after[0] == 0;
    _tile_loadconfig(mine);
    right = right && multiplies();
    _tile_storeconfig(after);
    _tile_release();
    return !right || memcmp(mine, after, sizeof after) != 0;
}

static void test_tiles(void **state)
{
    (void)state;
    int status = in_child(run_with_tiles);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}
#endif

/* The child processes want to be the first to ask for AMX. */
int main(void)
{
    const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_tiles),
#elif defined(__aarch64__)
        cmocka_unit_test(test_sve),
#endif
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_unknown_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

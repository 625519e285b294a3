/* Distances of an instruction's data: against a list of accesses, byte for byte. */
#include "sim/cache_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { KIB = 1024, FLOATS = 64 * KIB / 4, BUFFERS = 5 };

/* Buffers of 64 KiB each, and one of 64 MiB: the last. */
typedef struct example {
    sf_program program;
    sf_buffer buffers[BUFFERS];
    sf_inst insts[8];
    sf_view views[16];
    size_t nviews;
} example;

static sf_view whole_of(const example *e, uint32_t buffer)
{
    return (sf_view){.buffer = buffer,
                     .dtype = SF_F32,
                     .rank = 1,
                     .dims = {e->buffers[buffer].bytes / 4},
                     .strides = {1}};
}

/* An instruction that reads one and writes another. */
static void add_copy(example *e, uint32_t from, uint32_t to)
{
    sf_inst *inst = &e->insts[e->program.ninsts++];
    sf_view *views = &e->views[e->nviews];
    views[0] = whole_of(e, from);
    views[1] = whole_of(e, to);
    e->nviews += 2;
    *inst = (sf_inst){.kind = SF_INST_LOOP, .nin = 1, .nout = 1, .in = &views[0], .out = &views[1]};
}

static void begin_example(example *e)
{
    *e = (example){.program = {.insts = e->insts, .buffers = e->buffers, .nbuffers = BUFFERS}};
    for (int i = 0; i < BUFFERS; i++)
        e->buffers[i] = (sf_buffer){.home = SF_HOME_ARGUMENT, .bytes = 64 * KIB};
    e->buffers[BUFFERS - 1].bytes = (int64_t)64 * KIB * KIB;
}

static double near_in_all(const sf_nearness *near)
{
    double sum = 0;
    for (int s = 0; s < SF_NEAR_STEPS; s++)
        sum += near->share[s];
    return sum;
}

/* The second instruction reads the result of the first; the third reads data that the previous step
 * touched 128 MiB ago. */
static void test_distances(void **state)
{
    (void)state;
    example e;
    sf_arena arena = {0};
    begin_example(&e);
    add_copy(&e, 0, 1);
    add_copy(&e, 1, 2);
    add_copy(&e, BUFFERS - 1, BUFFERS - 1);
    add_copy(&e, 3, 3);
    sf_nearness *near = sf_nearness_of(&e.program, &arena);
    assert_true(near[0].share[0] == 0 && near_in_all(&near[0]) < 0.01); /* 128 MiB ago */
    assert_true(near[1].share[0] == 0.5 && near_in_all(&near[1]) < 0.51);
    assert_true(near[2].share[SF_NEAR_STEPS - 2] + near[2].share[SF_NEAR_STEPS - 1] > 0.49);
    assert_true(near[3].share[0] == 0.5);
    sf_arena_free(&arena);
}

/* In a step that touches little, all of it is near from the step before. */
static void test_steps(void **state)
{
    (void)state;
    example e;
    sf_arena arena = {0};
    begin_example(&e);
    add_copy(&e, 0, 1);
    add_copy(&e, 2, 3);
    sf_nearness *near = sf_nearness_of(&e.program, &arena);
    for (int i = 0; i < 2; i++) {
        if (near_in_all(&near[i]) < 0.999 || near[i].share[0] + near[i].share[1] > 0.5 ||
            near[i].share[2] < 0.5)
            fail_msg("instruction %d: %g near, %g within 256 KiB", i, near_in_all(&near[i]),
                     near[i].share[2]);
    }
    sf_arena_free(&arena);
}

/* Buffers of an arena share memory, and its content is near whichever buffer had it. */
static void test_places(void **state)
{
    (void)state;
    example e;
    sf_arena arena = {0};
    for (int shared = 0; shared < 2; shared++) {
        begin_example(&e);
        e.program.arena_bytes[SF_SPACE_DEVICE] = 128 * KIB;
        for (int i = 1; i < 3; i++)
            e.buffers[i] = (sf_buffer){.home = SF_HOME_ARENA,
                                       .bytes = 64 * KIB,
                                       .offset = shared ? 0 : (i - 1) * 64 * KIB};
        add_copy(&e, 0, 1);
        add_copy(&e, 0, 2);
        add_copy(&e, BUFFERS - 1, BUFFERS - 1);
        sf_nearness *near = sf_nearness_of(&e.program, &arena);
        assert_true(near_in_all(&near[1]) == (shared ? 1 : 0.5));
    }
    sf_arena_free(&arena);
}

/* A buffer that a pass added has an offset before the arena is made larger: it shares memory with nothing. */
static void test_beyond_arena(void **state)
{
    (void)state;
    example e;
    sf_arena arena = {0};
    begin_example(&e);
    e.program.arena_bytes[SF_SPACE_DEVICE] = 64 * KIB;
    e.buffers[1] =
        (sf_buffer){.home = SF_HOME_ARENA, .bytes = 64 * KIB, .offset = (int64_t)64 * KIB};
    add_copy(&e, BUFFERS - 1, BUFFERS - 1);
    add_copy(&e, 3, 1);
    add_copy(&e, 0, 2);
    sf_nearness *near = sf_nearness_of(&e.program, &arena);
    assert_true(near_in_all(&near[2]) < 0.01);
    sf_arena_free(&arena);
}

/* Views that touch nothing, run backwards, or repeat. */
static void test_odd_views(void **state)
{
    (void)state;
    example e;
    sf_arena arena = {0};
    begin_example(&e);
    for (int i = 0; i < 3; i++)
        add_copy(&e, 0, 1);
    e.views[0].dims[0] = 0;
    e.views[2].offset = FLOATS - 1;
    e.views[2].strides[0] = -1;
    e.views[4].strides[0] = 0;
    sf_nearness *near = sf_nearness_of(&e.program, &arena);
    for (int i = 0; i < 3; i++)
        assert_true(near_in_all(&near[i]) <= 1.0001);
    assert_true(near[2].share[0] > 0);
    assert_true(sf_nearness_of(&(sf_program){0}, &arena) != NULL);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_places),    cmocka_unit_test(test_beyond_arena),
        cmocka_unit_test(test_odd_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

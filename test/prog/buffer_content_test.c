/* Programs that compute the same have the same meaning, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "prog/buffer_content.h"
#include "prog/edit_program.h"
#include "prog/instruction_deps.h"
#include "support/draw.h"
#include "support/programs.h"

typedef struct tally {
    test_random random;
    int same, other;
} tally;

/* Takes instructions at random from those that can go. */
static void shuffle(const sf_program *p, test_random *random, uint32_t *order, sf_arena *arena)
{
    sf_deps deps = sf_deps_of(p, arena);
    bool *done = SF_ARRAY(arena, p->ninsts, bool);
    uint32_t *ready = SF_ARRAY(arena, p->ninsts, uint32_t);
    for (size_t at = 0; at < p->ninsts; at++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < p->ninsts; i++) {
            bool can = !done[i];
            for (uint32_t b = deps.first[i]; can && b < deps.first[i + 1]; b++)
                can = done[deps.before[b]];
            if (can)
                ready[count++] = i;
        }
        order[at] = ready[test_draw(random, 0, count - 1)];
        done[order[at]] = true;
    }
    assert_true(sf_deps_allow(&deps, order, p->ninsts, arena));
}

/* Any order that dependencies allow means the same; two that depend on each other, exchanged, do not. */
static void check_meaning(void *context, const char *what, const sf_program *program,
                          const sf_program *other)
{
    tally *t = context;
    sf_arena arena = {0};
    sf_program *p = (sf_program *)program;
    (void)other;
    if (p->ninsts > 400)
        return;
    uint64_t meaning = sf_program_meaning(p);
    sf_kept *kept = sf_program_keep(p, &arena);
    uint32_t *order = SF_ARRAY(&arena, p->ninsts, uint32_t);
    shuffle(p, &t->random, order, &arena);
    sf_program_arrange(p, order, p->ninsts);
    if (sf_program_meaning(p) != meaning)
        fail_msg("%s: another order means something else", what);
    t->same++;
    sf_program_put_back(p, kept);
    assert_true(sf_program_meaning(p) == meaning);
    sf_deps deps = sf_deps_of(p, &arena);
    for (uint32_t i = 1; i < p->ninsts && t->other < 100000; i++) {
        bool follows = false;
        for (uint32_t b = deps.first[i]; b < deps.first[i + 1]; b++)
            follows = follows || deps.before[b] == i - 1;
        if (!follows || test_draw(&t->random, 0, 9) > 0)
            continue;
        for (uint32_t j = 0; j < p->ninsts; j++)
            order[j] = j == i ? i - 1 : j == i - 1 ? i : j;
        assert_false(sf_deps_allow(&deps, order, p->ninsts, &arena));
        sf_program_arrange(p, order, p->ninsts);
        if (sf_program_meaning(p) == meaning)
            fail_msg("%s: instructions %u and %u exchanged mean the same", what, i - 1, i);
        sf_program_put_back(p, kept);
        t->other++;
    }
    sf_arena_free(&arena);
}

static void test_orders(void **state)
{
    (void)state;
    tally t = {.random = {.key = 5}};
    test_each_program(check_meaning, &t);
    print_message("%d orders mean the same, %d do not\n", t.same, t.other);
    assert_true(t.same > 50 && t.other > 500);
}

/* A program that reads another tensor, sends to others, or leaves something out. */
static void spoil(void *context, const char *what, const sf_program *program,
                  const sf_program *other)
{
    tally *t = context;
    sf_arena arena = {0};
    sf_program *p = (sf_program *)program;
    if (!other)
        return;
    uint64_t meaning = sf_program_meaning(p);
    sf_kept *kept = sf_program_keep(p, &arena);
    for (int k = 0; k < 20; k++) {
        uint32_t at = (uint32_t)test_draw(&t->random, 0, (int64_t)p->ninsts - 1);
        sf_inst *inst = &p->insts[at];
        if (inst->kind != SF_INST_COMM && inst->nin == 0)
            continue;
        if (inst->kind == SF_INST_COMM)
            inst->exchange->axes ^= 8;
        else
            inst->in[0].buffer = inst->in[0].buffer == 0;
        if (sf_program_meaning(p) == meaning)
            fail_msg("%s: instruction %u does something else, and means the same", what, at);
        sf_program_put_back(p, kept);
        t->other++;
    }
    sf_arena_free(&arena);
}

static void test_spoiled(void **state)
{
    (void)state;
    tally t = {.random = {.key = 6}};
    test_each_program(spoil, &t);
    assert_true(t.other > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_spoiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

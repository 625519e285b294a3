/* The order of instructions: updates come as their gradients do, collectives stay in order,
 * operands are made before they are read, and less memory is used than in the order of the text;
 * with collectives in flight, it may be a little more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "sheaf/sheaf.h"
#include "support/programs.h"

/* Known answers */

/* Three gradients of 16 KB, and after them three updates. */
static const char updates[] =
    "func.func public @main(%u: tensor<64x64xf32> {tf.aliasing_output = 0 : i32}, "
    "%v: tensor<64x64xf32> {tf.aliasing_output = 1 : i32}, "
    "%w: tensor<64x64xf32> {tf.aliasing_output = 2 : i32}, %x: tensor<64x64xf32>) -> "
    "(tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {\n"
    "%a = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
    "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
    "%b = stablehlo.dot_general %x, %v, contracting_dims = [0] x [0] : (tensor<64x64xf32>, "
    "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
    "%c = stablehlo.dot_general %x, %w, contracting_dims = [0] x [1] : (tensor<64x64xf32>, "
    "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
    "%p = stablehlo.subtract %u, %a : tensor<64x64xf32>\n"
    "%q = stablehlo.subtract %v, %b : tensor<64x64xf32>\n"
    "%r = stablehlo.subtract %w, %c : tensor<64x64xf32>\n"
    "return %p, %q, %r : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>\n}\n";

static void test_updates(void **state)
{
    (void)state;
    sf_program *p = test_lower_text(updates, NULL);
    assert_int_equal(p->ninsts, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(p->insts[i].kind, i % 2 ? SF_INST_LOOP : SF_INST_DOT);
    assert_int_equal(p->arena_bytes[SF_SPACE_DEVICE], 64 * 64 * 4);
    sf_program_free(p);
}

/* An argument with other readers is updated after them. */
static void test_readers(void **state)
{
    (void)state;
    sf_program *p = test_lower_text(
        "func.func public @main(%w: tensor<64x64xf32> {tf.aliasing_output = 0 : i32}, "
        "%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {\n"
        "%a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
        "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
        "%p = stablehlo.subtract %w, %a : tensor<64x64xf32>\n"
        "%b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [1] : (tensor<64x64xf32>, "
        "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
        "return %p, %b : tensor<64x64xf32>, tensor<64x64xf32>\n}\n",
        NULL);
    uint32_t written = SF_NONE, read = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            written = p->insts[i].out[j].buffer == 0 ? i : written;
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            read = p->insts[i].in[j].buffer == 0 ? i : read;
    }
    assert_true(written != SF_NONE && written >= read);
    sf_program_free(p);
}

/* A sum that grows part by part: parts do not wait for each other where a barrier holds each sum. */
static void test_sums_are_held(void **state)
{
    (void)state;
    enum { PARTS = 8, ELEMENTS = 64 * 64 };
    sf_buf text = {0};
    sf_buf_puts(&text, "func.func public @main(%x: tensor<64x64xbf16>) -> tensor<64x64xf32> {\n");
    for (int i = 0; i < PARTS; i++) {
        char before[8] = "x";
        if (i > 0)
            snprintf(before, sizeof before, "d%d", i - 1);
        sf_buf_printf(
            &text,
            "%%d%d = stablehlo.dot_general %%%s, %%x, contracting_dims = [%d] x [%d] : "
            "(tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>\n"
            "%%c%d = stablehlo.convert %%d%d : (tensor<64x64xbf16>) -> tensor<64x64xf32>\n",
            i, before, i % 2, i / 2 % 2, i, i);
        if (i > 0)
            sf_buf_printf(&text, "%%a%d = stablehlo.add %%s%d, %%c%d : tensor<64x64xf32>\n", i,
                          i - 1, i);
        sf_buf_printf(&text, "%%s%d = stablehlo.optimization_barrier %%%s%d : tensor<64x64xf32>\n",
                      i, i ? "a" : "c", i);
    }
    sf_buf_printf(&text, "return %%s%d : tensor<64x64xf32>\n}\n", PARTS - 1);
    sf_program *p = test_lower_text(text.text, NULL);
    assert_in_range(p->arena_bytes[SF_SPACE_DEVICE], ELEMENTS * 4, ELEMENTS * (4 + 4 * 2));
    sf_program_free(p);
    sf_buf_free(&text);
}

/* Properties */

static bool touches(const sf_inst *inst, uint32_t buffer, bool writes)
{
    for (uint32_t i = 0; i < inst->nout; i++)
        if (inst->out[i].buffer == buffer)
            return true;
    for (uint32_t i = 0; !writes && i < inst->nin; i++)
        if (inst->in[i].buffer == buffer)
            return true;
    return false;
}

/* In the list, b must stay after a: one of them writes data of the other, or both are
 * collectives. */
static bool stays_behind(const sf_inst *a, const sf_inst *b)
{
    if (a->kind == SF_INST_COMM && b->kind == SF_INST_COMM)
        return true;
    for (uint32_t i = 0; i < a->nout; i++)
        if (touches(b, a->out[i].buffer, false))
            return true;
    for (uint32_t i = 0; i < b->nout; i++)
        if (touches(a, b->out[i].buffer, false))
            return true;
    return false;
}

/* Whether the instruction reads a gradient, which is more than a few numbers, and writes the next
 * value of an argument in place. */
static bool is_update(const sf_program *p, const sf_inst *inst)
{
    bool reads = false, writes = false;
    for (uint32_t i = 0; i < inst->nin; i++)
        reads = reads || (p->buffers[inst->in[i].buffer].home == SF_HOME_ARENA &&
                          p->buffers[inst->in[i].buffer].bytes > 64);
    for (uint32_t i = 0; i < inst->nout; i++)
        writes = writes || p->buffers[inst->out[i].buffer].home == SF_HOME_ARGUMENT;
    return reads && writes;
}

/* The list in the text's order, as far as updates in place allow: of the ready ones, the first of
 * the text comes first. */
static void order_by_text(sf_program *p)
{
    uint32_t count = (uint32_t)p->ninsts, done = 0;
    sf_inst *ordered = sf_alloc((count + 1) * sizeof *ordered);
    bool *taken = sf_alloc(count + 1);
    uint32_t *missing = sf_alloc((count + 1) * sizeof *missing);
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = false;
        missing[i] = 0;
        for (uint32_t j = 0; j < i; j++)
            missing[i] += stays_behind(&p->insts[j], &p->insts[i]);
    }
    while (done < count) {
        uint32_t best = SF_NONE;
        for (uint32_t i = 0; i < count; i++)
            if (!taken[i] && missing[i] == 0 &&
                (best == SF_NONE || p->insts[i].origin.node < p->insts[best].origin.node))
                best = i;
        taken[best] = true;
        ordered[done++] = p->insts[best];
        for (uint32_t i = best + 1; i < count; i++)
            missing[i] -= stays_behind(&p->insts[best], &p->insts[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        p->insts[i] = ordered[i];
    sf_free(missing);
    sf_free(taken);
    sf_free(ordered);
}

/* Products between the last that an update waits for and the update. */
static int delay_of(const sf_program *p, uint32_t at)
{
    uint32_t last = 0;
    int delay = 0;
    for (uint32_t i = 0; i < at; i++)
        if (stays_behind(&p->insts[i], &p->insts[at]))
            last = i;
    for (uint32_t i = last + 1; i < at; i++)
        delay += (p->insts[i].kind == SF_INST_DOT || p->insts[i].kind == SF_INST_CONV) &&
                 !is_update(p, &p->insts[i]);
    return delay;
}

typedef struct found {
    double sum, least, most; /* peaks in the text's order over the peak */
    int count, updates;
    int latest; /* products between the operands of an update and the update */
} found;

static void check_order(void *context, const char *what, const sf_program *p,
                        const sf_program *other)
{
    found *f = context;
    int64_t number = -1;
    bool *made = sf_alloc(p->nbuffers);
    for (size_t b = 0; b < p->nbuffers; b++)
        made[b] = p->buffers[b].home != SF_HOME_ARENA || p->buffers[b].bytes == 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        if (inst->loop && inst->kind != SF_INST_LOOP)
            made[inst->out[0].buffer] = true;
        for (uint32_t j = 0; j < inst->nin; j++)
            if (!made[inst->in[j].buffer])
                fail_msg("%s: instruction %u reads buffer %u, which is not made", what, i,
                         inst->in[j].buffer);
        for (uint32_t j = 0; j < inst->nout; j++)
            made[inst->out[j].buffer] = true;
        if (inst->kind == SF_INST_COMM) {
            assert_true(inst->exchange->number > number);
            number = inst->exchange->number;
        }
        if (!other && inst->origin.phase == SF_UPDATE && is_update(p, inst)) {
            f->updates++;
            int delay = delay_of(p, i);
            f->latest = delay > f->latest ? delay : f->latest;
        }
    }
    sf_free(made);
    test_copy copy;
    test_copy_program(p, &copy);
    order_by_text(&copy.p);
    sf_program_settle(&copy.p);
    double ratio =
        p->arena_bytes[SF_SPACE_DEVICE] == 0
            ? 1
            : (double)copy.p.arena_bytes[SF_SPACE_DEVICE] / (double)p->arena_bytes[SF_SPACE_DEVICE];
    if (ratio < (other ? 0.84 : 0.97))
        fail_msg("%s: the text's order takes %.3f of the memory", what, ratio);
    f->least = f->count == 0 || ratio < f->least ? ratio : f->least;
    f->most = ratio > f->most ? ratio : f->most;
    f->sum += ratio;
    f->count++;
    test_copy_free(&copy);
}

static void test_all_steps(void **state)
{
    (void)state;
    found f = {0};
    test_each_program(check_order, &f);
    print_message(
        "memory in the text's order: %.3f times on average, %.3f to %.3f, of %d programs; "
        "%d updates of whole steps, %d products late\n",
        f.sum / f.count, f.least, f.most, f.count, f.updates, f.latest);
    assert_true(f.sum / f.count > 1.02 && f.most > 1.5);
    assert_true(f.updates > 180 && f.latest <= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_sums_are_held),
        cmocka_unit_test(test_all_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Loops that stay and branches on the CPU engine against the oracle: the regions become programs of their
 * own, whose values are carried, captured and changed in place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "op/op.h"
#include "prog/program.h"

#include "run/fast/fast.h"
#include "sheaf/sheaf.h"
#include "support/run.h"

#define HEAD "func.func public @main("
#define F "tensor<f32>"
#define I "tensor<i32>"
#define V "tensor<6xf32>"
#define M "tensor<4x6xf32>"

typedef struct program_case {
    const char *name, *text;
} program_case;

static const program_case programs[] = {
    {"fibonacci: a value that is carried over from an argument which changes",
     HEAD "%n: " I ") -> (" I ", " I ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%r:3 = stablehlo.while(%i = %n, %a = %0, %b = %1) : " I ", " I ", " I "\n"
          "cond { %c = stablehlo.compare GT, %i, %0 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %s = stablehlo.add %a, %b : " I "\n%d = stablehlo.subtract %i, %1 : " I "\n"
          "stablehlo.return %d, %b, %s : " I ", " I ", " I " }\n"
          "return %r#1, %r#2 : " I ", " I "\n}\n"},
    {"swap: two carried values change places",
     HEAD "%n: " I ", %x: " V ", %y: " V ") -> (" V ", " V ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%r:3 = stablehlo.while(%i = %n, %a = %x, %b = %y) : " I ", " V ", " V "\n"
          "cond { %c = stablehlo.compare GT, %i, %0 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %d = stablehlo.subtract %i, %1 : " I "\n"
          "stablehlo.return %d, %b, %a : " I ", " V ", " V " }\n"
          "return %r#1, %r#2 : " V ", " V "\n}\n"},
    {"one result for two carried values, a constant, and one that stays",
     HEAD "%n: " I ", %x: " V ", %y: " V ") -> (" V ", " V ", " V ", " V ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%k = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : " V "\n"
          "%r:5 = stablehlo.while(%i = %n, %a = %x, %b = %y, %e = %x, %f = %x) : " I ", " V ", " V
          ", " V ", " V "\n"
          "cond { %c = stablehlo.compare GT, %i, %0 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %d = stablehlo.subtract %i, %1 : " I "\n%s = stablehlo.add %a, %b : " V "\n"
          "stablehlo.return %d, %s, %s, %k, %f : " I ", " V ", " V ", " V ", " V " }\n"
          "return %r#1, %r#2, %r#3, %r#4 : " V ", " V ", " V ", " V "\n}\n"},
    {"halving until small: the number of turns is in the data; softmax and product inside", HEAD
     "%x: " M ", %w: tensor<6x6xf32>) -> (" M ", " F ") {\n"
     "%z = stablehlo.constant dense<0.0> : " F "\n%lim = stablehlo.constant dense<3.0> : " F
     "\n%h = stablehlo.constant dense<0.1> : " M "\n%one = stablehlo.constant dense<1.0> : " F "\n"
     "%xx = stablehlo.multiply %x, %x : " M "\n"
     "%r:2 = stablehlo.while(%a = %xx, %n = %z) : " M ", " F "\n"
     "cond { %m = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = "
     "[0, 1] : (" M ", " F ") -> " F "\n"
     "%c = stablehlo.compare GT, %m, %lim : (" F ", " F ") -> tensor<i1>\n"
     "stablehlo.return %c : tensor<i1> }\n"
     "do { %e = stablehlo.exponential %w : tensor<6x6xf32>\n"
     "%s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : "
     "(tensor<6x6xf32>, " F ") -> tensor<6xf32>\n"
     "%sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<6xf32>) -> tensor<6x6xf32>\n"
     "%q = stablehlo.divide %e, %sb : tensor<6x6xf32>\n"
     "%p = stablehlo.dot_general %a, %q, contracting_dims = [1] x [1] : (" M
     ", tensor<6x6xf32>) -> " M "\n"
     "%t = stablehlo.multiply %p, %h : " M "\n%k = stablehlo.add %n, %one : " F "\n"
     "stablehlo.return %t, %k : " M ", " F " }\n"
     "return %r#0, %r#1 : " M ", " F "\n}\n"},
    {"captured views: transposed, broadcast, reshaped, sliced and equal values of the outer block",
     HEAD "%n: " I ", %x: " M ", %y: " V ") -> (tensor<6x4xf32>, " V ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%t = stablehlo.transpose %x, dims = [1, 0] : (" M ") -> tensor<6x4xf32>\n"
          "%b = stablehlo.broadcast_in_dim %y, dims = [0] : (" V ") -> tensor<6x4xf32>\n"
          "%l = stablehlo.slice %x [1:2, 0:6] : (" M ") -> tensor<1x6xf32>\n"
          "%v = stablehlo.reshape %l : (tensor<1x6xf32>) -> " V "\n"
          "%e1 = stablehlo.sine %y : " V "\n%e2 = stablehlo.sine %y : " V "\n"
          "%o = stablehlo.tanh %v : " V "\n"
          "%o1 = stablehlo.reshape %o : (" V ") -> tensor<1x6xf32>\n"
          "%r:3 = stablehlo.while(%i = %n, %a = %t, %s = %y) : " I ", tensor<6x4xf32>, " V "\n"
          "cond { %c = stablehlo.compare GT, %i, %0 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %d = stablehlo.subtract %i, %1 : " I "\n"
          "%a1 = stablehlo.add %a, %t : tensor<6x4xf32>\n"
          "%a2 = stablehlo.multiply %a1, %b : tensor<6x4xf32>\n"
          "%s1 = stablehlo.add %s, %v : " V "\n%s2 = stablehlo.multiply %s1, %e1 : " V "\n"
          "%s3 = stablehlo.add %s2, %e2 : " V "\n"
          "%o2 = stablehlo.multiply %o1, %o1 : tensor<1x6xf32>\n"
          "%o3 = stablehlo.reshape %o2 : (tensor<1x6xf32>) -> " V "\n"
          "%s4 = stablehlo.add %s3, %o3 : " V "\n"
          "stablehlo.return %d, %a2, %s4 : " I ", tensor<6x4xf32>, " V " }\n"
          "return %r#1, %r#2 : tensor<6x4xf32>, " V "\n}\n"},
    {"nested loops, the inner one as often as the outer one says",
     HEAD "%n: " I ", %x: " V ") -> (" V ", " I ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%k = stablehlo.constant dense<0.5> : " V "\n"
          "%r:3 = stablehlo.while(%i = %n, %a = %x, %u = %0) : " I ", " V ", " I "\n"
          "cond { %c = stablehlo.compare GT, %i, %0 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %m = stablehlo.cosine %a : " V "\n"
          "%q:3 = stablehlo.while(%j = %i, %b = %a, %w = %u) : " I ", " V ", " I "\n"
          "cond { %c = stablehlo.compare GT, %j, %0 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %f = stablehlo.multiply %b, %k : " V "\n%g = stablehlo.add %f, %m : " V "\n"
          "%h = stablehlo.add %g, %a : " V "\n%o = stablehlo.subtract %j, %1 : " I "\n"
          "%p = stablehlo.add %w, %1 : " I "\n"
          "stablehlo.return %o, %h, %p : " I ", " V ", " I " }\n"
          "%d = stablehlo.subtract %i, %1 : " I "\n"
          "%y = stablehlo.add %q#1, %x : " V "\n"
          "stablehlo.return %d, %y, %q#2 : " I ", " V ", " I " }\n"
          "return %r#1, %r#2 : " V ", " I "\n}\n"},
    {"scan: slices out of a captured array, rows written into a carried one",
     HEAD "%n: " I ", %xs: " M ", %w: tensor<6x6xf32>) -> (" M ", " V ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%4 = stablehlo.constant dense<4> : " I "\n%z = stablehlo.constant dense<0.0> : " V "\n"
          "%zz = stablehlo.constant dense<0.0> : " M "\n"
          "%r:3 = stablehlo.while(%i = %0, %h = %z, %ys = %zz) : " I ", " V ", " M "\n"
          "cond { %c = stablehlo.compare LT, %i, %4 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %x = stablehlo.dynamic_slice %xs, %i, %0, sizes = [1, 6] : (" M ", " I ", " I
          ") -> tensor<1x6xf32>\n%xv = stablehlo.reshape %x : (tensor<1x6xf32>) -> " V "\n"
          "%p = stablehlo.dot_general %h, %w, contracting_dims = [0] x [0] : (" V
          ", tensor<6x6xf32>) -> " V "\n%s = stablehlo.add %p, %xv : " V "\n"
          "%t = stablehlo.tanh %s : " V "\n"
          "%row = stablehlo.reshape %t : (" V ") -> tensor<1x6xf32>\n"
          "%y = stablehlo.dynamic_update_slice %ys, %row, %i, %0 : (" M ", tensor<1x6xf32>, " I
          ", " I ") -> " M "\n%d = stablehlo.add %i, %1 : " I "\n"
          "stablehlo.return %d, %t, %y : " I ", " V ", " M " }\n"
          "return %r#2, %r#1 : " M ", " V "\n}\n"},
    {"branches: captured values, captured results, constants, and a loop inside",
     HEAD "%n: " I ", %x: " V ", %y: " V ") -> (" V ", " V ", " I ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%k = stablehlo.constant dense<7.0> : " V "\n%e = stablehlo.exponential %x : " V "\n"
          "%r:3 = \"stablehlo.case\"(%n) ({\n"
          "  %a = stablehlo.add %e, %k : " V "\n  stablehlo.return %a, %x, %n : " V ", " V ", " I
          "\n}, {\n"
          "  %a = stablehlo.multiply %e, %y : " V "\n  stablehlo.return %a, %a, %0 : " V ", " V
          ", " I "\n}, {\n"
          "  stablehlo.return %y, %k, %1 : " V ", " V ", " I "\n}, {\n"
          "  %q:2 = stablehlo.while(%j = %n, %b = %e) : " I ", " V "\n"
          "  cond { %c = stablehlo.compare GT, %j, %0 : (" I ", " I ") -> tensor<i1>\n"
          "  stablehlo.return %c : tensor<i1> }\n"
          "  do { %f = stablehlo.subtract %b, %y : " V "\n  %o = stablehlo.subtract %j, %1 : " I
          "\n  stablehlo.return %o, %f : " I ", " V " }\n"
          "  stablehlo.return %q#1, %e, %q#0 : " V ", " V ", " I "\n"
          "}) : (" I ") -> (" V ", " V ", " I ")\n"
          "return %r#0, %r#1, %r#2 : " V ", " V ", " I "\n}\n"},
    {"an op with a comparator that captures, in a loop",
     HEAD "%n: " I ", %x: " V ", %y: " V ") -> (" V ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%s = stablehlo.slice %y [2:3] : (" V ") -> tensor<1xf32>\n"
          "%p = stablehlo.reshape %s : (tensor<1xf32>) -> " F "\n"
          "%r:2 = stablehlo.while(%i = %n, %a = %x) : " I ", " V "\n"
          "cond { %c = stablehlo.compare GT, %i, %0 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %d = stablehlo.subtract %i, %1 : " I "\n"
          "%q = \"stablehlo.sort\"(%a) <{dimension = 0 : i64, is_stable = true}> ({\n"
          "^bb0(%u: " F ", %v: " F "):\n%f = stablehlo.multiply %u, %p : " F "\n"
          "%g = stablehlo.multiply %v, %p : " F "\n"
          "%c = stablehlo.compare LT, %f, %g : (" F ", " F ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1>\n}) : (" V ") -> " V "\n"
          "%h = stablehlo.cosine %q : " V "\nstablehlo.return %d, %h : " I ", " V " }\n"
          "return %r#1 : " V "\n}\n"},
    {"state: a loop changes an argument, and the step gives its old value too",
     HEAD "%n: " I ", %x: " V " {tf.aliasing_output = 0 : i32}, %y: " V
          " {tf.aliasing_output = 1 : i32}) -> (" V ", " V ", " V ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n%1 = stablehlo.constant dense<1> : " I "\n"
          "%r:2 = stablehlo.while(%i = %n, %a = %x) : " I ", " V "\n"
          "cond { %c = stablehlo.compare GT, %i, %0 : (" I ", " I ") -> tensor<i1>\n"
          "stablehlo.return %c : tensor<i1> }\n"
          "do { %d = stablehlo.subtract %i, %1 : " I "\n%s = stablehlo.add %a, %y : " V "\n"
          "stablehlo.return %d, %s : " I ", " V " }\n"
          "return %r#1, %x, %y : " V ", " V ", " V "\n}\n"},
    {"a scatter of two operands, of which one is changed in place", HEAD
     "%n: " I ", %x: " M ", %y: tensor<2x6xf32>, %z: tensor<2x6xf32>) -> (" M ", " M ", " M ") {\n"
     "%i0 = stablehlo.reshape %n : (" I ") -> tensor<1x1xi32>\n"
     "%i1 = stablehlo.constant dense<1> : tensor<1x1xi32>\n"
     "%i = stablehlo.concatenate %i0, %i1, dim = 0 : (tensor<1x1xi32>, tensor<1x1xi32>) -> "
     "tensor<2x1xi32>\n%a = stablehlo.sine %x : " M "\n%b = stablehlo.cosine %x : " M "\n"
     "%r:2 = \"stablehlo.scatter\"(%a, %b, %i, %y, %z) <{scatter_dimension_numbers = "
     "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
     "^bb0(%p: " F ", %q: " F ", %u: " F ", %v: " F "):\n"
     "%s = stablehlo.add %u, %p : " F "\n%t = stablehlo.maximum %q, %v : " F "\n"
     "stablehlo.return %s, %t : " F ", " F "\n}) : (" M ", " M
     ", tensor<2x1xi32>, tensor<2x6xf32>, tensor<2x6xf32>) -> (" M ", " M ")\n"
     "%d = stablehlo.subtract %r#1, %b : " M "\n"
     "return %r#0, %r#1, %d : " M ", " M ", " M "\n}\n"},
    {"an array that is changed in place, and one that is still needed",
     HEAD "%n: " I ", %x: " M ", %y: tensor<1x6xf32>) -> (" M ", " M ", " M ") {\n"
          "%0 = stablehlo.constant dense<0> : " I "\n"
          "%a = stablehlo.sine %x : " M "\n%b = stablehlo.cosine %x : " M "\n"
          "%p = stablehlo.dynamic_update_slice %a, %y, %n, %0 : (" M ", tensor<1x6xf32>, " I ", " I
          ") -> " M "\n"
          "%q = stablehlo.dynamic_update_slice %b, %y, %n, %0 : (" M ", tensor<1x6xf32>, " I ", " I
          ") -> " M "\n"
          "%t = stablehlo.dynamic_update_slice %p, %y, %0, %0 : (" M ", tensor<1x6xf32>, " I ", " I
          ") -> " M "\n"
          "%s = stablehlo.subtract %q, %b : " M "\n"
          "return %s, %q, %t : " M ", " M ", " M "\n}\n"},
};

enum { NPROGRAMS = sizeof programs / sizeof *programs, STEPS = 2 };

static sf_graph *load(const program_case *program)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    sf_load_options options = {.size = sizeof options, .unroll = -1};
    if (sf_load_text(program->text, strlen(program->text), "sample", &options, diag, &graph) !=
        SF_OK) {
        print_error("%s: %s\n%s", program->name, sf_diag_text(diag, 0), program->text);
        fail();
    }
    sf_diag_free(diag);
    return graph;
}

/* Whole numbers become `number`; floats are in a small range. */
static void fill(sf_tensor tensor, int64_t number, uint32_t salt)
{
    for (int64_t i = 0; i < tensor.type->count; i++) {
        double x = (double)((uint32_t)(i + 1) * 2654435761u * (salt + 1) % 1000) / 500 - 1;
        if (sf_is_float(tensor.type->dtype))
            sf_store_f64(tensor.type->dtype, tensor.data, i, x);
        else
            sf_store_i64(tensor.type->dtype, tensor.data, i, number);
    }
}

static void compare(const char *name, const sf_graph *graph, sf_engine *ours, sf_engine *oracle)
{
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        sf_tensor a = test_result(ours, i), b = test_result(oracle, i);
        for (int64_t k = 0; k < b.type->count; k++) {
            double x = sf_get_f64(&a, k), y = sf_get_f64(&b, k);
            if (fabs(x - y) <= 1e-4 * (1 + fabs(y)))
                continue;
            print_error("%s\nresult %u element %d is %.9g, expected %.9g\n", name, i, (int)k, x, y);
            fail();
        }
    }
}

static void run_program(const program_case *program, int threads, int64_t number)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = load(program);
    sf_runner ours = test_open_engine(graph, "cpu", threads, NULL);
    sf_runner oracle = test_open_engine(graph, "oracle", 1, NULL);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        fill(test_argument(ours.engine, i), number, i);
        fill(test_argument(oracle.engine, i), number, i);
    }
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(sf_engine_step(ours.engine, diag), SF_OK);
        assert_int_equal(sf_engine_step(oracle.engine, diag), SF_OK);
        compare(program->name, graph, ours.engine, oracle.engine);
    }
    sf_runner_close(&ours);
    sf_runner_close(&oracle);
    sf_graph_free(graph);
    sf_diag_free(diag);
}

static void test_programs(void **state)
{
    (void)state;
    for (int i = 0; i < NPROGRAMS; i++)
        for (int64_t number = -1; number < 6; number++)
            run_program(&programs[i], 1 + (int)(number & 1), number);
}

static uint32_t count_bodies(const sf_inst *inst)
{
    bool nests = inst->kind == SF_INST_WHILE || inst->kind == SF_INST_CASE;
    return nests ? inst->nest->nbodies : 0;
}

/* Counts instructions of a kind and of an op, in bodies too. */
static uint32_t count(const sf_program *p, sf_inst_kind kind)
{
    uint32_t found = 0;
    for (size_t i = 0; i < p->ninsts; i++) {
        found += p->insts[i].kind == kind;
        for (uint32_t j = 0; j < count_bodies(&p->insts[i]); j++)
            found += count(p->insts[i].nest->bodies[j], kind);
    }
    return found;
}

static const program_case *find(const char *start)
{
    for (int i = 0; i < NPROGRAMS; i++)
        if (strncmp(programs[i].name, start, strlen(start)) == 0)
            return &programs[i];
    fail();
    return NULL;
}

/* The body of a scan is what it would be at the top: fused loops, and rows written where they stay. */
static void test_scan_is_lowered(void **state)
{
    (void)state;
    sf_graph *graph = load(find("scan"));
    sf_program *program = test_lower(graph);
    assert_int_equal(count(program, SF_INST_WHILE), 1);
    assert_int_equal(count(program, SF_INST_DOT), 1);
    assert_int_equal(count(program, SF_INST_CALL), 2);
    for (size_t i = 0; i < program->ninsts; i++)
        for (uint32_t j = 0; j < count_bodies(&program->insts[i]); j++) {
            const sf_program *body = program->insts[i].nest->bodies[j];
            for (size_t k = 0; k < body->ninsts; k++)
                if (body->insts[k].kind == SF_INST_CALL && body->insts[k].nin == 4)
                    assert_int_equal(body->insts[k].in[0].buffer, body->insts[k].out[0].buffer);
        }
    sf_program_free(program);
    sf_graph_free(graph);
}

static void test_scatter_is_fast(void **state)
{
    (void)state;
    sf_graph *graph = load(find("a scatter of two"));
    uint32_t found = 0;
    for (size_t i = 0; i < graph->nnodes; i++) {
        const sf_type *types[16];
        sf_op op = sf_op_of(graph, graph->nodes[i], types);
        if (sf_is(graph->nodes[i], SF_OP_SCATTER)) {
            int64_t variant;
            assert_non_null(sf_fast_find(&op, &variant));
            found++;
        }
    }
    assert_int_equal(found, 1);
    sf_graph_free(graph);
}

/* Every buffer of a body lies in the arena that its instruction has in the arena of the step. */
static void test_arena_holds_bodies(void **state)
{
    (void)state;
    for (int i = 0; i < NPROGRAMS; i++) {
        sf_graph *graph = load(&programs[i]);
        sf_program *program = test_lower(graph);
        for (size_t k = 0; k < program->ninsts; k++) {
            const sf_inst *inst = &program->insts[k];
            for (uint32_t j = 0; j < count_bodies(inst); j++) {
                const sf_buffer *space = &program->buffers[inst->out[inst->nout - 1].buffer];
                int64_t bytes = program->arena_bytes[SF_SPACE_DEVICE];
                assert_true(inst->nest->bodies[j]->arena_bytes[SF_SPACE_DEVICE] <= space->bytes);
                assert_true(space->offset + space->bytes <= bytes);
            }
        }
        sf_program_free(program);
        sf_graph_free(graph);
    }
}

static void test_bodies_are_printed(void **state)
{
    (void)state;
    sf_graph *graph = load(find("nested"));
    sf_program *program = test_lower(graph);
    sf_buf out = {0};
    sf_program_print(program, &out);
    const char *text = out.text;
    assert_non_null(strstr(text, " while "));
    assert_non_null(strstr(text, "\n      body 1\n    "));
    assert_non_null(strstr(text, "\n          body 1\n        "));
    sf_buf_free(&out);
    sf_program_free(program);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),           cmocka_unit_test(test_scan_is_lowered),
        cmocka_unit_test(test_scatter_is_fast),    cmocka_unit_test(test_arena_holds_bodies),
        cmocka_unit_test(test_bodies_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Primitives and kernels of users, from C: applied, verified on shards, refused, and without
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/mem.h"
#include "sheaf/sheaf.h"

#define STEP "examples/gpt-micro.stablehlo.mlir"

/* Layer norm of x by bias and scale; `add` is its error. */
static void norm(const sf_kernel_tensor *const *in, const sf_kernel_tensor *const *out, float add)
{
    const sf_tensor_type *type = in[0]->type;
    int64_t n = type->dims[type->rank - 1];
    for (int64_t row = 0; row < type->count / n; row++) {
        const float *x = (const float *)in[0]->data + row * n;
        float *y = (float *)out[0]->data + row * n, sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += x[i];
            squares += x[i] * x[i];
        }
        float mean = sum / (float)n, variance = squares / (float)n - mean * mean;
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) / sqrtf(variance + 1e-6f) * ((const float *)in[2]->data)[i] +
                   ((const float *)in[1]->data)[i] + add;
    }
}

static int run_norm(int nin, const sf_kernel_tensor *const *in, int nout,
                    const sf_kernel_tensor *const *out)
{
    assert_int_equal(nin, 3);
    assert_int_equal(nout, 1);
    assert_string_equal(in[0]->type->dtype, "f32");
    norm(in, out, 0);
    return 0;
}

static int run_wrong(int nin, const sf_kernel_tensor *const *in, int nout,
                     const sf_kernel_tensor *const *out)
{
    (void)nin, (void)nout;
    norm(in, out, 0.01F);
    return 0;
}

static int run_broken(int nin, const sf_kernel_tensor *const *in, int nout,
                      const sf_kernel_tensor *const *out)
{
    (void)nin, (void)in, (void)nout, (void)out;
    return 7;
}

static const sf_user_kernel good = {sizeof(sf_user_kernel), SF_PLUGIN_VERSION, "test.norm", 2,
                                    run_norm},
                            wrong = {sizeof(sf_user_kernel), SF_PLUGIN_VERSION, "test.wrong", 2,
                                     run_wrong},
                            broken = {sizeof(sf_user_kernel), SF_PLUGIN_VERSION, "test.broken", 0,
                                      run_broken};

/* The first value is the name of the kernel. */
static int check_call(sf_user_call *call)
{
    if (call->nvalues == 1 && call->texts[0])
        return 0;
    snprintf(call->reason, sizeof call->reason, "say a kernel");
    return 1;
}

static sf_status sketch_kernel(const sf_user_call *call, int number, sf_sketch **out)
{
    const sf_plugin_host *host = call->host;
    sf_sketch_attr name = {
        .size = sizeof name, .name = "call_target_name", .count = -2, .text = call->texts[0]};
    const sf_sketch_attr *attrs[] = {&name};
    sf_tensor_type type = {.size = sizeof type};
    int inputs[3], made;
    sf_subgraph_view view = {.size = sizeof view};
    assert_true(host->subgraph(call->list, number, &view));
    assert_int_equal(view.inputs, 3);
    assert_true(host->subgraph_result(call->list, number, 0, &type));
    assert_false(host->subgraph_result(call->list, number, 1, &type));
    sf_status status = host->sketch_new(call->diag, out);
    for (int i = 0; i < 3 && status == SF_OK; i++)
        status = host->sketch_input(*out, call->diag, &inputs[i]);
    if (status == SF_OK)
        status = host->sketch_op(*out, "custom_call", 3, inputs, 1, attrs, type.rank, type.dims,
                                 type.dtype, call->diag, &made);
    return status == SF_OK ? host->sketch_return(*out, 1, &made, call->diag) : status;
}

static int apply_call(sf_user_call *call)
{
    int first, count;
    sf_sketch *sketch = NULL;
    sf_status status =
        call->host->find_modules(call->list, call->module, call->diag, &first, &count);
    if (status == SF_OK)
        status = sketch_kernel(call, first, &sketch);
    if (status == SF_OK) {
        sf_primitive said = {.size = sizeof said,
                             .kind = SF_PRIMITIVE_REPLACE,
                             .module = call->module,
                             .subgraphs = &first,
                             .nsubgraphs = 1,
                             .sketches = (const sf_sketch *const *)&sketch};
        status = call->host->add(call->list, &said, call->diag, NULL);
    }
    call->host->sketch_free(sketch);
    return status != SF_OK;
}

static const sf_user_primitive primitive = {sizeof(sf_user_primitive), SF_PLUGIN_VERSION, "call",
                                            check_call, apply_call};

static sf_status apply(sf_primitives *list, const char *kernel, sf_diag *diag, int *count)
{
    return sf_primitives_apply(list, &primitive, "layer_0.norm1", kernel ? 1 : 0, &kernel,
                               (double[]){0}, "s.lua", 5, diag, NULL, count);
}

/* Verifies a kernel on so many ranks; `diag` names the culprit. */
static sf_status verify(const char *kernel, int ranks, sf_diag *diag, int *culprit)
{
    sf_graph *graph;
    sf_primitives *list;
    sf_verify_report *report;
    int count;
    assert_int_equal(sf_load(STEP, NULL, NULL, &graph), SF_OK);
    assert_int_equal(sf_primitives_new(graph, NULL, &list), SF_OK);
    assert_int_equal(apply(list, kernel, NULL, &count), SF_OK);
    assert_int_equal(count, 2); /* a note with its name, and its primitive */
    assert_string_equal(sf_primitives_text(list, 0), "layer_0.norm1: annotate primitive = call");
    sf_status status = sf_primitives_verify(
        list, &(sf_plan_spec){.size = sizeof(sf_plan_spec), .recipe = "dp", .ranks = ranks},
        &(sf_verify_options){.size = sizeof(sf_verify_options), .steps = 1, .threads = 1}, diag,
        &report, culprit);
    sf_verify_free(report);
    sf_primitives_free(list);
    sf_graph_free(graph);
    return status;
}

static void test_kernels(void **state)
{
    (void)state;
    sf_diag diag = {0};
    int culprit;
    assert_int_equal(sf_bind_kernel(&good, NULL), SF_OK);
    assert_int_equal(sf_bind_kernel(&good, NULL), SF_OK);
    assert_int_equal(sf_bind_kernel(&wrong, NULL), SF_OK);
    assert_int_equal(sf_bind_kernel(&broken, NULL), SF_OK);
    for (int ranks = 1; ranks <= 4; ranks *= 2) {
        assert_int_equal(verify("test.norm", ranks, NULL, &culprit), SF_OK);
        assert_int_equal(culprit, -1);
    }
    assert_int_equal(verify("test.wrong", 2, &diag, &culprit), SF_EMISMATCH);
    assert_int_equal(culprit, 1);
    sf_diag_clear(&diag);
    assert_int_equal(verify("test.broken", 1, &diag, &culprit), SF_EMISMATCH);
    assert_non_null(strstr(diag.messages[0].text, "kernel test.broken failed, with 7"));
    sf_diag_clear(&diag);
}

static void test_refuses(void **state)
{
    (void)state;
    static const sf_user_kernel backward = {sizeof(sf_user_kernel), SF_PLUGIN_VERSION, "test.norm",
                                            2, run_wrong},
                                newer = {sizeof(sf_user_kernel), SF_PLUGIN_VERSION + 1, "test.new",
                                         2, run_norm};
    sf_graph *graph;
    sf_primitives *list;
    sf_diag diag = {0};
    int count;
    assert_int_equal(sf_bind_kernel(&good, NULL), SF_OK);
    assert_int_equal(sf_bind_kernel(&backward, NULL), SF_EUSAGE);
    assert_int_equal(sf_bind_kernel(&newer, NULL), SF_EUSAGE);
    assert_int_equal(sf_load(STEP, NULL, NULL, &graph), SF_OK);
    assert_int_equal(sf_primitives_new(graph, NULL, &list), SF_OK);
    assert_int_equal(apply(list, NULL, &diag, &count), SF_EMISMATCH);
    assert_int_equal(count, 0);
    assert_string_equal(diag.messages[0].text, "call: say a kernel");
    assert_int_equal(diag.messages[0].loc.line, 5);
    sf_diag_clear(&diag);
    assert_int_equal(sf_primitives_count(list), 0);
    sf_primitives_free(list);
    sf_graph_free(graph);
}

static void test_memory(void **state)
{
    (void)state;
    sf_graph *graph;
    sf_primitives *list;
    sf_status status = SF_ENOMEM;
    int count;
    assert_int_equal(sf_bind_kernel(&good, NULL), SF_OK);
    assert_int_equal(sf_load(STEP, NULL, NULL, &graph), SF_OK);
    long before = (long)sf_mem_live();
    for (long after = 0; status != SF_OK; after += after / 16 + 1) {
        assert_int_equal(sf_primitives_new(graph, NULL, &list), SF_OK);
        sf_mem_fail_after(after);
        status = apply(list, "test.norm", NULL, &count);
        sf_mem_fail_after(-1);
        if (status != SF_OK) {
            assert_int_equal(sf_primitives_count(list), 0);
            assert_ptr_equal(sf_primitives_graph(list), graph);
        }
        sf_primitives_free(list);
        assert_int_equal((long)sf_mem_live(), before);
    }
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels),
                                       cmocka_unit_test(test_refuses),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

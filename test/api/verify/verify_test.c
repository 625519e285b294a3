/* sf_verify: mistakes that it must find, differences that it must allow, and failures of memory.
 * The files are those of a small training step with JAX's own results. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "file/safetensors.h"
#include "ir/graph.h"

static const char step_file[] = "examples/gpt-micro.hlo";
static const char values_file[] = "examples/gpt-micro.io.safetensors";
static char path[] = "/tmp/sheaf-verify-XXXXXX";
static sf_graph *graph;

static int load(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0)
        return -1;
    return sf_load(step_file, NULL, NULL, &graph) == SF_OK ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    sf_graph_free(graph);
    return unlink(path);
}

static sf_status verify(const char *file, int steps, sf_verify_report **report)
{
    sf_verify_options options = {.size = sizeof options, .against = file, .steps = steps};
    return sf_verify(graph, &options, NULL, report);
}

static void test_passes(void **state)
{
    (void)state;
    sf_verify_report *report;
    assert_int_equal(verify(values_file, 0, &report), SF_OK);
    assert_true(report->passed);
    assert_int_equal(report->nresults, 110);
    assert_int_equal(report->nlosses, 10);
    assert_true(report->loss_error < 1e-6);
    assert_true(report->results[report->worst]->error < 1e-4);
    /* The two key biases, whose gradients are zero in mathematics, and few elements more. */
    int64_t excused = 0;
    for (int i = 0; i < 36; i++)
        excused += report->results[i]->excused;
    assert_in_range(excused, 2 * 16, 2 * 16 + 8);
    assert_int_equal(report->results[0]->excused, 16);
    assert_int_equal(report->results[16]->excused, 16);
    assert_int_equal(report->noisy_runs, 2);
    sf_verify_free(report);
    assert_int_equal(verify(values_file, -1, &report), SF_OK);
    assert_int_equal(report->nlosses, 0);
    sf_verify_free(report);
}

/* Adds `change` to one element of a tensor of the file and verifies against that. */
static sf_status verify_changed(const char *name, int64_t element, double change, int steps,
                                int *worst)
{
    sf_safetensors file;
    assert_int_equal(sf_safetensors_read(values_file, NULL, &file), SF_OK);
    const sf_tensor *tensor = sf_safetensors_find(&file, name);
    assert_non_null(tensor);
    sf_store_f64(tensor->type->dtype, tensor->data, element, sf_get_f64(tensor, element) + change);
    assert_int_equal(sf_safetensors_write(path, file.count, file.tensors, NULL), SF_OK);
    sf_safetensors_close(&file);
    sf_verify_report *report;
    sf_status status = verify(path, steps, &report);
    assert_non_null(report);
    assert_int_equal(report->passed, status == SF_OK);
    *worst = report->worst;
    sf_verify_free(report);
    return status;
}

static void test_finds_changes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t element;
        double change;
        sf_status status;
        int result;
    } cases[] = {
        {"out.0", 3, 0.0003, SF_OK, -1},         /* key bias: within the size of an update */
        {"out.0", 3, 0.01, SF_EMISMATCH, 0},     /* and beyond */
        {"out.4", 3, 1e-6, SF_EMISMATCH, 4},     /* query bias: its gradient is not zero */
        {"out.1", 7, 1e-3, SF_EMISMATCH, 1},     /* a kernel */
        {"out.36", 0, 1, SF_EMISMATCH, 36},      /* the count, an integer */
        {"out.37", 2, 1e-11, SF_OK, -1},         /* first moment of the key bias: noise */
        {"out.37", 2, 1e-6, SF_EMISMATCH, 37},   /* and no noise */
        {"out.38", 2, 1e-5, SF_EMISMATCH, 38},   /* first moment of a kernel */
        {"out.73", 2, 1e-13, SF_EMISMATCH, 73},  /* second moment of the key bias */
        {"out.109", 0, 1e-3, SF_EMISMATCH, 109}, /* the loss */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int worst;
        sf_status status =
            verify_changed(cases[i].name, cases[i].element, cases[i].change, 1, &worst);
        if (status != cases[i].status || (cases[i].result >= 0 && worst != cases[i].result))
            fail_msg("%s changed by %g: %s, worst %d", cases[i].name, cases[i].change,
                     sf_status_name(status), worst);
    }
}

typedef struct known {
    const char *file, *values;
    double one_off; /* by how much of the tensor's scale one element changes */
} known;

static const known steps[] = {
    {"test/data/micro/mlp-micro.hlo.xz", "test/data/micro/mlp-micro.io.safetensors", 0.01},
    {"test/data/micro/gpt-bf16-micro.hlo.xz", "test/data/micro/gpt-bf16-micro.io.safetensors", 1.5},
};

typedef enum change {
    NOTHING,
    TENTH_MORE,        /* all elements of a result by a tenth larger */
    NO_UPDATE,         /* a weight stays as it was */
    TENTH_MORE_UPDATE, /* its change is a tenth larger */
    ONE_ELEMENT,
    LOSS, /* the expected loss of step 0 by a tenth larger */
} change;

static double scale_of(const sf_tensor *tensor)
{
    double sum = 0;
    for (int64_t i = 0; i < tensor->type->count; i++)
        sum += sf_get_f64(tensor, i) * sf_get_f64(tensor, i);
    return sqrt(sum / (double)tensor->type->count);
}

static void change_element(const sf_tensor *tensor, int64_t i, double value)
{
    sf_store_f64(tensor->type->dtype, tensor->data, i, value);
}

static void apply(change what, double one_off, const sf_tensor *in, const sf_tensor *out)
{
    if (what == ONE_ELEMENT) {
        int64_t middle = out->type->count / 2;
        change_element(out, middle, sf_get_f64(out, middle) + one_off * scale_of(out));
        return;
    }
    for (int64_t i = 0; i < out->type->count; i++) {
        double after = sf_get_f64(out, i), before = in ? sf_get_f64(in, i) : 0;
        if (what == TENTH_MORE)
            change_element(out, i, 1.1 * after);
        else if (what == NO_UPDATE)
            change_element(out, i, before);
        else if (what == TENTH_MORE_UPDATE)
            change_element(out, i, before + 1.1 * (after - before));
    }
}

/* Verifies a step against its values with one result, or the first loss, changed. */
static sf_status verify_mutated(const sf_graph *of, const known *step, uint32_t result, change what)
{
    sf_safetensors file;
    char name[32];
    assert_int_equal(sf_safetensors_read(step->values, NULL, &file), SF_OK);
    snprintf(name, sizeof name, "in.%u", result);
    const sf_tensor *in = sf_safetensors_find(&file, name);
    snprintf(name, sizeof name, "out.%u", result);
    const sf_tensor *losses = sf_safetensors_find(&file, "losses");
    if (what == LOSS)
        change_element(losses, 0, 1.1 * sf_get_f64(losses, 0));
    else
        apply(what, step->one_off, in, sf_safetensors_find(&file, name));
    assert_int_equal(sf_safetensors_write(path, file.count, file.tensors, NULL), SF_OK);
    sf_safetensors_close(&file);
    sf_verify_options options = {.size = sizeof options, .against = path, .steps = 1};
    sf_verify_report *report;
    sf_status status = sf_verify(of, &options, NULL, &report);
    assert_non_null(report);
    if (status != SF_OK && what != LOSS)
        assert_int_equal(report->worst, result);
    sf_verify_free(report);
    return status;
}

/* Every weight, but for the key biases, whose gradients are zero; one step computes in 16 bits. */
static void test_finds_wrong_weights(void **state)
{
    (void)state;
    if (!SF_FEATURE_LZMA)
        skip();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        sf_graph *of;
        assert_int_equal(sf_load(steps[i].file, NULL, NULL, &of), SF_OK);
        assert_int_equal(verify_mutated(of, &steps[i], 0, NOTHING), SF_OK);
        assert_int_equal(verify_mutated(of, &steps[i], 0, LOSS), SF_EMISMATCH);
        for (uint32_t k = 0; k < of->top->narguments; k++) {
            const sf_argument *argument = &of->arguments[k];
            if (argument->role != SF_ROLE_PARAM || strstr(argument->name, "__k____bias"))
                continue;
            for (change what = TENTH_MORE; what < LOSS; what++)
                if (verify_mutated(of, &steps[i], argument->next, what) != SF_EMISMATCH)
                    fail_msg("%s: change %d of %s was not found", steps[i].file, what,
                             argument->name);
        }
        sf_graph_free(of);
    }
}

static void test_finds_other_losses(void **state)
{
    (void)state;
    int worst;
    assert_int_equal(verify_changed("losses", 2, 1e-2, 3, &worst), SF_EMISMATCH);
    assert_int_equal(verify_changed("losses", 3, 1e-2, 3, &worst), SF_OK);
    /* A label out of place in the second batch shows in the second loss. */
    assert_int_equal(verify_changed("batch.1.labels", 0, 1, 2, &worst), SF_EMISMATCH);
    assert_int_equal(verify_changed("batch.1.labels", 0, 1, 1, &worst), SF_OK);
}

static void test_misuse(void **state)
{
    (void)state;
    sf_verify_report *report;
    assert_int_equal(verify(NULL, 0, &report), SF_EUSAGE);
    assert_null(report);
    assert_int_equal(verify(values_file, 11, &report), SF_EINPUT);
    assert_null(report);
    assert_int_equal(verify("nowhere", 0, &report), SF_EIO);
    assert_int_equal(verify(step_file, 0, &report), SF_EINPUT);
    sf_verify_free(NULL);
}

/* Every allocation that fails is reported as such, and nothing leaks; the graph stays whole. */
static void test_without_memory(void **state)
{
    (void)state;
    size_t live = sf_mem_live();
    long successes = 0;
    for (sf_status status = SF_ENOMEM; status != SF_OK; successes += 1 + successes / 8) {
        sf_verify_report *report;
        sf_mem_fail_after(successes);
        status = verify(values_file, 1, &report);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        sf_verify_free(report);
        assert_int_equal(sf_mem_live(), live);
    }
    assert_true(successes > 100);
}

static void test_eval_without_memory(void **state)
{
    (void)state;
    size_t live = sf_mem_live();
    sf_eval_options options = {.size = sizeof options, .inputs = values_file, .outputs = path};
    long successes = 0;
    for (sf_status status = SF_ENOMEM; status != SF_OK; successes += 1 + successes / 8) {
        sf_mem_fail_after(successes);
        status = sf_eval_file(graph, &options, NULL);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        assert_int_equal(sf_mem_live(), live);
    }
    sf_safetensors file;
    assert_int_equal(sf_safetensors_read(path, NULL, &file), SF_OK);
    assert_int_equal(file.count, 110);
    sf_safetensors_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_finds_changes),
        cmocka_unit_test(test_finds_wrong_weights),
        cmocka_unit_test(test_finds_other_losses),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_eval_without_memory),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

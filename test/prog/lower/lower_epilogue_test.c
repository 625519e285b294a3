/* Which loops become epilogues of products, and that the product is stored in the memory of a
 * result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sheaf/graph.h"
#include "support/products.h"
#include "support/run.h"

static sf_program *lower_text(const char *text, sf_graph **graph)
{
    sf_diag *diag = sf_diag_new();
    sf_load_options load = {.size = sizeof load, .unroll = -1};
    if (sf_load_text(text, strlen(text), "step", &load, diag, graph) != SF_OK)
        fail_msg("%s\n%s", text, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return test_lower(*graph);
}

static bool is_product(const sf_inst *inst)
{
    return inst->kind == SF_INST_DOT || inst->kind == SF_INST_CONV;
}

static const sf_inst *find_fused(const sf_program *p)
{
    const sf_inst *found = NULL;
    for (size_t i = 0; i < p->ninsts; i++)
        if (is_product(&p->insts[i]) && p->insts[i].loop)
            found = &p->insts[i];
    return found;
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < product_case_count; i++) {
        const product_case *c = &product_cases[i];
        static char text[8192];
        product_text(c, (product_size){12, 36, 48, 40}, "f32", text, sizeof text);
        sf_graph *graph;
        sf_program *p = lower_text(text, &graph);
        const sf_inst *fused = find_fused(p);
        bool in_place = false;
        for (uint32_t n = 1; fused && n < fused->nout; n++)
            in_place = in_place || fused->out[n].buffer == fused->out[0].buffer;
        if (!fused != !c->is_fused || in_place != c->is_fused)
            fail_msg("%s: %s\n%s", c->name, fused ? "fused" : "not fused", text);
        sf_program_free(p);
        sf_graph_free(graph);
    }
}

/* Rows and columns of the loop are those of the product, and it reads the product flat. */
static void test_shape(void **state)
{
    (void)state;
    for (size_t i = 0; i < product_case_count; i++) {
        static char text[8192];
        product_text(&product_cases[i], (product_size){13, 20, 32, 17}, "f32", text, sizeof text);
        sf_graph *graph;
        sf_program *p = lower_text(text, &graph);
        const sf_inst *fused = find_fused(p);
        if (fused) {
            const sf_loop *loop = fused->loop;
            assert_int_equal(loop->columns, 32);
            assert_int_equal(loop->rows * 32, sf_view_count(&fused->out[0]));
            int64_t columns = 1;
            for (int d = loop->split; d < loop->rank; d++)
                columns *= loop->dims[d];
            assert_int_equal(columns, 32);
            bool reads = false;
            for (uint32_t n = 2; n < fused->nin; n++)
                reads = reads || fused->in[n].buffer == fused->out[0].buffer;
            assert_true(reads);
        }
        sf_program_free(p);
        sf_graph_free(graph);
    }
}

/* Not at sizes where it does not pay: narrow products, and folds of few rows. */
static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        product_size size;
        bool is_fused;
    } sizes[] = {
        {"residual", {1, 300, 31, 8}, false}, {"residual", {1, 300, 32, 8}, true},
        {"residual", {1, 1, 32, 8}, true},    {"softmax", {1, 255, 64, 8}, false},
        {"softmax", {1, 256, 64, 8}, true},   {"softmax", {32, 8, 64, 8}, true},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < product_case_count; j++) {
            static char text[8192];
            sf_graph *graph;
            if (strcmp(product_cases[j].name, sizes[i].name) != 0)
                continue;
            product_text(&product_cases[j], sizes[i].size, "f32", text, sizeof text);
            sf_program *p = lower_text(text, &graph);
            assert_int_equal(find_fused(p) != NULL, sizes[i].is_fused);
            sf_program_free(p);
            sf_graph_free(graph);
        }
}

/* The program is printed with it. */
static void test_print(void **state)
{
    (void)state;
    static char text[8192];
    product_text(&product_cases[0], (product_size){1, 24, 48, 40}, "f32", text, sizeof text);
    sf_graph *graph;
    sf_program *p = lower_text(text, &graph);
    sf_buf out = {0};
    sf_program_print(p, &out);
    assert_non_null(strstr(out.text, "dot  24x48x40 + loop 24x48 ops 7 folds 0"));
    sf_buf_free(&out);
    sf_program_free(p);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

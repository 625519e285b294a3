#include "support/nvrtc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"

const sf_cuda_compiler *test_nvrtc(void)
{
    sf_diag *diag = sf_diag_new();
    const sf_cuda_compiler *compiler = NULL;
    if (sf_cuda_load_compiler(diag, &compiler) != SF_OK)
        compiler = NULL;
    sf_diag_free(diag);
    return compiler;
}

void test_nvrtc_compile(const sf_cuda_compiler *compiler, const sf_kernels *kernels, size_t first,
                        size_t count, const char *architecture)
{
    char arch[32];
    const char *const options[] = {arch, "--fmad=false", "-w"};
    sf_buf text = {0};
    void *program = NULL;
    size_t size = 0;
    snprintf(arch, sizeof arch, "-arch=%s", architecture);
    sf_kernels_text(kernels, first, count, false, &text);
    assert_int_equal(compiler->create(&program, text.text, "text.cu", 0, NULL, NULL), 0);
    int status = compiler->compile(program, 3, options);
    compiler->log_size(program, &size);
    char *log = sf_alloc(size + 1);
    compiler->log(program, log);
    if (status != 0)
        print_error("%.2000s\n", log);
    sf_free(log);
    compiler->destroy(&program);
    sf_buf_free(&text);
    assert_int_equal(status, 0);
}

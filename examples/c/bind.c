/* A primitive of one's own: module:bind("kernel.c") computes a module by a kernel in C. The source is compiled with the system's
 * compiler, CC, loaded, and called in place of the ops of the module's forward pass; the backward pass stays as it is. The
 * kernel exports sheaf_kernel (sheaf/plugin.h); norm_kernel.c is one.
 *
 *     make bind.so
 *     sheaf verify step.mlir --unsafe --schedule s.lua      with  sheaf.plugin("./bind.so")
 *                                                                 sheaf.schedule()["layer_?.norm1"]:bind("norm_kernel.c")
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sheaf/plugin.h>

static int refuse(sf_user_call *call, const char *why, const char *what)
{
    snprintf(call->reason, sizeof call->reason, "%s%s", why, what);
    return 1;
}

static int check(sf_user_call *call)
{
    if (call->nvalues != 1 || !call->texts[0])
        return refuse(call, "say the file of the kernel: bind(\"kernel.c\")", "");
    if (strchr(call->texts[0], '\'') || access(call->texts[0], R_OK) != 0)
        return refuse(call, "there is no such file: ", call->texts[0]);
    return 0;
}

/* Compiles the source to an object in a file that nobody needs once it is loaded. */
static const sf_user_kernel *compile(const char *source)
{
    char object[] = "/tmp/sheaf-bind-XXXXXX.so", command[2000];
    int file = mkstemps(object, 3);
    if (file < 0)
        return NULL;
    close(file);
    snprintf(command, sizeof command,
             "${CC:-cc} -std=c17 -O3 -march=native -shared -fPIC ${CFLAGS:-} -o '%s' '%s' -lm",
             object, source);
    void *loaded = system(command) == 0 ? dlopen(object, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = loaded ? dlsym(loaded, SF_USER_KERNEL_SYMBOL) : NULL;
    unlink(object);
    sf_user_kernel_get *get;
    memcpy(&get, &symbol, sizeof get);
    return symbol ? get() : NULL;
}

/* The call of the kernel, on whatever the module reads. */
static sf_sketch *sketch_call(sf_user_call *call, int module, const char *kernel)
{
    const sf_plugin_host *host = call->host;
    sf_subgraph_view view = {.size = sizeof view};
    host->subgraph(call->list, module, &view);
    sf_sketch_attr name = {
        .size = sizeof name, .name = "call_target_name", .count = -2, .text = kernel};
    sf_tensor_type made = {.size = sizeof made};
    sf_sketch *sketch;
    int inputs[32], result;
    if (view.results != 1 || view.inputs > 32 || host->sketch_new(call->diag, &sketch) != SF_OK)
        return NULL;
    host->subgraph_result(call->list, module, 0, &made);
    sf_status status = SF_OK;
    for (int i = 0; i < view.inputs && status == SF_OK; i++)
        status = host->sketch_input(sketch, call->diag, &inputs[i]);
    if (status == SF_OK)
        status = host->sketch_op(sketch, "custom_call", view.inputs, inputs, 1,
                                 &(const sf_sketch_attr *){&name}, made.rank, made.dims, made.dtype,
                                 call->diag, &result);
    if (status == SF_OK && host->sketch_return(sketch, 1, &result, call->diag) == SF_OK)
        return sketch;
    host->sketch_free(sketch);
    return NULL;
}

enum { MOST = 256 };

static int apply(sf_user_call *call)
{
    const sf_plugin_host *host = call->host;
    const sf_user_kernel *kernel = compile(call->texts[0]);
    sf_sketch *sketches[MOST];
    int first, count, made = 0, numbers[MOST], failed = 0;
    if (!kernel)
        return refuse(call, "it does not compile to a kernel: ", call->texts[0]);
    if (host->bind_kernel(kernel, call->diag) != SF_OK ||
        host->find_modules(call->list, call->module, call->diag, &first, &count) != SF_OK)
        return 1;
    for (; made < count && made < MOST && !failed; made += !failed) {
        numbers[made] = first + made;
        sketches[made] = sketch_call(call, first + made, kernel->name);
        failed = !sketches[made] && refuse(call, "a kernel makes one result: ", call->module);
    }
    sf_primitive said = SF_OPTIONS(
        sf_primitive, .kind = SF_PRIMITIVE_REPLACE, .module = call->module, .name = kernel->name,
        .subgraphs = numbers, .nsubgraphs = made, .sketches = (const sf_sketch *const *)sketches);
    if (!failed)
        failed = host->add(call->list, &said, call->diag, NULL) != SF_OK;
    while (made > 0)
        host->sketch_free(sketches[--made]);
    return failed;
}

SF_API const sf_user_primitive *sheaf_primitive(void)
{
    static const sf_user_primitive primitive = {sizeof primitive, SF_PLUGIN_VERSION, "bind", check,
                                                apply};
    return &primitive;
}

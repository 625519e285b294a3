/* Primitives and kernels of users, from shared objects (sheaf/plugin.h). */
#include "api/primitive/primitives.h"
#include "base/boundary.h"
#include "base/native/plugin.h"
#include "op/user_kernel.h"

sf_status sf_bind_kernel(const sf_user_kernel *kernel, sf_diag *diag)
{
    SF_NEED(diag, kernel);
    return sf_bound_add(kernel, diag);
}

static const sf_plugin_host host = {
    .size = sizeof host,
    .version = SF_PLUGIN_VERSION,
    .add = sf_primitives_add,
    .modules = sf_primitives_modules,
    .find = sf_primitives_find,
    .find_modules = sf_primitives_find_modules,
    .subgraph = sf_primitives_subgraph,
    .subgraph_input = sf_primitives_subgraph_input,
    .subgraph_result = sf_primitives_subgraph_result,
    .sketch_new = sf_sketch_new,
    .sketch_free = sf_sketch_free,
    .sketch_input = sf_sketch_input,
    .sketch_number = sf_sketch_number,
    .sketch_op = sf_sketch_op,
    .sketch_return = sf_sketch_return,
    .bind_kernel = sf_bind_kernel,
};

sf_status sf_primitive_load(const char *path, sf_diag *diag, const sf_user_primitive **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, path, out);
    static const sf_plugin_kind kind = {"primitive", SF_USER_PRIMITIVE_SYMBOL, SF_PLUGIN_VERSION,
                                        sizeof(sf_user_primitive)};
    const void *given;
    SF_TRY(sf_plugin_open(path, &kind, diag, &given));
    const sf_user_primitive *user = given;
    if (!user->name || !user->apply)
        return sf_fail(diag, SF_EUSAGE, (sf_loc){.file = path},
                       "this primitive has no name, or no apply");
    *out = user;
    return SF_OK;
}

/* The result of its function. If it gives no reason, a function of the host has given one. */
static sf_status call_user(const sf_user_primitive *user, int (*function)(sf_user_call *),
                           sf_user_call *call)
{
    sf_loc at = {.file = call->list->file, .line = (uint32_t)call->list->line};
    int before = call->diag ? call->diag->count : 0;
    if (function(call) == 0)
        return SF_OK;
    call->reason[sizeof call->reason - 1] = 0;
    for (int i = before; !*call->reason && call->diag && i < call->diag->count && i < SF_DIAG_KEPT;
         i++)
        if (call->diag->messages[i].status != SF_OK)
            return call->diag->messages[i].status;
    return sf_fail(call->diag, SF_EMISMATCH, at, "%s: %s", user->name,
                   *call->reason ? call->reason : "it does not apply here");
}

/* After an ANNOTATE with its name. */
static sf_status apply_user(const sf_user_primitive *user, sf_user_call *call)
{
    sf_primitive note = {.size = sizeof note,
                         .kind = SF_PRIMITIVE_ANNOTATE,
                         .module = call->module,
                         .name = "primitive",
                         .value = user->name};
    SF_TRY(sf_primitives_add(call->list, &note, call->diag, NULL));
    return call_user(user, user->apply, call);
}

sf_status sf_primitives_apply(sf_primitives *list, const sf_user_primitive *primitive,
                              const char *module, int nvalues, const char *const *texts,
                              const double *numbers, const char *file, int line, sf_diag *diag,
                              int *first, int *count)
{
    SF_NEED(diag, list, primitive, module);
    if (nvalues > 0)
        SF_NEED(diag, texts, numbers);
    sf_user_call call = {.size = sizeof call,
                         .host = &host,
                         .list = list,
                         .module = module,
                         .nvalues = nvalues,
                         .texts = texts,
                         .numbers = numbers,
                         .diag = diag};
    SF_TRY(sf_check_held(list, (sf_loc){.file = file, .line = (uint32_t)line}, diag));
    int number = sf_primitives_next(list);
    list->file = file;
    list->line = line;
    sf_status status = SF_OK;
    if (primitive->check)
        status = call_user(primitive, primitive->check, &call);
    if (status == SF_OK)
        status = apply_user(primitive, &call);
    list->file = NULL;
    if (status != SF_OK)
        sf_primitives_undo_between(list, number, sf_primitives_next(list), NULL);
    if (first)
        *first = number;
    if (count)
        *count = sf_primitives_between(list, number, sf_primitives_next(list));
    return status;
}

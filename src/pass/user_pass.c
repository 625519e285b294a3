/* Passes of users: shared objects that put instructions into another order (sheaf/pass.h). */
#include "base/native/plugin.h"
#include "pass/pass_scope.h"
#include "pass/passes.h"
#include "prog/edit_program.h"
#include "prog/instruction_deps.h"
#include "sheaf/pass.h"

static const char *kind_of(const sf_inst *inst)
{
    return inst->kind == SF_INST_COMM ? sf_exchange_name(inst->exchange)
                                      : sf_inst_kind_name(inst->kind);
}

static sf_user_inst describe(const sf_pass_scope *scope, uint32_t index, const sf_deps *deps)
{
    const sf_program *p = scope->program;
    const sf_inst *inst = &p->insts[index];
    const sf_timing *timing = &scope->sim->insts[index];
    int64_t bytes = 0;
    for (uint32_t j = 0; j < inst->nout; j++)
        bytes += p->buffers[inst->out[j].buffer].bytes;
    return (sf_user_inst){.kind = kind_of(inst),
                          .scope = inst->origin.scope,
                          .seconds = timing->end - timing->start,
                          .exposed = timing->exposed,
                          .bytes = bytes,
                          .memory = scope->base + scope->live[index],
                          .goes_beside = sf_goes_beside(inst),
                          .nbefore = deps->first[index + 1] - deps->first[index],
                          .before = deps->before + deps->first[index]};
}

static sf_status fail_user(const sf_passing *passing, sf_status kind, const char *what)
{
    return sf_fail(passing->diag, kind, SF_NOWHERE, "pass %s: %s", passing->user->name, what);
}

static sf_status run_scope(const sf_passing *passing, const sf_pass_scope *scope)
{
    sf_program *p = scope->program;
    sf_arena *arena = passing->scratch;
    sf_deps deps = sf_deps_of(p, arena);
    sf_user_inst *insts = SF_ARRAY(arena, p->ninsts, sf_user_inst);
    sf_user_passing given = {.count = (uint32_t)p->ninsts,
                             .insts = insts,
                             .limit = passing->limit,
                             .runs = scope->runs,
                             .order = SF_ARRAY(arena, p->ninsts, uint32_t)};
    for (uint32_t i = 0; i < p->ninsts; i++) {
        insts[i] = describe(scope, i, &deps);
        given.order[i] = i;
    }
    uint32_t *order = given.order; /* wherever it says that this is now */
    int failed = passing->user->run(&given);
    given.note[sizeof given.note - 1] = 0;
    if (failed)
        return fail_user(passing, SF_EMISMATCH, *given.note ? given.note : "it failed");
    if (!sf_deps_allow(&deps, order, p->ninsts, arena))
        return fail_user(passing, SF_EMISMATCH,
                         "its order leaves out an instruction, or has one before what it needs");
    sf_program_arrange(p, order, p->ninsts);
    if (*given.note && passing->note->length == 0)
        sf_buf_show(passing->note, sf_str_of(given.note));
    return SF_OK;
}

static sf_status run_user(sf_passing *passing)
{
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(passing, passing->scratch, &scopes);
    for (size_t s = 0; s < count; s++)
        SF_TRY(run_scope(passing, &scopes[s]));
    if (passing->note->length == 0)
        sf_buf_puts(passing->note, "another order");
    return SF_OK;
}

static sf_status open_user(const char *path, sf_diag *diag, const sf_user_pass **out)
{
    static const sf_plugin_kind kind = {"pass", SF_USER_PASS_SYMBOL, SF_USER_PASS_VERSION};
    const void *given;
    SF_TRY(sf_plugin_open(path, &kind, diag, &given));
    *out = given;
    if (!(*out)->name || !(*out)->run)
        return sf_fail(diag, SF_EUSAGE, (sf_loc){.file = path}, "this pass has no name, or no run");
    return SF_OK;
}

sf_status sf_pass_load(const char *path, sf_arena *arena, sf_diag *diag, sf_chosen_pass *out)
{
    const sf_user_pass *user = NULL;
    SF_TRY(open_user(path, diag, &user));
    sf_program_pass *pass = SF_NEW(arena, sf_program_pass);
    *pass = (sf_program_pass){.name = user->name,
                              .about = "",
                              .needs = "",
                              .provides = "",
                              .aim = user->aim == SF_USER_FOR_MEMORY ? SF_PASS_FOR_MEMORY
                                                                     : SF_PASS_FOR_TIME,
                              .run = run_user};
    *out = (sf_chosen_pass){.pass = pass, .file = path, .user = user};
    return SF_OK;
}

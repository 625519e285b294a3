#include <string.h>

#include "prog/check_program.h"

/* The collectives of a program in order; those of bodies come where their instruction is. */
typedef struct collectives {
    sf_arena arena;
    const sf_inst **at;
    size_t count, capacity;
} collectives;

static void list_collectives(collectives *list, const sf_program *p)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        if (inst->kind == SF_INST_COMM)
            SF_PUSH(&list->arena, list->at, list->count, list->capacity, inst);
        for (uint32_t j = 0; j < sf_body_count(inst); j++)
            list_collectives(list, inst->nest->bodies[j]);
    }
}

static bool same_parts(const sf_inst *a, const sf_inst *b)
{
    bool same = a->nin == b->nin && a->nout == b->nout;
    for (uint32_t i = 0; same && i < a->nin; i++) {
        sf_part_origin x = sf_exchange_part(a->exchange, i), y = sf_exchange_part(b->exchange, i);
        same = x.number == y.number && x.part == y.part && a->in[i].dtype == b->in[i].dtype &&
               sf_view_count(&a->in[i]) == sf_view_count(&b->in[i]);
    }
    return same;
}

bool sf_exchange_matches(const sf_inst *a, const sf_inst *b)
{
    const sf_exchange *x = a->exchange, *y = b->exchange;
    return x->kind == y->kind && x->axes == y->axes && x->size == y->size &&
           x->groups == y->groups && x->monoid == y->monoid && strcmp(x->what, y->what) == 0 &&
           same_parts(a, b);
}

static const char *kind_of(const sf_inst *inst)
{
    return inst ? sf_exchange_name(inst->exchange) : "none";
}

static const char *what_of(const sf_inst *inst)
{
    return inst ? inst->exchange->what : "nothing";
}

static sf_status match(const sf_program *a, const collectives *of_a, const sf_program *b,
                       const collectives *of_b, sf_diag *diag)
{
    for (size_t i = 0; i < of_a->count || i < of_b->count; i++) {
        const sf_inst *x = i < of_a->count ? of_a->at[i] : NULL;
        const sf_inst *y = i < of_b->count ? of_b->at[i] : NULL;
        if (!x || !y || x->exchange->number != y->exchange->number || !sf_exchange_matches(x, y))
            return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                           "program: collective %zu is %s of %s on rank %d, but %s of %s on rank "
                           "%d: they would wait for each other",
                           i, kind_of(x), what_of(x), a->rank, kind_of(y), what_of(y), b->rank);
    }
    return SF_OK;
}

sf_status sf_program_match(const sf_program *a, const sf_program *b, sf_diag *diag)
{
    collectives of_a = {0}, of_b = {0};
    list_collectives(&of_a, a);
    list_collectives(&of_b, b);
    sf_status status = match(a, &of_a, b, &of_b, diag);
    sf_arena_free(&of_a.arena);
    sf_arena_free(&of_b.arena);
    return status;
}

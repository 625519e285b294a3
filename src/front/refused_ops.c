#include "front/refused_ops.h"

#include <string.h>

typedef enum reason { SPLIT, HOST, DYNAMIC } reason;

/* The error, and the remedy. */
static const struct {
    const char *words, *advice;
} kinds[] = {
    [SPLIT] = {"says how the step is split, as shard_map and pmap do: that is for sheaf to decide",
               "remove shard_map, pmap and collectives such as psum, and export what they wrap as "
               "for one device; of a compiler's dumps take one from before partitioning"},
    [HOST] = {"reaches outside of the step, as a call back into Python does: there is nobody to "
              "answer",
              "export without jax.debug.print, jax.debug.callback, jax.pure_callback and "
              "io_callback"},
    [DYNAMIC] = {"has a size that is not known: sheaf needs all shapes",
                 "export with the shapes it will be run with: no symbolic dimensions, and arrays "
                 "of those sizes for jax.jit(step).lower(...)"},
};

typedef struct word {
    const char *text; /* a prefix, if it ends with * */
    reason kind;
} word;

static const word ops[] = {
    {"sdy.manual_computation", SPLIT},
    {"stablehlo.all_gather", SPLIT},
    {"stablehlo.all_reduce", SPLIT},
    {"stablehlo.all_to_all", SPLIT},
    {"stablehlo.collective_*", SPLIT},
    {"stablehlo.partition_id", SPLIT},
    {"stablehlo.reduce_scatter", SPLIT},
    {"stablehlo.replica_id", SPLIT},
    {"all-gather*", SPLIT},
    {"all-reduce*", SPLIT},
    {"all-to-all", SPLIT},
    {"collective-*", SPLIT},
    {"partition-id", SPLIT},
    {"ragged-all-to-all", SPLIT},
    {"reduce-scatter", SPLIT},
    {"replica-id", SPLIT},
    {"stablehlo.infeed", HOST},
    {"stablehlo.outfeed", HOST},
    {"stablehlo.recv", HOST},
    {"stablehlo.send", HOST},
    {"infeed", HOST},
    {"outfeed", HOST},
    {"recv*", HOST},
    {"send*", HOST},
    {"stablehlo.dynamic_broadcast_in_dim", DYNAMIC},
    {"stablehlo.dynamic_conv", DYNAMIC},
    {"stablehlo.dynamic_gather", DYNAMIC},
    {"stablehlo.dynamic_iota", DYNAMIC},
    {"stablehlo.dynamic_pad", DYNAMIC},
    {"stablehlo.dynamic_reshape", DYNAMIC},
    {"stablehlo.get_dimension_size", DYNAMIC},
    {"stablehlo.real_dynamic_slice", DYNAMIC},
    {"stablehlo.set_dimension_size", DYNAMIC},
    {"dynamic-reshape", DYNAMIC},
    {"set-dimension-size", DYNAMIC},
};

static const word targets[] = {
    {"SPMDFullToShardShape", SPLIT},
    {"SPMDShardToFullShape", SPLIT},
    {"xla.sdy.GlobalToLocalShape", SPLIT},
    {"xla.sdy.LocalToGlobalShape", SPLIT},
    {"xla_ffi_partitioned_python_*", HOST},
    {"xla_ffi_python_*", HOST},
    {"xla_python_*", HOST},
    {"shape_assertion", DYNAMIC},
};

static sf_status refuse(reason kind, const char *what, sf_str name, sf_loc loc, sf_diag *diag)
{
    sf_fail(diag, SF_EUNSUPPORTED, loc, "%s%.*s %s", what, SF_STR_ARGS(name), kinds[kind].words);
    return sf_hint(diag, "%s", kinds[kind].advice);
}

static const word *find_word(const word *words, size_t count, sf_str name)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(words[i].text);
        bool begins = words[i].text[length - 1] == '*';
        length -= begins;
        if (name.length >= length && memcmp(name.at, words[i].text, length) == 0 &&
            (begins || name.length == length))
            return &words[i];
    }
    return NULL;
}

sf_status sf_refuse_op(sf_str name, sf_loc loc, sf_diag *diag)
{
    const word *found = find_word(ops, sizeof ops / sizeof *ops, name);
    return found ? refuse(found->kind, "", name, loc, diag) : SF_OK;
}

sf_status sf_refuse_target(sf_str target, sf_loc loc, sf_diag *diag)
{
    const word *found = find_word(targets, sizeof targets / sizeof *targets, target);
    return found ? refuse(found->kind, "custom call @", target, loc, diag) : SF_OK;
}

sf_status sf_refuse_dynamic(sf_str type, sf_loc loc, sf_diag *diag)
{
    return refuse(DYNAMIC, "the type ", type, loc, diag);
}

sf_status sf_refuse_token(sf_str type, sf_loc loc, sf_diag *diag)
{
    return refuse(HOST, "the type ", type, loc, diag);
}

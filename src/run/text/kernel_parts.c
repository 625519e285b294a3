/* Common to the families of calls. */
#include "run/text/library_kernel.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "op/attention.h"
#include "op/slots.h"

void sf_call_begin(sf_calling *c, int64_t count)
{
    SF_PUT(c,
           "{\nfor (s64 at_ = BLOCK * THREADS + THREAD; at_ < %" PRId64
           "; at_ += BLOCKS * THREADS) {\n%s at = (%s)at_;\n",
           count, c->index, c->index);
}

void sf_call_end(sf_calling *c, int64_t count)
{
    SF_PUT(c, "}\n}\n");
    sf_write_launch(c->w, sf_blocks_for(count, SF_CALL_THREADS), SF_CALL_THREADS, true);
}

void sf_put_index(sf_calling *c, const char *name, const char *from, int rank, const int64_t *dims)
{
    if (rank == 0)
        return;
    SF_PUT(c, "%s %srest = %s;\n", c->index, name, from);
    for (int d = rank - 1; d > 0; d--)
        SF_PUT(c, "%s %s%d = %srest %% (%s)%" PRId64 "; %srest /= (%s)%" PRId64 ";\n", c->index,
               name, d, name, c->index, dims[d], name, c->index, dims[d]);
    SF_PUT(c, "%s %s0 = %srest; (void)%s0;\n", c->index, name, name, name);
}

void sf_put_flat(sf_calling *c, const char *name, int rank, const int64_t *dims)
{
    if (rank == 0) {
        SF_PUT(c, "0");
        return;
    }
    for (int d = 1; d < rank; d++)
        SF_PUT(c, "(");
    SF_PUT(c, "%s0", name);
    for (int d = 1; d < rank; d++)
        SF_PUT(c, " * (%s)%" PRId64 " + %s%d)", c->index, dims[d], name, d);
}

void sf_put_captured(sf_calling *c, const char *prefix)
{
    const sf_call *call = c->inst->call;
    for (uint32_t i = 0; i < call->ncaptured; i++) {
        sf_dtype dtype = sf_type_of(call->op.graph, call->captured[i])->dtype;
        SF_PUT(c, "%s %s = WLOAD(%s, p%d, 0);\n", sf_word_type(dtype),
               sf_name_value(prefix, call->captured[i]).at, sf_type_name(dtype),
               c->op->noperands + (int)i);
    }
}

void sf_call_copy_first(sf_calling *c, uint32_t index)
{
    const sf_inst *inst = c->inst;
    const sf_type *type = c->op->in[index];
    if (inst->in[index].buffer == inst->out[index].buffer || type->count == 0)
        return;
    sf_write_param(c->w, (sf_param){.kind = SF_PARAM_IN, .index = index});
    sf_write_param(c->w, (sf_param){.kind = SF_PARAM_OUT, .index = index});
    int64_t offsets = sf_gcd(inst->in[index].offset, inst->out[index].offset);
    int64_t together = sf_gcd(16 / sf_call_width(type), sf_gcd(type->count, offsets));
    int width = (int)together * sf_call_width(type);
    sf_call_begin(c, type->count / together);
    SF_PUT(c, "AT(moved_%d, p1, at) = AT(const moved_%d, p0, at);\n", width, width);
    sf_call_end(c, type->count / together);
}

/* Element by element */

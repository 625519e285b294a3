/* The kernel of a collective that reduces, between ranks of one process. */
#include <stdio.h>

#include "run/text/scalar.h"

enum { FOLD_THREADS = 256 };

/* For booleans, sums are or and products are and, as run/comm/reduce_elements.h has it. */
static sf_monoid monoid_of(const sf_inst *inst, sf_dtype dtype)
{
    sf_monoid monoid = inst->exchange->monoid;
    if (dtype != SF_PRED)
        return monoid;
    bool is_any = monoid == SF_MONOID_ADD || monoid == SF_MONOID_MAX;
    bool is_all = monoid == SF_MONOID_MUL || monoid == SF_MONOID_MIN;
    return is_any ? SF_MONOID_OR : is_all ? SF_MONOID_AND : monoid;
}

/* One thread, one element: so the result may be in the memory of a source. */
void sf_write_exchange(sf_writer *w, const sf_inst *inst)
{
    sf_dtype dtype = inst->out[0].dtype;
    if (inst->exchange->monoid != SF_MONOID_MUL) /* complex numbers are added as their parts are */
        dtype = sf_part_of(dtype);
    int members = inst->exchange->size;
    const char *word = sf_word_type(dtype), *type = sf_type_name(dtype);
    for (int i = 0; i <= members; i++) /* set when it runs */
        sf_write_param(w, (sf_param){.kind = SF_PARAM_SCRATCH});
    sf_write_param(w, (sf_param){.kind = SF_PARAM_NUMBER});
    sf_buf_printf(&w->body,
                  "{\nfor (s64 at = BLOCK * THREADS + THREAD; at < p%d; at += BLOCKS * THREADS) {\n"
                  "%s a = WLOAD(%s, p0, at);\n",
                  members + 1, word, type);
    for (int i = 1; i < members; i++) {
        char other[16];
        snprintf(other, sizeof other, "b%d", i);
        sf_buf_printf(&w->body, "%s %s = WLOAD(%s, p%d, at);\na = wround_%s(", word, other, type, i,
                      type);
        sf_put_monoid(&w->body, monoid_of(inst, dtype), dtype, "a", other);
        sf_buf_puts(&w->body, ");\n");
    }
    sf_buf_printf(&w->body, "WSTORE(%s, p%d, at, a);\n}\n}\n", type, members);
    sf_write_launch(w, 1, FOLD_THREADS, true);
}

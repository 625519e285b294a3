#include "report/samples.h"

enum { MOST_ATTRS = 32 };

static void put_step(sf_buf *step, const char *arguments, const char *use, const char *results,
                     const char *types)
{
    sf_buf_printf(step,
                  "func.func @main(%s) -> (%s) {\n"
                  "  %s\n"
                  "  return %s : %s\n"
                  "}\n",
                  arguments, types, use, results, types);
}

bool sf_sample(const sf_opdef *def, sf_buf *step)
{
    const sf_op_sample *sample = &def->sample;
    if (!sample->use)
        return false;
    put_step(step, sample->arguments, sample->use, sample->results, sample->types);
    return true;
}

/* The type of the result; that of the operands where they are none that the op takes. */
static const sf_type *infer_type(const sf_opdef *def, sf_pool *pool, const sf_type *type)
{
    const sf_type *in[] = {type, type, type}, *out = type;
    const sf_attr *attrs[MOST_ATTRS] = {NULL};
    sf_op op = {.def = def,
                .noperands = def->min_operands,
                .nresults = 1,
                .in = in,
                .attrs = attrs,
                .pool = pool};
    bool known = def->min_operands <= 3 && def->nattrs <= MOST_ATTRS;
    return known && def->infer(&op, &out, NULL) == SF_OK ? out : type;
}

void sf_sample_pointwise(const sf_opdef *def, sf_dtype dtype, sf_buf *step)
{
    sf_pool *pool = sf_pool_new();
    const sf_type *type = sf_type_get(pool, dtype, 2, (int64_t[]){3, 4});
    char text[SF_TYPE_TEXT], result[SF_TYPE_TEXT];
    sf_type_text(type, text);
    sf_type_text(infer_type(def, pool, type), result);
    sf_buf arguments = {0}, use = {0}, operands = {0}, types = {0};
    for (int i = 0; i < def->min_operands; i++) {
        const char *comma = i ? ", " : "";
        sf_buf_printf(&arguments, "%s%%a%d: %s", comma, i, text);
        sf_buf_printf(&operands, "%s%%a%d", comma, i);
        sf_buf_printf(&types, "%s%s", comma, text);
    }
    sf_buf_printf(&use, "%%r = \"%s.%s\"(%s) : (%s) -> %s", def->dialect, def->name, operands.text,
                  types.text, result);
    put_step(step, arguments.text, use.text, "%r", result);
    sf_buf_free(&arguments);
    sf_buf_free(&use);
    sf_buf_free(&operands);
    sf_buf_free(&types);
    sf_pool_release(pool);
}

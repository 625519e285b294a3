#include "run/text/kernel_check.h"

#include <inttypes.h>

/* Strides may be negative: the pointer is at the first element, which need not be the lowest. */
static void view_bounds(const sf_view *view, int64_t *low, int64_t *high)
{
    int64_t width = sf_dtype_get(view->dtype)->bytes, first = 0, last = 0;
    for (int d = 0; d < view->rank; d++) {
        int64_t span = (view->dims[d] - 1) * view->strides[d];
        first += span < 0 ? span : 0;
        last += span > 0 ? span : 0;
    }
    bool is_empty = sf_view_count(view) == 0;
    *low = is_empty ? 0 : first * width;
    *high = is_empty ? 0 : (last + 1) * width;
}

static bool room_bounds(const sf_code *code, int64_t at, int64_t *high)
{
    for (size_t i = 0; i < code->nrooms; i++)
        if (code->rooms[i].at == at) {
            *high = code->rooms[i].bytes;
            return true;
        }
    return false;
}

bool sf_param_bounds(const sf_writer *w, const sf_param *param, int64_t *low, int64_t *high)
{
    *low = 0;
    if (param->kind == SF_PARAM_SCRATCH)
        return room_bounds(w->code, param->value, high);
    if (param->kind != SF_PARAM_IN && param->kind != SF_PARAM_OUT)
        return false;
    view_bounds(param->kind == SF_PARAM_IN ? &w->inst->in[param->index]
                                           : &w->inst->out[param->index],
                low, high);
    return true;
}

static bool is_pointer(const sf_param *param)
{
    return param->kind != SF_PARAM_NUMBER && param->kind != SF_PARAM_PLACE;
}

/* A collective is launched with pointers that are known when it runs. */
static bool has_bounds(const sf_writer *w)
{
    return w->inst && w->inst->kind != SF_INST_COMM;
}

void sf_write_checks(sf_writer *w)
{
    sf_buf body = {0};
    size_t nparams = w->nparams;
    sf_buf_puts(&body, "{\n");
    for (size_t i = 0; i < nparams; i++) {
        int64_t low = 0, high = 0;
        if (!is_pointer(&w->params[i]))
            continue;
        if (!has_bounds(w) || !sf_param_bounds(w, &w->params[i], &low, &high)) {
            low = INT64_MIN + 1;
            high = INT64_MAX;
        }
        sf_buf_printf(&body,
                      "const s64 p%zu_low = %" PRId64 "ll, p%zu_high = %" PRId64
                      "ll; enum { p%zu_is = %zu };\n",
                      i, low, i, high, i, i);
    }
    if (has_bounds(w))
        sf_buf_printf(&body, "char *const faults = p%d;\n",
                      sf_write_param(w, (sf_param){.kind = SF_PARAM_FAULTS}));
    else
        sf_buf_puts(&body, "char *const faults = 0;\n");
    sf_buf_add(&body, w->body.text, w->body.length);
    sf_buf_puts(&body, "}\n");
    sf_buf_free(&w->body);
    w->body = body;
}

void sf_put_bounds_of(sf_buf *out, const char *name, int param)
{
    if (param < 0)
        sf_buf_printf(out, "const s64 %s_low = 0, %s_high = 0; enum { %s_is = 0 };\n", name, name,
                      name);
    else
        sf_buf_printf(out,
                      "const s64 %s_low = p%d_low, %s_high = p%d_high; enum { %s_is = p%d_is };\n",
                      name, param, name, param, name, param);
}

/* Queries of a plan. */
#include <string.h>

#include "base/boundary.h"
#include "base/guard.h"
#include "plan/plan.h"

double sf_plan_seconds(const sf_plan *plan)
{
    SF_NEED_OR(0, plan);
    return plan->predicted ? plan->predicted->seconds : 0;
}

int sf_plan_axes(const sf_plan *plan)
{
    SF_NEED_OR(0, plan);
    return plan->mesh.naxes;
}

static bool has_axis(const sf_plan *plan, int axis)
{
    return axis >= 0 && axis < plan->mesh.naxes;
}

const char *sf_plan_axis_name(const sf_plan *plan, int axis)
{
    SF_NEED_OR(NULL, plan);
    return has_axis(plan, axis) ? plan->mesh.axes[axis].name : NULL;
}

int sf_plan_axis_size(const sf_plan *plan, int axis)
{
    SF_NEED_OR(0, plan);
    return has_axis(plan, axis) ? plan->mesh.axes[axis].size : 0;
}

/* An argument or a result of the step, as a plan lays it out; `layout` is NULL where there is none. */
struct laid_out {
    const sf_plan *plan;
    const sf_layout *layout;
    const sf_type *type;
};

static struct laid_out find_argument(const sf_plan *plan, const sf_graph *graph, int argument)
{
    if (argument < 0 || (uint32_t)argument >= graph->top->narguments)
        return (struct laid_out){0};
    return (struct laid_out){plan, &plan->arguments[argument],
                             sf_argument_type(graph, (uint32_t)argument)};
}

static struct laid_out find_result(const sf_plan *plan, const sf_graph *graph, int result)
{
    if (result < 0 || (uint32_t)result >= graph->top->nresults)
        return (struct laid_out){0};
    return (struct laid_out){plan, &plan->results[result], sf_result_type(graph, (uint32_t)result)};
}

struct printing {
    struct laid_out tensor;
    char *text;
};

static sf_status print_layout(void *context)
{
    struct printing *job = context;
    const struct laid_out *tensor = &job->tensor;
    sf_buf out = {0};
    sf_layout_print(tensor->layout, &tensor->plan->mesh, tensor->type->rank, tensor->type->dims,
                    &out);
    snprintf(job->text, SF_LAYOUT_TEXT, "%s", out.text);
    sf_buf_free(&out);
    return SF_OK;
}

static const char *write_layout(struct laid_out tensor, char text[SF_LAYOUT_TEXT])
{
    struct printing job = {tensor, text};
    if (!tensor.layout)
        return NULL;
    return sf_guarded(print_layout, &job, NULL) == SF_OK ? text : NULL;
}

const char *sf_plan_argument_layout(const sf_plan *plan, const sf_graph *graph, int argument,
                                    char text[SF_LAYOUT_TEXT])
{
    SF_NEED_OR(NULL, plan, graph, text);
    return write_layout(find_argument(plan, graph, argument), text);
}

const char *sf_plan_result_layout(const sf_plan *plan, const sf_graph *graph, int result,
                                  char text[SF_LAYOUT_TEXT])
{
    SF_NEED_OR(NULL, plan, graph, text);
    return write_layout(find_result(plan, graph, result), text);
}

/* How many indices of the dimension are contiguous in a shard: the unit of the last digit that is
 * split. Rows of an uneven partition come one by one. */
static int64_t run_length(const sf_layout *layout, const sf_mesh *mesh, int dim, int64_t size)
{
    sf_digit digits[SF_MAX_DIGITS];
    int64_t length = size;
    int count = sf_layout_digits(layout, mesh, dim, size, digits);
    for (int i = 0; i < count; i++)
        if (digits[i].axis >= 0 && digits[i].size > 1)
            length = digits[i].unit;
    for (int a = 0; a < mesh->naxes && dim == 0; a++)
        if (layout->axes[a].partition)
            length = 1;
    return length;
}

/* The boxes of a shard: along each dimension `counts` runs. */
struct boxes {
    const sf_layout *layout;
    const sf_mesh *mesh;
    const sf_type *type;
    int64_t lengths[SF_MAX_RANK], counts[SF_MAX_RANK];
    int64_t total; /* 0: there is no such shard */
};

/* A rank that does not hold the tensor, one of another stage, has no boxes of it. */
static struct boxes find_boxes(struct laid_out tensor, int rank)
{
    struct boxes boxes = {.layout = tensor.layout, .type = tensor.type};
    int64_t dims[SF_MAX_RANK];
    if (!tensor.layout || rank < 0 || rank >= sf_mesh_size(&tensor.plan->mesh) ||
        !sf_layout_is_held(tensor.layout, &tensor.plan->mesh, rank))
        return boxes;
    const sf_type *type = tensor.type;
    boxes.mesh = &tensor.plan->mesh;
    boxes.total = 1;
    sf_layout_dims_at(boxes.layout, boxes.mesh, rank, type->rank, type->dims, dims);
    for (int d = 0; d < type->rank; d++) {
        int64_t length = run_length(boxes.layout, boxes.mesh, d, type->dims[d]);
        boxes.lengths[d] = length;
        boxes.counts[d] = length > 0 ? dims[d] / length : 1;
        boxes.total *= boxes.counts[d];
    }
    return boxes;
}

static bool find_box(struct laid_out tensor, int rank, int64_t index, sf_box *out)
{
    struct boxes boxes = find_boxes(tensor, rank);
    if (index < 0 || index >= boxes.total)
        return false;
    sf_box box = {.size = sizeof box, .rank = boxes.type->rank};
    for (int d = boxes.type->rank - 1; d >= 0; d--) {
        int64_t run = index % boxes.counts[d];
        index /= boxes.counts[d];
        box.extent[d] = boxes.lengths[d];
        if (boxes.lengths[d] > 0)
            box.offset[d] = sf_layout_global(boxes.layout, boxes.mesh, rank, d, boxes.type->dims[d],
                                             run * boxes.lengths[d]);
    }
    return SF_GIVE(sf_box, out, &box, NULL) == SF_OK;
}

int64_t sf_plan_boxes(const sf_plan *plan, const sf_graph *graph, int argument, int rank)
{
    SF_NEED_OR(0, plan, graph);
    return find_boxes(find_argument(plan, graph, argument), rank).total;
}

bool sf_plan_box(const sf_plan *plan, const sf_graph *graph, int argument, int rank, int64_t index,
                 sf_box *out)
{
    SF_NEED_OR(false, plan, graph, out);
    return find_box(find_argument(plan, graph, argument), rank, index, out);
}

int64_t sf_plan_result_boxes(const sf_plan *plan, const sf_graph *graph, int result, int rank)
{
    SF_NEED_OR(0, plan, graph);
    return find_boxes(find_result(plan, graph, result), rank).total;
}

bool sf_plan_result_box(const sf_plan *plan, const sf_graph *graph, int result, int rank,
                        int64_t index, sf_box *out)
{
    SF_NEED_OR(false, plan, graph, out);
    return find_box(find_result(plan, graph, result), rank, index, out);
}

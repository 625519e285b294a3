/* Writes a training step of a GPT as StableHLO text: layers before which their input is normalized, causal attention, a head
 * that is the embedding of the tokens, mean cross entropy, and AdamW. Steps of any size, for tests of the planner:
 *
 *     gpt_step LAYERS WIDTH HEADS BATCH LENGTH VOCABULARY >step.mlir
 *
 * The forward pass is written into a tape of operations, which is differentiated backward. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 4, NAME = 96, NONE = -1 };

typedef enum kind {
    ARGUMENT,
    CONSTANT, /* a number, of any shape */
    UNARY,
    BINARY,
    BROADCAST, /* dims: where those of the operand go */
    REDUCE,    /* sums or maxima over dims */
    DOT,       /* dims: those that are contracted; the first `batched` of both are batch */
    RESHAPE,
    TRANSPOSE,
    IOTA,
    COMPARE,
    SELECT,
    GATHER, /* rows of a table */
    SCATTER /* adds rows to a table */
} kind;

typedef struct op {
    kind kind;
    const char *name; /* of the operation; its type of elements is that of `element` */
    int operands[3];
    int rank;
    int64_t shape[RANK];
    const char *element;
    int ndims;
    int dims[2][RANK];
    int batched;
    double number;
    char scope[NAME];
} op;

static op *tape;
static int count, room;
static char scope[NAME]; /* of what is added */
static const char *phase = "jvp(GPT)/";

static op *at(int id)
{
    return &tape[id];
}

static int add_op(op o)
{
    if (count == room) {
        room = room ? 2 * room : 4096;
        tape = realloc(tape, (size_t)room * sizeof *tape);
        if (!tape)
            exit(1);
    }
    snprintf(o.scope, sizeof o.scope, "%s%s", phase, scope);
    tape[count] = o;
    return count++;
}

static op like(int id, kind what, const char *name)
{
    op o = *at(id);
    o.kind = what, o.name = name;
    o.operands[0] = id, o.operands[1] = o.operands[2] = NONE;
    return o;
}

static int unary(const char *name, int a)
{
    return add_op(like(a, UNARY, name));
}

static int binary(const char *name, int a, int b)
{
    op o = like(a, BINARY, name);
    o.operands[1] = b;
    return add_op(o);
}

static int number_like(int id, double number)
{
    op o = like(id, CONSTANT, "constant");
    o.operands[0] = NONE, o.number = number;
    return add_op(o);
}

static int scale(int a, double by)
{
    return binary("multiply", a, number_like(a, by));
}

/* Dimension i of `a` becomes dims[i] of the shape of `to`. */
static int broadcast(int a, int to, const int *dims)
{
    op o = like(to, BROADCAST, "broadcast_in_dim");
    o.operands[0] = a, o.element = at(a)->element, o.ndims = at(a)->rank;
    memcpy(o.dims[0], dims, sizeof(int) * (size_t)o.ndims);
    return add_op(o);
}

/* Over the dimensions from `first` to before `end`. */
static int reduce(const char *name, int a, int first, int end)
{
    op o = like(a, REDUCE, name);
    o.rank = o.ndims = 0;
    for (int i = 0; i < at(a)->rank; i++)
        if (i >= first && i < end)
            o.dims[0][o.ndims++] = i;
        else
            o.shape[o.rank++] = at(a)->shape[i];
    return add_op(o);
}

/* What `reduce` made, in the shape of `to` again. */
static int widen(int a, int to, int first, int end)
{
    int dims[RANK], n = 0;
    for (int i = 0; i < at(to)->rank; i++)
        if (i < first || i >= end)
            dims[n++] = i;
    return broadcast(a, to, dims);
}

/* The result has the batch dimensions, then what is left of a, then what is left of b. */
static int dot(int a, int b, int batched, int from_a, int from_b)
{
    op o = like(a, DOT, "dot_general");
    o.operands[1] = b, o.batched = batched, o.rank = batched, o.ndims = 1;
    o.dims[0][0] = from_a, o.dims[1][0] = from_b;
    for (int i = batched; i < at(a)->rank; i++)
        if (i != from_a)
            o.shape[o.rank++] = at(a)->shape[i];
    for (int i = batched; i < at(b)->rank; i++)
        if (i != from_b)
            o.shape[o.rank++] = at(b)->shape[i];
    return add_op(o);
}

/* a[B, L, I], b[B, L, O] -> [I, O] */
static int dot_over_tokens(int a, int b)
{
    op o = like(a, DOT, "dot_general");
    o.operands[1] = b, o.batched = 0, o.rank = o.ndims = 2;
    o.shape[0] = at(a)->shape[2], o.shape[1] = at(b)->shape[2];
    for (int i = 0; i < 2; i++)
        o.dims[0][i] = o.dims[1][i] = i;
    return add_op(o);
}

static int reshape(int a, int rank, const int64_t *shape)
{
    op o = like(a, RESHAPE, "reshape");
    o.rank = rank;
    memcpy(o.shape, shape, sizeof(int64_t) * (size_t)rank);
    return add_op(o);
}

static int transpose(int a, const int *dims)
{
    op o = like(a, TRANSPOSE, "transpose");
    for (int i = 0; i < o.rank; i++)
        o.shape[i] = at(a)->shape[dims[i]], o.dims[0][i] = dims[i];
    return add_op(o);
}

static int iota_like(int a, int dim)
{
    op o = like(a, IOTA, "iota");
    o.operands[0] = NONE, o.element = "i32", o.dims[0][0] = dim;
    return add_op(o);
}

static int compare(const char *how, int a, int b)
{
    op o = like(a, COMPARE, how);
    o.operands[1] = b, o.element = "i1";
    return add_op(o);
}

static int choose(int which, int yes, int no)
{
    op o = like(yes, SELECT, "select");
    o.operands[0] = which, o.operands[1] = yes, o.operands[2] = no;
    return add_op(o);
}

/* table[V, E], ids[B, L] -> [B, L, E] */
static int gather(int table, int ids)
{
    op o = like(ids, GATHER, "gather");
    o.operands[0] = table, o.operands[1] = ids, o.element = at(table)->element;
    o.shape[o.rank++] = at(table)->shape[1];
    return add_op(o);
}

static int scatter(int table, int ids, int rows)
{
    op o = like(table, SCATTER, "scatter");
    o.operands[1] = ids, o.operands[2] = rows;
    return add_op(o);
}

/* The model ----------------------------------------------------------------------------------- */

static int64_t layers, width, heads, batch, length, vocabulary;

enum { MAX = 4096 };
static struct {
    char name[NAME];
    int id;
} arguments[MAX];
static int narguments;

static int add_argument(const char *name, const char *element, int rank, int64_t a, int64_t b)
{
    op o = {.kind = ARGUMENT, .element = element, .rank = rank, .shape = {a, b}};
    if (narguments == MAX) {
        fprintf(stderr, "gpt_step: too many layers\n");
        exit(2);
    }
    snprintf(arguments[narguments].name, NAME, "%s", name);
    return arguments[narguments++].id = add_op(o);
}

static int parameter(const char *where, const char *name, int rank, int64_t a, int64_t b)
{
    char text[NAME] = "params";
    size_t n = strlen(text);
    for (const char *part = where; *part;) {
        size_t k = strcspn(part, "/");
        n += (size_t)snprintf(text + n, sizeof text - n, "['%.*s']", (int)k, part);
        part += k + (part[k] == '/');
    }
    snprintf(text + n, sizeof text - n, "['%s']", name);
    return add_argument(text, "f32", rank, a, b);
}

static void enter_module(const char *name)
{
    snprintf(scope, sizeof scope, "%s", name);
}

static void enter_layer(int64_t layer, const char *name)
{
    snprintf(scope, sizeof scope, "layer_%" PRId64 "/%s", layer, name);
}

static const int last[] = {2};

typedef struct weights {
    int scale[2], shift[2]; /* of the normalizations */
    int kernel[6], bias[6]; /* q k v o, up down */
} weights;

static const char *const dense_names[] = {"attn/q", "attn/k", "attn/v",
                                          "attn/o", "mlp/up", "mlp/down"};

static void add_weights(int64_t layer, weights *w)
{
    char where[NAME];
    for (int i = 0; i < 6; i++) {
        int64_t in = i == 5 ? 4 * width : width, out = i == 4 ? 4 * width : width;
        snprintf(where, sizeof where, "layer_%" PRId64 "/%s", layer, dense_names[i]);
        w->bias[i] = parameter(where, "bias", 1, out, 0);
        w->kernel[i] = parameter(where, "kernel", 2, in, out);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(where, sizeof where, "layer_%" PRId64 "/norm%d", layer, i + 1);
        w->shift[i] = parameter(where, "bias", 1, width, 0);
        w->scale[i] = parameter(where, "scale", 1, width, 0);
    }
}

static int normalize(int x, int by, int shift)
{
    int mean = scale(reduce("add", x, 2, 3), 1 / (double)width);
    int centred = binary("subtract", x, widen(mean, x, 2, 3));
    int variance =
        scale(reduce("add", binary("multiply", centred, centred), 2, 3), 1 / (double)width);
    int inverse = unary("rsqrt", binary("add", variance, number_like(variance, 1e-6)));
    int y = binary("multiply", centred, widen(inverse, x, 2, 3));
    return binary("add", binary("multiply", y, broadcast(by, x, last)), broadcast(shift, x, last));
}

static int dense(int x, int kernel, int bias)
{
    int y = dot(x, kernel, 0, 2, 0);
    return binary("add", y, broadcast(bias, y, last));
}

/* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
static int gelu(int x)
{
    int cube = binary("multiply", x, binary("multiply", x, x));
    int t = unary("tanh", scale(binary("add", x, scale(cube, 0.044715)), 0.7978845608028654));
    return binary("multiply", scale(x, 0.5), binary("add", t, number_like(t, 1)));
}

static int split_heads(int x)
{
    static const int dims[] = {0, 2, 1, 3};
    const int64_t shape[] = {batch, length, heads, width / heads};
    return transpose(reshape(x, 4, shape), dims);
}

static int attend(int64_t layer, int x, const weights *w)
{
    static const int dims[] = {0, 2, 1, 3};
    const int64_t whole[] = {batch, length, width};
    int parts[3];
    for (int i = 0; i < 3; i++) {
        enter_layer(layer, dense_names[i]);
        parts[i] = split_heads(dense(x, w->kernel[i], w->bias[i]));
    }
    enter_layer(layer, "attn");
    int scores = scale(dot(parts[0], parts[1], 2, 3, 3), 1 / sqrt((double)(width / heads)));
    int seen = compare("GE", iota_like(scores, 2), iota_like(scores, 3));
    scores = choose(seen, scores, number_like(scores, -1e9));
    int most = reduce("maximum", scores, 3, 4);
    int e = unary("exponential", binary("subtract", scores, widen(most, scores, 3, 4)));
    int share = binary("divide", e, widen(reduce("add", e, 3, 4), e, 3, 4));
    int y = reshape(transpose(dot(share, parts[2], 2, 3, 2), dims), 3, whole);
    enter_layer(layer, dense_names[3]);
    return dense(y, w->kernel[3], w->bias[3]);
}

static int run_layer(int64_t layer, int x, const weights *w)
{
    enter_layer(layer, "norm1");
    int y = attend(layer, normalize(x, w->scale[0], w->shift[0]), w);
    enter_layer(layer, "attn");
    x = binary("add", x, y);
    enter_layer(layer, "norm2");
    y = normalize(x, w->scale[1], w->shift[1]);
    enter_layer(layer, dense_names[4]);
    y = dense(y, w->kernel[4], w->bias[4]);
    enter_layer(layer, "mlp");
    y = gelu(y);
    enter_layer(layer, dense_names[5]);
    y = dense(y, w->kernel[5], w->bias[5]);
    enter_layer(layer, "mlp");
    return binary("add", x, y);
}

/* Mean over all tokens of log(sum(exp(logits))) - logits[label]. */
static int cross_entropy(int logits, int labels)
{
    static const int front[] = {0, 1};
    int most = reduce("maximum", logits, 2, 3);
    int moved = binary("subtract", logits, widen(most, logits, 2, 3));
    int sum = unary("log", reduce("add", unary("exponential", moved), 2, 3));
    int hit = compare("EQ", iota_like(logits, 2), broadcast(labels, logits, front));
    int own = reduce("add", choose(hit, moved, number_like(moved, 0)), 2, 3);
    int loss = reduce("add", binary("subtract", sum, own), 0, 2);
    return scale(loss, 1 / (double)(batch * length));
}

/* The tape, backward -------------------------------------------------------------------------- */

static int *gradients;

static void give(int id, int gradient)
{
    gradients[id] = gradients[id] == NONE ? gradient : binary("add", gradients[id], gradient);
}

static int negate(int a)
{
    return unary("negate", a);
}

static void give_unary(const op *o, int y, int g)
{
    int x = o->operands[0];
    if (strcmp(o->name, "exponential") == 0)
        give(x, binary("multiply", g, y));
    else if (strcmp(o->name, "log") == 0)
        give(x, binary("divide", g, x));
    else if (strcmp(o->name, "tanh") == 0)
        give(x, binary("multiply", g,
                       binary("subtract", number_like(y, 1), binary("multiply", y, y))));
    else if (strcmp(o->name, "rsqrt") == 0)
        give(x,
             binary("multiply", scale(g, -0.5), binary("multiply", y, binary("multiply", y, y))));
}

static void give_binary(const op *o, int y, int g)
{
    int a = o->operands[0], b = o->operands[1];
    bool constant = at(b)->kind == CONSTANT;
    if (strcmp(o->name, "multiply") == 0) {
        give(a, binary("multiply", g, b));
        if (!constant)
            give(b, binary("multiply", g, a));
    } else if (strcmp(o->name, "divide") == 0) {
        give(a, binary("divide", g, b));
        give(b, negate(binary("multiply", g, binary("divide", y, b))));
    } else {
        give(a, g);
        if (!constant)
            give(b, strcmp(o->name, "subtract") == 0 ? negate(g) : g);
    }
}

/* The gradient of an operand contracts what the other operand brought; then its dimensions go where they were. */
static void give_dot(const op *o, int g)
{
    int a = o->operands[0], b = o->operands[1];
    if (o->batched == 0) { /* x[B, L, I] . w[I, O] or w[O, I] */
        static const int front[] = {1, 0};
        give(a, dot(g, b, 0, 2, 1 - o->dims[1][0]));
        int of_w = dot_over_tokens(a, g);
        give(b, o->dims[1][0] == 0 ? of_w : transpose(of_w, front));
        return;
    }
    static const int swap[] = {0, 1, 3, 2};
    int rest_b = 5 - o->dims[1][0], rest_a = 5 - o->dims[0][0];
    int of_a = dot(g, b, 2, 3, rest_b); /* [.., rest of a, contracted] */
    int of_b = dot(g, a, 2, 2, rest_a); /* [.., rest of b, contracted] */
    give(a, o->dims[0][0] == 3 ? of_a : transpose(of_a, swap));
    give(b, o->dims[1][0] == 3 ? of_b : transpose(of_b, swap));
}

static void give_broadcast(const op *o, int g)
{
    int rank = o->rank, small = at(o->operands[0])->rank, first = 0, end;
    if (small == 0)
        end = rank;
    else if (o->dims[0][0] == 0)
        first = small, end = rank; /* the last dimensions are new */
    else
        end = rank - small; /* the first are */
    give(o->operands[0], reduce("add", g, first, end));
}

static void give_transpose(const op *o, int g)
{
    int back[RANK] = {0};
    for (int i = 0; i < o->rank; i++)
        back[o->dims[0][i]] = i;
    give(o->operands[0], transpose(g, back));
}

/* Maxima are only subtracted from what the result does not depend on: they have no gradient. */
static void differentiate(int loss)
{
    int end = count;
    phase = "transpose(jvp(GPT))/";
    gradients = malloc(sizeof(int) * (size_t)end);
    if (!gradients)
        exit(1);
    for (int i = 0; i < end; i++)
        gradients[i] = NONE;
    gradients[loss] = number_like(loss, 1);
    for (int i = end - 1; i >= 0; i--) {
        op o = *at(i); /* the tape grows */
        int g = gradients[i];
        if (g == NONE || o.kind == ARGUMENT || o.kind == CONSTANT)
            continue;
        snprintf(scope, sizeof scope, "%s", strstr(o.scope, ")/") + 2);
        switch (o.kind) {
        case UNARY:
            give_unary(&o, i, g);
            break;
        case BINARY:
            give_binary(&o, i, g);
            break;
        case BROADCAST:
            give_broadcast(&o, g);
            break;
        case REDUCE:
            if (strcmp(o.name, "add") == 0)
                give(o.operands[0], widen(g, o.operands[0], o.dims[0][0], o.dims[0][0] + o.ndims));
            break;
        case DOT:
            give_dot(&o, g);
            break;
        case RESHAPE: {
            op from = *at(o.operands[0]);
            give(o.operands[0], reshape(g, from.rank, from.shape));
            break;
        }
        case TRANSPOSE:
            give_transpose(&o, g);
            break;
        case SELECT:
            give(o.operands[1], choose(o.operands[0], g, number_like(g, 0)));
            break;
        case GATHER:
            give(o.operands[0], scatter(number_like(o.operands[0], 0), o.operands[1], g));
            break;
        case ARGUMENT:
        case CONSTANT:
        case IOTA:
        case COMPARE:
        case SCATTER:
            break;
        }
    }
}

/* Text ---------------------------------------------------------------------------------------- */

static void put_shape(const op *o, const char *element)
{
    printf("tensor<");
    for (int i = 0; i < o->rank; i++)
        printf("%" PRId64 "x", o->shape[i]);
    printf("%s>", element);
}

static void put_type(int id)
{
    put_shape(at(id), at(id)->element);
}

static void put_dims(const int *dims, int n)
{
    printf("[");
    for (int i = 0; i < n; i++)
        printf("%s%d", i ? ", " : "", dims[i]);
    printf("]");
}

/* " : (OPERANDS) -> RESULT" */
static void put_signature(const op *o, int operands)
{
    printf(" : (");
    for (int i = 0; i < operands; i++) {
        printf("%s", i ? ", " : "");
        put_type(o->operands[i]);
    }
    printf(") -> ");
    put_shape(o, o->element);
}

static void put_dot(const op *o)
{
    static const int front[] = {0, 1};
    printf("dot_general %%%d, %%%d, ", o->operands[0], o->operands[1]);
    if (o->batched > 0) {
        printf("batching_dims = ");
        put_dims(front, o->batched);
        printf(" x ");
        put_dims(front, o->batched);
        printf(", ");
    }
    printf("contracting_dims = ");
    put_dims(o->dims[0], o->ndims);
    printf(" x ");
    put_dims(o->dims[1], o->ndims);
    put_signature(o, 2);
}

static void put_scatter(const op *o)
{
    printf(
        "\"stablehlo.scatter\"(%%%d, %%i%d, %%%d) <{indices_are_sorted = false, "
        "scatter_dimension_numbers = "
        "#stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({\n"
        "^bb0(%%x: tensor<f32>, %%y: tensor<f32>):\n%%z = stablehlo.add %%x, %%y : tensor<f32>\n"
        "stablehlo.return %%z : tensor<f32>\n}) : (",
        o->operands[0], o->operands[1], o->operands[2]);
    put_type(o->operands[0]);
    printf(", tensor<%" PRId64 "x%" PRId64 "x1xi32>, ", batch, length);
    put_type(o->operands[2]);
    printf(") -> ");
    put_shape(o, o->element);
}

static void put_op(int id)
{
    const op *o = at(id);
    if (o->kind == REDUCE && strcmp(o->name, "add") == 0)
        printf("%%r%d = stablehlo.constant dense<0.0> : tensor<f32>\n", id);
    else if (o->kind == REDUCE)
        printf("%%r%d = stablehlo.constant dense<0xFF800000> : tensor<f32>\n", id);
    else if (o->kind == GATHER) {
        printf("%%i%d = stablehlo.reshape %%%d", o->operands[1], o->operands[1]);
        printf(" : (");
        put_type(o->operands[1]);
        printf(") -> tensor<%" PRId64 "x%" PRId64 "x1xi32>\n", batch, length);
    }
    printf("%%%d = %s", id, o->kind == SCATTER || o->kind == GATHER ? "" : "stablehlo.");
    switch (o->kind) {
    case CONSTANT:
        printf("constant dense<%.17e> : ", o->number);
        put_shape(o, o->element);
        break;
    case BROADCAST:
        printf("broadcast_in_dim %%%d, dims = ", o->operands[0]);
        put_dims(o->dims[0], o->ndims);
        put_signature(o, 1);
        break;
    case REDUCE:
        printf("reduce(%%%d init: %%r%d) applies stablehlo.%s across dimensions = ", o->operands[0],
               id, o->name);
        put_dims(o->dims[0], o->ndims);
        printf(" : (");
        put_type(o->operands[0]);
        printf(", tensor<f32>) -> ");
        put_shape(o, o->element);
        break;
    case DOT:
        put_dot(o);
        break;
    case RESHAPE:
        printf("reshape %%%d", o->operands[0]);
        put_signature(o, 1);
        break;
    case TRANSPOSE:
        printf("transpose %%%d, dims = ", o->operands[0]);
        put_dims(o->dims[0], o->rank);
        put_signature(o, 1);
        break;
    case IOTA:
        printf("iota dim = %d : ", o->dims[0][0]);
        put_shape(o, o->element);
        break;
    case COMPARE:
        printf("compare %s, %%%d, %%%d, SIGNED", o->name, o->operands[0], o->operands[1]);
        put_signature(o, 2);
        break;
    case SELECT:
        printf("select %%%d, %%%d, %%%d : ", o->operands[0], o->operands[1], o->operands[2]);
        put_type(o->operands[0]);
        printf(", ");
        put_shape(o, o->element);
        break;
    case GATHER:
        printf("\"stablehlo.gather\"(%%%d, %%i%d) <{dimension_numbers = "
               "#stablehlo.gather<offset_dims = [2], "
               "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, "
               "indices_are_sorted = "
               "false, slice_sizes = array<i64: 1, %" PRId64 ">}> : (",
               o->operands[0], o->operands[1], width);
        put_type(o->operands[0]);
        printf(", tensor<%" PRId64 "x%" PRId64 "x1xi32>) -> ", batch, length);
        put_shape(o, o->element);
        break;
    case SCATTER:
        put_scatter(o);
        break;
    case ARGUMENT:
    case UNARY:
    case BINARY:
        printf("%s %%%d", o->name, o->operands[0]);
        if (o->kind == BINARY)
            printf(", %%%d", o->operands[1]);
        printf(" : ");
        put_shape(o, o->element);
    }
    printf(" loc(\"jit(step)/%s/%s\")\n", o->scope, o->name);
}

/* AdamW, for parameter `p` with gradient `g`; in place of mu and nu, new ones. */
static int update(int p, int g, int *mu, int *nu)
{
    *mu = binary("add", scale(*mu, 0.9), scale(g, 0.1));
    *nu = binary("add", scale(*nu, 0.999), scale(binary("multiply", g, g), 0.001));
    int root = unary("sqrt", *nu);
    int by = binary("divide", *mu, binary("add", root, number_like(root, 1e-8)));
    return binary("subtract", p, scale(binary("add", by, scale(p, 0.01)), 1e-4));
}

int main(int argc, char **argv)
{
    int64_t *const sizes[] = {&layers, &width, &heads, &batch, &length, &vocabulary};
    for (int i = 0; i < 6; i++)
        if (argc != 7 || (*sizes[i] = strtoll(argv[i + 1], NULL, 10)) < 1) {
            fprintf(stderr, "usage: gpt_step LAYERS WIDTH HEADS BATCH LENGTH VOCABULARY\n");
            return 2;
        }
    if (width % heads != 0) {
        fprintf(stderr, "gpt_step: %" PRId64 " heads do not divide a width of %" PRId64 "\n", heads,
                width);
        return 2;
    }
    weights *w = calloc((size_t)layers, sizeof *w);
    if (!w)
        return 1;
    for (int64_t i = 0; i < layers; i++)
        add_weights(i, &w[i]);
    int shift = parameter("norm_f", "bias", 1, width, 0),
        by = parameter("norm_f", "scale", 1, width, 0);
    int wpe = parameter("wpe", "embedding", 2, length, width);
    int wte = parameter("wte", "embedding", 2, vocabulary, width);
    int parameters = narguments;
    for (int i = 0; i < 2 * parameters; i++) {
        char name[NAME];
        op of = *at(arguments[i % parameters].id);
        snprintf(name, sizeof name, "opt[0].%s%s", i < parameters ? "mu" : "nu",
                 arguments[i % parameters].name + strlen("params"));
        add_argument(name, "f32", of.rank, of.shape[0], of.shape[1]);
    }
    int ids = add_argument("batch['ids']", "i32", 2, batch, length);
    int labels = add_argument("batch['labels']", "i32", 2, batch, length);
    int first = count;

    static const int tokens[] = {1, 2};
    enter_module("wte");
    int x = gather(wte, ids);
    enter_module("wpe");
    x = binary("add", x, broadcast(wpe, x, tokens));
    for (int64_t i = 0; i < layers; i++)
        x = run_layer(i, x, &w[i]);
    enter_module("norm_f");
    x = normalize(x, by, shift);
    enter_module("wte");
    int logits = dot(x, wte, 0, 2, 1);
    enter_module("loss");
    int loss = cross_entropy(logits, labels);
    differentiate(loss);
    phase = "";
    enter_module("update");
    int *results = malloc(sizeof(int) * (size_t)(3 * parameters));
    if (!results)
        return 1;
    for (int i = 0; i < parameters; i++) {
        int p = arguments[i].id, *mu = &results[parameters + i], *nu = &results[2 * parameters + i];
        *mu = arguments[parameters + i].id, *nu = arguments[2 * parameters + i].id;
        results[i] = update(p, gradients[p], mu, nu);
    }

    printf("module @gpt {\nfunc.func public @main(");
    for (int i = 0; i < narguments; i++) {
        printf("%s%%%d: ", i ? ", " : "", arguments[i].id);
        put_type(arguments[i].id);
        if (i < 3 * parameters)
            printf(" {tf.aliasing_output = %d : i32}", i);
        printf(" loc(\"%s\")", arguments[i].name);
    }
    printf(") -> (");
    for (int i = 0; i < 3 * parameters; i++) {
        put_type(results[i]);
        printf(", ");
    }
    printf("tensor<f32>) {\n");
    for (int i = first; i < count; i++)
        put_op(i);
    printf("return ");
    for (int i = 0; i < 3 * parameters; i++)
        printf("%%%d, ", results[i]);
    printf("%%%d : ", loss);
    for (int i = 0; i < 3 * parameters; i++) {
        put_type(results[i]);
        printf(", ");
    }
    printf("tensor<f32>\n}\n}\n");
    free(results);
    free(gradients);
    free(tape);
    free(w);
    return 0;
}

#include "support/products.h"

#include <stdio.h>
#include <string.h>

#define MAIN(results)                                                                              \
    "func.func public @main(%x: [X], %w: [W], %v: [V], %r: [C], %z: [D]) -> (" results ") {\n"
#define DOT                                                                                        \
    "%p = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] "  \
    ": ([X], [W]) -> [C]\n"
#define BIAS                                                                                       \
    "%vb = stablehlo.broadcast_in_dim %v, dims = [2] : ([V]) -> [C]\n"                             \
    "%a = stablehlo.add %p, %vb : [C]\n"
#define ZERO "%zero = stablehlo.constant dense<0.0> : [S]\n"
#define RETURN(values, types) "return " values " : " types "\n}\n"

#define CONV_MAIN "func.func public @main(%x: [I], %w: [K3], %w1: [K1], %v: [V]) -> "
#define CONV(kernel, type, window, result)                                                         \
    "%p = stablehlo.convolution(%x, " kernel                                                       \
    ") dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {" window                   \
    "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ([I], " type ") -> " result  \
    "\n"
#define RELU(type)                                                                                 \
    "%vb = stablehlo.broadcast_in_dim %v, dims = [3] : ([V]) -> " type "\n" ZERO                   \
    "%zb = stablehlo.broadcast_in_dim %zero, dims = [] : ([S]) -> " type "\n"                      \
    "%a = stablehlo.add %p, %vb : " type "\n"                                                      \
    "%q = stablehlo.maximum %a, %zb : " type "\n" RETURN("%q", type)

const product_case product_cases[] = {
    {"bias and gelu",
     MAIN("[C]") DOT BIAS "%a2 = stablehlo.multiply %a, %a : [C]\n"
                          "%a3 = stablehlo.multiply %a, %a2 : [C]\n"
                          "%s = stablehlo.add %a, %a3 : [C]\n"
                          "%t = stablehlo.tanh %s : [C]\n"
                          "%u = stablehlo.multiply %a, %t : [C]\n"
                          "%q = stablehlo.add %a, %u : [C]\n" RETURN("%q", "[C]"),
     true, false},
    {"residual", MAIN("[C]") DOT "%q = stablehlo.add %p, %r : [C]\n" RETURN("%q", "[C]"), true,
     false},
    {"softmax",
     MAIN("[C]") DOT ZERO
     "%low = stablehlo.constant dense<-1.0e+30> : [S]\n"
     "%m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [2] : "
     "([C], [S]) -> [R]\n"
     "%mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : ([R]) -> [C]\n"
     "%d = stablehlo.subtract %p, %mb : [C]\n"
     "%e = stablehlo.exponential %d : [C]\n"
     "%s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : "
     "([C], [S]) -> [R]\n"
     "%sb = stablehlo.broadcast_in_dim %s, dims = [0, 1] : ([R]) -> [C]\n"
     "%q = stablehlo.divide %e, %sb : [C]\n" RETURN("%q", "[C]"),
     true, false},
    {"batches of two strides",
     "func.func public @main(%x: [XH], %w: [WH], %r: [CH]) -> [CH] {\n"
     "%p = stablehlo.dot_general %x, %w, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x "
     "[3] : ([XH], [WH]) -> [CH]\n"
     "%q = stablehlo.multiply %p, %r : [CH]\n" RETURN("%q", "[CH]"),
     true, false},
    {"sums over rows",
     MAIN("[C], [V], [S]") DOT ZERO
     "%q = stablehlo.multiply %p, %r : [C]\n"
     "%c = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0, 1] : "
     "([C], [S]) -> [V]\n"
     "%s = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : "
     "([C], [S]) -> [S]\n" RETURN("%q, %c, %s", "[C], [V], [S]"),
     true, true},
    {"product is a result",
     MAIN("[C], [C]") DOT "%q = stablehlo.add %p, %r : [C]\n" RETURN("%p, %q", "[C], [C]"), false,
     false},
    {"only a sum is left",
     MAIN("[R]") DOT ZERO
     "%q = stablehlo.multiply %p, %r : [C]\n"
     "%s = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [2] : "
     "([C], [S]) -> [R]\n" RETURN("%s", "[R]"),
     false, false},
    {"new state from the old",
     "func.func public @main(%x: [X], %w: [W], %r: [C] {tf.aliasing_output = 0 : i32}) -> [C] "
     "{\n" DOT "%q = stablehlo.subtract %r, %p : [C]\n" RETURN("%q", "[C]"),
     false, false},
    {"transposed",
     MAIN("[D]") DOT "%t = stablehlo.transpose %p, dims = [0, 2, 1] : ([C]) -> [D]\n"
                     "%q = stablehlo.add %t, %z : [D]\n" RETURN("%q", "[D]"),
     true, false},
    {"batches in the middle",
     "func.func public @main(%x: [XH], %w: [WH], %r: [MH]) -> [MH] {\n"
     "%p = stablehlo.dot_general %x, %w, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x "
     "[3] : ([XH], [WH]) -> [CH]\n"
     "%t = stablehlo.transpose %p, dims = [0, 2, 1, 3] : ([CH]) -> [MH]\n"
     "%q = stablehlo.multiply %t, %r : [MH]\n" RETURN("%q", "[MH]"),
     false, false},
    {"batches last",
     "func.func public @main(%x: [XH], %w: [WH], %r: [BH]) -> [BH] {\n"
     "%p = stablehlo.dot_general %x, %w, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x "
     "[3] : ([XH], [WH]) -> [CH]\n"
     "%t = stablehlo.transpose %p, dims = [0, 3, 2, 1] : ([CH]) -> [BH]\n"
     "%q = stablehlo.multiply %t, %r : [BH]\n" RETURN("%q", "[BH]"),
     false, false},
    {"straight and transposed",
     "func.func public @main(%x: [X], %w: [X]) -> [Q] {\n"
     "%p = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [2] "
     ": ([X], [X]) -> [Q]\n"
     "%t = stablehlo.transpose %p, dims = [0, 2, 1] : ([Q]) -> [Q]\n"
     "%q = stablehlo.add %p, %t : [Q]\n" RETURN("%q", "[Q]"),
     false, false},
    {"product of the product first",
     MAIN("[Q], [C]") DOT
     "%o = stablehlo.dot_general %p, %r, batching_dims = [0] x [0], contracting_dims = [2] x [2] "
     ": ([C], [C]) -> [Q]\n"
     "%e = stablehlo.exponential %p : [C]\n"
     "%b = stablehlo.broadcast_in_dim %o, dims = [0, 1, 2] : ([Q]) -> [Q]\n" RETURN("%b, %e",
                                                                                    "[Q], [C]"),
     false, false},
    {"state that the product reads, updated by the loop",
     "func.func public @main(%x: [Q], %w: [Q] {tf.aliasing_output = 0 : i32}, %r: [Q]) -> ([Q], "
     "[Q]) {\n"
     "%p = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
     ": ([Q], [Q]) -> [Q]\n"
     "%n = stablehlo.add %w, %r : [Q]\n"
     "%q = stablehlo.add %p, %n : [Q]\n" RETURN("%n, %q", "[Q], [Q]"),
     false, false},
    {"state that the product reads",
     "func.func public @main(%x: [Q] {tf.aliasing_output = 0 : i32}) -> [Q] {\n"
     "%p = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
     ": ([Q], [Q]) -> [Q]\n"
     "%q = stablehlo.subtract %x, %p : [Q]\n" RETURN("%q", "[Q]"),
     false, false},
    {"convolution",
     CONV_MAIN "[C4] {\n" CONV("%w", "[K3]", "pad = [[1, 1], [1, 1]]", "[C4]") RELU("[C4]"), true,
     false},
    {"convolution, 1 x 1", CONV_MAIN "[C4] {\n" CONV("%w1", "[K1]", "", "[C4]") RELU("[C4]"), true,
     false},
    {"convolution, strided",
     CONV_MAIN "[H4] {\n" CONV("%w", "[K3]", "stride = [2, 2], pad = [[1, 1], [1, 1]]", "[H4]")
         RELU("[H4]"),
     true, false},
    {"convolution, in phases",
     CONV_MAIN "[D4] {\n" CONV("%w", "[K3]", "pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]", "[D4]")
         RELU("[D4]"),
     true, false},
    {"convolution, features first",
     "func.func public @main(%x: [I], %w: [K3], %r: [F4]) -> [F4] {\n"
     "%p = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, f, 0, 1], "
     "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
     "i64} : ([I], [K3]) -> [F4]\n"
     "%q = stablehlo.add %p, %r : [F4]\n" RETURN("%q", "[F4]"),
     false, false},
};
const size_t product_case_count = sizeof product_cases / sizeof *product_cases;

/* The dimensions behind a name in brackets. */
static void type_of(const char *name, product_size s, const char *dtype, char *out, size_t room)
{
    const struct {
        const char *name;
        int rank, dims[4];
    } types[] = {
        {"X", 3, {s.b, s.m, s.k}},
        {"W", 3, {s.b, s.k, s.n}},
        {"C", 3, {s.b, s.m, s.n}},
        {"D", 3, {s.b, s.n, s.m}},
        {"Q", 3, {s.b, s.m, s.m}},
        {"R", 2, {s.b, s.m}},
        {"V", 1, {s.n}},
        {"S", 0, {0}},
        {"XH", 4, {s.b, s.m, 2, s.k}},
        {"WH", 4, {s.b, s.n, 2, s.k}},
        {"CH", 4, {s.b, 2, s.m, s.n}},
        {"MH", 4, {s.b, s.m, 2, s.n}},
        {"BH", 4, {s.b, s.n, s.m, 2}},
        {"I", 4, {s.b, s.m, s.m, s.k}},
        {"K3", 4, {3, 3, s.k, s.n}},
        {"K1", 4, {1, 1, s.k, s.n}},
        {"C4", 4, {s.b, s.m, s.m, s.n}},
        {"F4", 4, {s.b, s.n, s.m, s.m}},
        {"H4", 4, {s.b, (s.m + 1) / 2, (s.m + 1) / 2, s.n}},
        {"D4", 4, {s.b, 2 * s.m - 1, 2 * s.m - 1, s.n}},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) != 0)
            continue;
        int at = snprintf(out, room, "tensor<");
        for (int d = 0; d < types[i].rank; d++)
            at += snprintf(out + at, room - (size_t)at, "%dx", types[i].dims[d]);
        snprintf(out + at, room - (size_t)at, "%s>", dtype);
        return;
    }
    snprintf(out, room, "[%s]", name); /* a list of the text's own */
}

void product_text(const product_case *which, product_size size, const char *dtype, char *out,
                  size_t room)
{
    size_t at = 0;
    for (const char *from = which->text; *from && at + 64 < room;) {
        const char *end = *from == '[' ? strpbrk(from + 1, "[]") : NULL;
        char name[64];
        if (!end || *end != ']' || end - from > 60) {
            out[at++] = *from++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(end - from - 1), from + 1);
        type_of(name, size, dtype, out + at, room - at);
        at += strlen(out + at);
        from = end + 1;
    }
    out[at] = '\0';
}

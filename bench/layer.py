"""Writes a training step of one transformer layer, as StableHLO text: layer.py [--batch B] [--tokens S] [--width D]
[--heads H] [--hidden F] > layer.mlir. Attention and two products with tanh between them, residuals around both, the way back
to its input, and plain gradient descent: what Megatron splits over ranks, with two reductions each way. Needs no packages.
"""
import argparse


class Text:
    """Values by name, with their shapes; an op a line."""

    def __init__(self):
        self.lines, self.shapes, self.count = [], {}, 0

    def name(self, shape):
        self.count += 1
        name = f"%v{self.count}"
        self.shapes[name] = shape
        return name

    def type(self, shape):
        return "tensor<" + "".join(f"{d}x" for d in shape) + "f32>"

    def types(self, *names):
        return ", ".join(self.type(self.shapes[n]) for n in names)

    def argument(self, name, *shape):
        self.shapes[name] = shape
        return name

    def plain(self, op, *operands):
        out = self.name(self.shapes[operands[0]])
        self.lines.append(f"{out} = stablehlo.{op} {', '.join(operands)} : {self.types(out)}")
        return out

    def constant(self, value, shape):
        out = self.name(shape)
        self.lines.append(f"{out} = stablehlo.constant dense<{value:e}> : {self.types(out)}")
        return out

    def dot(self, a, b, contract, batch=((), ())):
        (ca, cb), (ba, bb) = contract, batch
        sa, sb = self.shapes[a], self.shapes[b]
        shape = tuple(sa[i] for i in ba) + tuple(d for i, d in enumerate(sa) if i not in (*ba, *ca)) + \
            tuple(d for i, d in enumerate(sb) if i not in (*bb, *cb))
        out = self.name(shape)
        batching = f"batching_dims = {list(ba)} x {list(bb)}, " if ba else ""
        self.lines.append(f"{out} = stablehlo.dot_general {a}, {b}, {batching}contracting_dims = {list(ca)} x {list(cb)} : "
                          f"({self.types(a, b)}) -> {self.types(out)}")
        return out

    def fold(self, op, start, a, dims):
        first = self.constant(start, ()) if start is not None else self.name(())
        if start is None:
            self.lines.append(f"{first} = stablehlo.constant dense<0xFF800000> : tensor<f32>")
        out = self.name(tuple(d for i, d in enumerate(self.shapes[a]) if i not in dims))
        self.lines.append(f"{out} = stablehlo.reduce({a} init: {first}) applies stablehlo.{op} across dimensions = {list(dims)} : "
                          f"({self.types(a, first)}) -> {self.types(out)}")
        return out

    def spread(self, a, shape):
        """Repeated along the last dimension."""
        out = self.name(shape)
        dims = list(range(len(self.shapes[a])))
        self.lines.append(f"{out} = stablehlo.broadcast_in_dim {a}, dims = {dims} : ({self.types(a)}) -> {self.types(out)}")
        return out

    def turn(self, a, order):
        out = self.name(tuple(self.shapes[a][i] for i in order))
        self.lines.append(f"{out} = stablehlo.transpose {a}, dims = {list(order)} : ({self.types(a)}) -> {self.types(out)}")
        return out

    def scaled(self, a, factor):
        return self.plain("multiply", a, self.constant(factor, self.shapes[a]))


def layer(batch, tokens, width, heads, hidden):
    t = Text()
    size = width // heads
    x = t.argument("%x", batch, tokens, width)
    wq, wk, wv = (t.argument(f"%w{n}", width, heads, size) for n in "qkv")
    wo = t.argument("%wo", heads, size, width)
    up, down = t.argument("%up", width, hidden), t.argument("%down", hidden, width)
    arguments = [wq, wk, wv, wo, up, down, x]
    last = ((2,), (0,))

    q, k, v = (t.dot(x, w, last) for w in (wq, wk, wv))
    s = t.scaled(t.dot(q, k, ((3,), (3,)), ((0, 2), (0, 2))), size ** -0.5)
    e = t.plain("exponential", t.plain("subtract", s, t.spread(t.fold("maximum", None, s, (3,)), t.shapes[s])))
    p = t.plain("divide", e, t.spread(t.fold("add", 0, e, (3,)), t.shapes[e]))
    o = t.dot(p, v, ((3,), (1,)), ((0, 1), (0, 2)))
    r = t.plain("add", x, t.dot(o, wo, ((1, 3), (0, 1))))
    h = t.plain("tanh", t.dot(r, up, last))
    out = t.plain("add", r, t.dot(h, down, last))
    n = batch * tokens * width
    loss = t.fold("add", 0, t.scaled(t.plain("multiply", out, out), 1 / n), (0, 1, 2))

    dout = t.scaled(out, 2 / n)
    ddown = t.dot(h, dout, ((0, 1), (0, 1)))
    dh = t.dot(dout, down, ((2,), (1,)))
    one = t.constant(1, t.shapes[h])
    dt = t.plain("multiply", dh, t.plain("subtract", one, t.plain("multiply", h, h)))
    dup = t.dot(r, dt, ((0, 1), (0, 1)))
    dr = t.plain("add", dout, t.dot(dt, up, ((2,), (1,))))
    dwo = t.dot(o, dr, ((0, 2), (0, 1)))
    do = t.dot(dr, wo, ((2,), (2,)))
    dv = t.dot(p, do, ((2,), (1,)), ((0, 1), (0, 2)))
    dp = t.dot(do, v, ((3,), (3,)), ((0, 2), (0, 2)))
    inner = t.spread(t.fold("add", 0, t.plain("multiply", dp, p), (3,)), t.shapes[p])
    ds = t.scaled(t.plain("multiply", p, t.plain("subtract", dp, inner)), size ** -0.5)
    dq = t.dot(ds, k, ((3,), (1,)), ((0, 1), (0, 2)))
    dk = t.dot(ds, q, ((2,), (1,)), ((0, 1), (0, 2)))
    dws = [t.dot(x, g, ((0, 1), (0, 2))) for g in (dq, dk, dv)]
    dx = dr
    for g, w in ((dq, wq), (dk, wk), (dv, wv)):
        dx = t.plain("add", dx, t.dot(g, w, ((1, 3), (1, 2))))
    new = [t.plain("subtract", w, t.scaled(g, 0.1)) for w, g in zip((wq, wk, wv, wo, up, down), (*dws, dwo, dup, ddown))]

    results = [*new, loss, dx]
    weights = len(new)
    head = ", ".join(f"{a}: {t.types(a)}" + (f" {{tf.aliasing_output = {i} : i32}}" if i < weights else "")
                     for i, a in enumerate(arguments))
    body = "\n".join(f"  {line}" for line in t.lines)
    return f"func.func public @main({head}) -> ({t.types(*results)}) {{\n{body}\n" \
           f"  return {', '.join(results)} : {t.types(*results)}\n}}\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("batch", 8), ("tokens", 128), ("width", 512), ("heads", 8), ("hidden", 2048)):
        p.add_argument(f"--{name}", type=int, default=usual)
    print(layer(**vars(p.parse_args())), end="")


if __name__ == "__main__":
    main()

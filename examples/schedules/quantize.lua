-- A user primitive: weights are rounded to a number of bits in the forward pass; gradients ignore the rounding.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
sheaf.primitive{
    name = "quantize",
    check = function(module, bits) return bits >= 2, "weights of less than two bits" end,
    apply = function(module, bits)
        local most = (1 << bits - 1) - 1
        module:trace{}
        module:replace(function(x, w) return dot(x, op.round_nearest_even(w * most) / most) end,
            module:find(function(x, w) return dot(x, w) end), {name = "quantized"})
    end,
}
sch["layer_?.mlp"]:quantize(tune.int("bits", 4, 24, 4))

-- Ops found and replaced: GELU in another form, and one product for queries, keys and values.
local sch = sheaf.schedule()
local mlp, attn = sch["layer_?.mlp"], sch["layer_?.attn"]
sch:mesh{{"model", sheaf.ranks or 1}}
mlp:trace{}
mlp:replace(function(x, b)
    local y = x + b
    return y * op.logistic(y * (y * y * 0.044715 + 1) * 1.5957691216057308)
end, mlp:find(function(x, b) return gelu(x + b) end), {name = "gelu"})
attn:trace{}
attn:replace(function(x, q, k, v)
    local n, all = q.shape[2], dot(x, op.concatenate(q, k, v, {dimension = 1}))
    local function part(i)
        return op.slice(all, {start_indices = {0, 0, i * n}, strides = {1, 1, 1},
            limit_indices = {x.shape[1], x.shape[2], (i + 1) * n}})
    end
    return part(0), part(1), part(2)
end, attn:find(function(x, q, k, v) return dot(x, q), dot(x, k), dot(x, v) end), {name = "qkv"})

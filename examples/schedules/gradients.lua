-- A module replaced, forward and backward: an MLP whose GELU and its derivative are written with the logistic function.
local sch = sheaf.schedule()
sch:mesh{{"data", sheaf.ranks or 1}}
local function parts(x, up_bias, up)
    local h = dot(x, up) + up_bias
    local s = op.logistic(h * (h * h * 0.044715 + 1) * 1.5957691216057308)
    return h, s, h * s
end
local rows, last = {0, 1}, {2}
local function outer(a, b) return dot(a, b, {lhs_contracting_dimensions = rows, rhs_contracting_dimensions = rows}) end
local function back(a, b) return dot(a, b, {lhs_contracting_dimensions = last, rhs_contracting_dimensions = {1}}) end
sch["layer_?.mlp"]:replace(function(x, down_bias, down, up_bias, up)
    local _, _, a = parts(x, up_bias, up)
    return dot(a, down) + down_bias
end, nil, {name = "mine", backward = function(x, down_bias, down, up_bias, up, dy)
    local h, s, a = parts(x, up_bias, up)
    local dh = back(dy, down) * (s + a * (1 - s) * (h * h * 0.134145 + 1) * 1.5957691216057308)
    return back(dh, up), op.sum(dy, rows), outer(a, dy), op.sum(dh, rows), outer(x, dh)
end})

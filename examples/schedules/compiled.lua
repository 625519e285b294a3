-- Compiled loops: bias and GELU, softmax, and layer norm, forward and backward.
local sch = sheaf.schedule()
sch:mesh{{"data", sheaf.ranks or 1}}
for _, pattern in ipairs{"layer_?.mlp", "layer_?.attn", "layer_?.norm?"} do
    local module = sch[pattern]
    module:trace{}
    module:fuse(module:find("(add|multiply|exponential|tanh|rsqrt)$"), {compiler = "cc"})
end

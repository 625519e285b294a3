-- The space of tune-opt.lua at a size that one machine runs, for sheaf tune --by run: how many of 24 examples go through at once,
-- and in how many of the 12 halves of layers, attention and MLP, activations are recomputed. 7 by 13 settings.
local sch = sheaf.schedule()
local batch = tune.choice("batch", {1, 2, 3, 4, 6, 8, 12})
local again = tune.int("again", 0, 12)
sch:mesh{{"data", sheaf.ranks or 1}}
sch:recipe("dp")
sch:micro_batches(24 // batch)
for i = 1, again do
    sch["layer_" .. (i - 1) // 2][i % 2 == 1 and "attn" or "mlp"]:checkpoint()
end

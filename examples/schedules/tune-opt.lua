-- OPT-350M on 8 V100, for sheaf tune: how many examples of a rank's 96 go through at once, and in how many of the layers
-- activations are recomputed. Few examples leave memory, many need it: 91 settings that do not form a rectangle.
local sch = sheaf.schedule()
local batch = tune.choice("batch", {2, 3, 4, 6, 8, 12, 16, 24, 32})
local layers = tune.int("layers", batch > 8 and 12 or 0, batch < 4 and 22 or 24, 2)
sch:mesh{{"data", sheaf.ranks or 8}}
sch:recipe("zero3")
sch:micro_batches(96 // batch)
for i, layer in ipairs(sch:children("layer_*")) do
    if i <= layers then layer:checkpoint() end
end

-- OPT has the modules of GPT; here half of the ranks split the batch, and every other layer is recomputed.
local sch = sheaf.schedule()
local ranks = sheaf.ranks or 4
local model = ranks > 2 and ranks // 2 or 1
sch:mesh{{"data", ranks // model}, {"model", model}}
sch:recipe("dp")
sch["layer_*"]:shard({"q/kernel", "k/kernel", "v/kernel", "up/kernel"}, 1)
sch["layer_*"]:shard({"o/kernel", "down/kernel"}, 0)
sch["layer_*.attn"]:sync("forward")
sch["layer_*.mlp"]:sync("forward")
for i, layer in ipairs(sch:children("layer_*")) do
    if i % 2 == 1 then layer:checkpoint() end
end

-- OPT is GPT to a schedule; here with half of the ranks on the batch, and every other layer computed again.
local sch = sheaf.schedule()
local ranks = sheaf.ranks or 4
local model = ranks > 2 and ranks // 2 or 1
sch:mesh{{"data", ranks // model}, {"model", model}}
sch:recipe("dp")
for i, layer in ipairs(sch:children("layer_*")) do
    for _, name in ipairs{"q", "k", "v"} do
        layer.attn[name]:shard("kernel", 1)
    end
    layer.attn.o:shard("kernel", 0)
    layer.attn:sync("forward")
    layer.mlp.up:shard("kernel", 1)
    layer.mlp.down:shard("kernel", 0)
    layer.mlp:sync("forward")
    if i % 2 == 1 then layer:checkpoint() end
end

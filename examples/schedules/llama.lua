-- LLaMA: as GPT, with a gate beside the MLP's first product. Keys and values have few heads, and stay whole.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
for _, layer in ipairs(sch:children("layer_*")) do
    layer.attn.q:shard("kernel", 1)
    layer.attn.o:shard("kernel", 0)
    layer.attn:sync("forward")
    layer.mlp.gate:shard("kernel", 1)
    layer.mlp.up:shard("kernel", 1)
    layer.mlp.down:shard("kernel", 0)
    layer.mlp:sync("forward")
    layer.mlp:sync("backward")
end
sch.wte:shard("embedding", 0)
sch.head:shard("kernel", 1)

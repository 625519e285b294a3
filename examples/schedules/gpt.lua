-- GPT: attention by heads, the MLP by features, the embedding, which the output shares, by words.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
for _, layer in ipairs(sch:children("layer_*")) do
    for _, name in ipairs{"q", "k", "v"} do
        layer.attn[name]:shard("kernel", 1)
        layer.attn[name]:shard("bias", 0)
    end
    layer.attn.o:shard("kernel", 0)
    layer.attn:sync("forward")
    layer.attn:sync("backward")
    layer.mlp.up:shard("kernel", 1)
    layer.mlp.up:shard("bias", 0)
    layer.mlp.down:shard("kernel", 0)
    layer.mlp:sync("forward")
end
sch.wte:shard("embedding", 0)

-- T5: encoder and decoder alike; the decoder also attends to what the encoder made.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
local function split_attention(attention)
    for _, name in ipairs{"q", "k", "v"} do
        attention[name]:shard("kernel", 1)
    end
    attention.o:shard("kernel", 0)
    attention:sync("forward")
end
for _, layer in ipairs(sch:children("*c_*")) do
    if layer:name():find("_%d") then
        split_attention(layer.attn)
        if layer:name():find("^dec") then split_attention(layer.cross) end
        layer.mlp.up:shard("kernel", 1)
        layer.mlp.down:shard("kernel", 0)
        layer.mlp:sync("forward")
    end
end
sch.shared:shard("embedding", 0)

-- T5: encoder and decoder alike; the decoder also attends to the encoder's results.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
for _, part in ipairs{"enc_*", "dec_*"} do
    sch[part]:shard({"q/kernel", "k/kernel", "v/kernel", "up/kernel"}, 1)
    sch[part]:shard({"o/kernel", "down/kernel"}, 0)
    sch[part .. ".attn"]:sync("forward")
    sch[part .. ".mlp"]:sync("forward")
end
sch["dec_*.cross"]:sync("forward")
sch.shared:shard("embedding", 0)

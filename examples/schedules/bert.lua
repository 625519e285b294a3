-- BERT as Megatron splits it: queries, keys and values by heads, the MLP by features, the embedding by words.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
sch["layer_*"]:shard({"q/kernel", "k/kernel", "v/kernel", "up/kernel"}, 1)
sch["layer_*"]:shard({"q/bias", "k/bias", "v/bias", "up/bias"}, 0)
sch["layer_*"]:shard({"o/kernel", "down/kernel"}, 0)
sch["layer_*.attn"]:sync("forward")
sch["layer_*.attn"]:sync("backward")
sch["layer_*.mlp"]:sync("forward")
sch.wte:shard("embedding", 0)

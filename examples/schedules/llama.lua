-- LLaMA: as GPT, with a gate beside the MLP's first product. Keys and values have few heads and are replicated.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
sch["layer_*"]:shard({"q/kernel", "gate/kernel", "up/kernel"}, 1)
sch["layer_*"]:shard({"o/kernel", "down/kernel"}, 0)
sch["layer_*.attn"]:sync("forward")
sch["layer_*.mlp"]:sync("forward")
sch["layer_*.mlp"]:sync("backward")
sch.wte:shard("embedding", 0)
sch.head:shard("kernel", 1)

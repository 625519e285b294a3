-- RoBERTa has the modules of BERT; here every layer is recomputed in the backward pass.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
sch["layer_*"]:shard({"q/kernel", "k/kernel", "v/kernel", "up/kernel"}, 1)
sch["layer_*"]:shard({"q/bias", "k/bias", "v/bias", "up/bias"}, 0)
sch["layer_*"]:shard({"o/kernel", "down/kernel"}, 0)
sch["layer_*.attn"]:sync("forward")
sch["layer_*.attn"]:sync("backward")
sch["layer_*.mlp"]:sync("forward")
for _, layer in ipairs(sch:children("layer_*")) do layer:checkpoint() end
sch.wte:shard("embedding", 0)

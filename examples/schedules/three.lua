-- Three vocabularies in one schedule, on 8 ranks: stages and their order (nnScaler), sharded parameters and recomputed layers
-- (Slapo), and passes over the ranks' programs (DeepCompile). Two pipeline ranks of four devices, data=2 by model=2 each, have
-- four stages, two each, and optimizer state is sharded.
local sch, space, micro_batches = sheaf.schedule(), sheaf.space(8), 2
local groups = {{0, 1, 2, 3}, {4, 5, 6, 7}}
sch:mesh("data=2,model=2")
sch:recipe("zero1")
space:trans(nil, "batch", micro_batches, "time")
local stages = {sch.layer_0.attn, sch.layer_0.mlp, sch.layer_1.attn, sch.layer_1.mlp}
for i, stage in ipairs(stages) do space:assign(stage, groups[(i - 1) % 2 + 1]) end
for mb = 0, micro_batches - 2 do -- a pipeline rank holds the first stage of at most one micro-batch ahead
    space:order({stages[3], "forward", mb}, {stages[1], "forward", mb + 1})
end
sch["layer_?.attn"]:shard({"q/kernel", "k/kernel", "v/kernel"}, 1, "model")
sch["layer_?.attn"]:shard("o/kernel", 0, "model")
sch["layer_?.mlp"]:shard("up/kernel", 1, "model")
sch["layer_?.mlp"]:shard("down/kernel", 0, "model")
sch["layer_?"]:sync("forward", "all_reduce")
sch.layer_0:checkpoint()
sch:passes("fsdp,prefetch")

-- Three vocabularies in one schedule, on 8 ranks: stages and their order (nnScaler), sharded parameters and recomputed layers
-- (Slapo), and passes over the programs of ranks (DeepCompile). Two groups of four ranks, each two of data by two of model;
-- four stages go round the groups twice, and optimizer state is in pieces.
local sch, space, micro_batches = sheaf.schedule(), sheaf.space(8), 2
local groups = {{0, 1, 2, 3}, {4, 5, 6, 7}}
sch:mesh("data=2,model=2")
sch:recipe("zero1")
space:trans(nil, "batch", micro_batches, "time")
local stages = {sch.layer_0.attn, sch.layer_0.mlp, sch.layer_1.attn, sch.layer_1.mlp}
for i, stage in ipairs(stages) do space:assign(stage, groups[(i - 1) % 2 + 1]) end
for micro_batch = 0, micro_batches - 2 do -- a group holds the first stage of no more than one micro-batch beside the others
    space:order({stages[3], "forward", micro_batch}, {stages[1], "forward", micro_batch + 1})
end
sch["layer_?.attn"]:shard({"q/kernel", "k/kernel", "v/kernel"}, 1, "model")
sch["layer_?.attn"]:shard("o/kernel", 0, "model")
sch["layer_?.mlp"]:shard("up/kernel", 1, "model")
sch["layer_?.mlp"]:shard("down/kernel", 0, "model")
sch["layer_?"]:sync("forward", "all_reduce")
sch.layer_0:checkpoint()
sch:passes("fsdp,prefetch")

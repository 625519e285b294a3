-- nnScaler, a pipeline as GPipe has it: all forward tasks of a stage before all of its backward tasks.
local space, micro_batches = sheaf.space(2), 4
space:trans(nil, "batch", micro_batches, "time")
for stage = 0, 1 do
    space:assign("layer_" .. stage, stage)
    for micro_batch = 0, micro_batches * micro_batches - 1 do
        space:order({"layer_" .. stage, "forward", micro_batch // micro_batches}, {"layer_" .. stage, "backward", micro_batch % micro_batches})
    end
end

-- nnScaler, a pipeline as GPipe has it: all forward tasks of a stage before all of its backward tasks.
local space, micro_batches = sheaf.space(2), 4
space:trans(nil, "batch", micro_batches, "time")
for stage = 0, 1 do
    space:assign("layer_" .. stage, stage)
    for mb = 0, micro_batches * micro_batches - 1 do
        space:order({"layer_" .. stage, "forward", mb // micro_batches}, {"layer_" .. stage, "backward", mb % micro_batches})
    end
end

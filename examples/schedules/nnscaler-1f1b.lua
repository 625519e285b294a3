-- nnScaler, 1F1B: as many forward tasks ahead as there are later stages, then one backward for one forward.
local space, micro_batches, stages = sheaf.space(2), 4, 2
space:trans(nil, "batch", micro_batches, "time")
for stage = 0, stages - 1 do
    local layer, ahead = "layer_" .. stage, stages - stage
    space:assign(layer, stage)
    for micro_batch = 0, micro_batches - ahead - 1 do
        space:order({layer, "backward", micro_batch}, {layer, "forward", micro_batch + ahead})
    end
end

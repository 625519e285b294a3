-- nnScaler, 1F1B: as many forward tasks ahead as there are stages behind, then one backward for one forward.
local space, turns, stages = sheaf.space(2), 4, 2
space:trans(nil, "batch", turns, "time")
for stage = 0, stages - 1 do
    local layer, ahead = "layer_" .. stage, stages - stage
    space:assign(layer, stage)
    for turn = 0, turns - ahead - 1 do
        space:order({layer, "backward", turn}, {layer, "forward", turn + ahead})
    end
end

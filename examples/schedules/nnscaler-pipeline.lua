-- nnScaler, a pipeline as GPipe has it: all forward tasks of a stage before all of its backward tasks.
local space, turns = sheaf.space(2), 4
space:trans(nil, "batch", turns, "time")
for stage = 0, 1 do
    space:assign("layer_" .. stage, stage)
    for turn = 0, turns * turns - 1 do
        space:order({"layer_" .. stage, "forward", turn // turns}, {"layer_" .. stage, "backward", turn % turns})
    end
end

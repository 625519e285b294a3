-- nnScaler, 3F1B: three forward passes go through the stages of AlphaFold2, and one backward pass.
local space, turns = sheaf.space(2), 2
space:trans(nil, "batch", turns, "time")
space:assign("row,row_ln", 0)
space:assign("col,mt", 1)
for turn = 0, turns - 2 do
    space:order({"row", "backward", turn}, {"row", "forward", turn + 1, 3})
end

-- nnScaler, 3F1B: three forward passes go through the stages of AlphaFold2, and one backward pass.
local space, micro_batches = sheaf.space(2), 2
space:trans(nil, "batch", micro_batches, "time")
space:assign("row,row_ln", 0)
space:assign("col,mt", 1)
for micro_batch = 0, micro_batches - 2 do
    space:order({"row", "backward", micro_batch}, {"row", "forward", micro_batch + 1, 3})
end

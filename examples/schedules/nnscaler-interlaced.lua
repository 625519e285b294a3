-- nnScaler, interlaced: the embedding of T5 on all devices, between the tasks of stages that have one each.
local space = sheaf.space(2)
space:trans(nil, "batch", 2, "time")
space:assign("shared", {0, 1})
space:assign("*enc*", 0)
space:assign("*dec*", 1)

-- nnScaler, co-shard for Swin: features of an MLP one after the other on the same device, and computed again.
local space = sheaf.space(1)
space:trans("s?b?mlp/up/dot_general", "l", 4, "time")
space:trans(nil, "recompute", 1, "time")

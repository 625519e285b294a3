-- nnScaler, co-shard for Swin: the features of an MLP in chunks on one device, recomputed in the backward pass.
local space = sheaf.space(1)
space:trans("s?b?mlp/up/dot_general", "l", 4, "time")
space:trans(nil, "recompute", 1, "time")

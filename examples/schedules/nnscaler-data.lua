-- nnScaler, data parallelism: every op on a part of the batch.
local space = sheaf.space(sheaf.ranks or 2)
space:trans(nil, "batch", sheaf.ranks or 2)

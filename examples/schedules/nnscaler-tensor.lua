-- nnScaler, tensor parallelism: the first product of an MLP is split by columns; the second follows, by rows.
local n = sheaf.ranks or 2
local space = sheaf.space(n)
space:trans("layer_?/mlp/up/dot_general", "k", n)

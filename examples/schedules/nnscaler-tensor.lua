-- nnScaler, tensor parallelism: the first product of an MLP by what it makes; the second follows, by what it reads.
local n = sheaf.ranks or 2
local space = sheaf.space(n)
space:trans("layer_?/mlp/up/dot_general", "k", n)

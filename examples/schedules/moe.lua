-- A mixture of experts: experts over one axis of the mesh, the batch over the other.
local sch = sheaf.schedule()
local ranks = sheaf.ranks or 2
local experts = ranks > 4 and 4 or ranks
sch:mesh{{"data", ranks // experts}, {"expert", experts}}
sch:recipe("dp")
sch["layer_*.moe"]:shard({"wi", "wo"}, 0, "expert")
sch["layer_*.moe"]:sync("forward", "all_reduce")
sch["layer_*.norm?"]:checkpoint()

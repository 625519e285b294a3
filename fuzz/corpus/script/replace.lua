local sch = sheaf.schedule() sch:mesh("model=2") sch.layer_0:trace{} local s = sch.layer_0:find(function(x) return tanh(x) end) sch.layer_0:replace(function(x) return x end, s)

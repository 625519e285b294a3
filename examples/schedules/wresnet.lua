-- Wide-ResNet: channels. The first convolution of a block by what it makes, the second by what it reads.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
sch["s?b?_c1"]:shard("kernel", 3)
sch["s?b?_n1"]:shard({"scale", "bias"}, 0)
sch["s?b?_c2"]:shard("kernel", 2)
sch["s?b?_c2"]:sync("forward")
sch["s?b?_c2"]:checkpoint()

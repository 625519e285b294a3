-- Wide-ResNet: the first convolution of a block is split by output channels, the second by input channels.
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 2}}
sch["s?b?_c1"]:shard("kernel", 3)
sch["s?b?_n1"]:shard({"scale", "bias"}, 0)
sch["s?b?_c2"]:shard("kernel", 2)
sch["s?b?_c2"]:sync("forward")
sch["s?b?_c2"]:checkpoint()

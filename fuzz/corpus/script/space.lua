local s = sheaf.space(2) s:trans(nil, "batch", 2) s:order({"layer_0"}, {"layer_0", "backward", 0})

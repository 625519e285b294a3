tune.int("a", 1, 4) return sheaf.schedule()["layer_*"]:params()

PREFIX ?= /usr/local

# make demo builds the command alone and hardly optimized, in the same directory.
all:
	scripts/build build -DSF_QUICK=OFF

demo:
	scripts/install-deps --build
	scripts/demo

check:
	scripts/install-deps
	scripts/check

# The long version of all checks: every test in full, all tests with sanitizers, sweeps, soaks, fuzzing. About two hours.
nightly:
	scripts/install-deps --nightly
	scripts/check --nightly

bench: all
	scripts/bench

# This tree beside an older commit, in one run: make beside OLD=COMMIT.
beside: all
	scripts/beside $(OLD)

# Runs SOAK_CASES (2000 unless set) random instances of every op on the engine against the oracle; then kills
# ranks for SOAK_SECONDS (600 unless set); then kills, stops and corrupts training at random for as long.
soak: all
	SHEAF_DEVICE_CASES=$${SOAK_CASES:-2000} build/test/run_tests cpu/device
	SHEAF_NIGHTLY=1 SHEAF_BIN=build/sheaf SHEAF_SOURCE=. SHEAF_KILL_RANKS=4 SHEAF_KILL_SECONDS=$${SOAK_SECONDS:-600} \
		test/cli/split_kill.sh || test $$? -eq 77
	scripts/soak $${SOAK_SECONDS:-600}

# Simulated times beside measured ones, on ranks of this machine: REALITY="--ranks 1 --models unet-mini" for less.
reality: all
	bench/reality $(REALITY)

# The effect of passes on four ranks of two hosts that are network namespaces: PASSES="--only gpt-mini-64:16" for less.
passes: all
	bench/passes $(PASSES)

# Simulated step times of plans beside measured ones, on four ranks of two hosts that are network namespaces:
# about 12 minutes.
hosts: all
	scripts/reality

# Plans the models of the papers and writes docs/design/results.md; zoo/large exports them: RESULTS="--only rhino" for less.
results: all
	bench/results $(RESULTS)

# Plans the large steps on three clusters with loose and tight memory, and fails where the search missed a plan:
# SWEEP="-O2 gpt-350m" for less. Then compares plans of random steps, of which one must not be slower than the other:
# PROPERTIES="--seed 1" for less; that needs JAX.
sweep: all
	bench/plan_sweep $(SWEEP)
	bench/plan_properties $(PROPERTIES)

# Tries to beat the planner by hand on random steps and clusters: ATTACK="--seed 1-2" for less. Needs JAX.
attack: all
	cmake --build build --target attack_bench
	bench/attack $(ATTACK)

# Plans with micro-batches, stages and sharded state on all small steps, each made and verified: VERIFY="--mpi gpt-micro" for MPI, or less.
verify-sweep: all
	bench/verify_sweep --part turns $(VERIFY)
	bench/verify_sweep --part stages $(VERIFY)
	bench/verify_sweep --part shards $(VERIFY)
	bench/verify_sweep --part fit $(VERIFY)

# How often verifying is wrong: false alarms over hundreds of good splits, and mistakes that pass.
alarms: all
	build/test/api_tests verify/alarms --all

# Exports some hundred small steps as people write them with JAX, and takes them through the command: zoo/README.md.
zoo: all
	zoo/make
	zoo/run

# PyTorch models of transformers, torchvision and timm, exported, trained and compared with PyTorch: fetches PyTorch once.
check-torch: all
	scripts/check-torch

# Builds the documents as a site with search, in build/docs.
docs:
	scripts/docs

# Builds the wheel of the Python package for this machine's processor, in build/wheel/dist.
wheel:
	scripts/wheel

install: all
	cmake --install build --prefix "$(PREFIX)"

# Fuzzes every parser for FUZZ_SECONDS (600 unless set) each.
fuzz:
	scripts/fuzz

format:
	scripts/format

clean:
	rm -rf build build-asan build-tsan build-bare build-fuzz

.PHONY: all demo check nightly bench beside soak reality passes hosts results sweep attack verify-sweep alarms zoo check-torch docs wheel install fuzz format clean

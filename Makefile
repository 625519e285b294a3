PREFIX ?= /usr/local

all:
	scripts/build build

demo:
	scripts/install-deps
	scripts/build build
	scripts/demo

check:
	scripts/install-deps
	scripts/check

bench: all
	scripts/bench

install: all
	cmake --install build --prefix "$(PREFIX)"

# Fuzzes every parser for FUZZ_SECONDS (600 unless set) each.
fuzz:
	scripts/fuzz

format:
	scripts/format

clean:
	rm -rf build build-asan build-fuzz

.PHONY: all demo check bench install fuzz format clean

# Every target does first what it needs: system packages, libtorch, the build. `make` alone lists the targets.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/normlab
LIBTORCH := $(CACHE)/libtorch-$(shell sed -n 's/^torch==\([0-9.]*\).*/\1/p' tools/torch-requirements.txt)
VENV := $(CACHE)/venv-$(shell sha256sum tests/requirements.txt | cut -c1-12)
TORCH_VENV := $(CACHE)/torch-venv-$(shell sha256sum tests/python/requirements.txt | cut -c1-12)
TORCH_DIR ?= $(LIBTORCH)
PREFIX ?= /usr/local
# A group of files that include torch takes up to 3 GB to compile.
JOBS ?= $(shell awk -v n=$$(nproc) '/^MemAvailable/ { m = int($$2 / 3e6); print m < 1 ? 1 : m < n ? m : n }' /proc/meminfo)

# The lock: two makes in one clone take turns, as ninja itself would not.
BUILD = mkdir -p build && flock build/lock cmake --preset release -DTORCH_DIR="$(TORCH_DIR)" >build/configure.log && \
        flock build/lock cmake --build build -j $(JOBS)

# Fuzzers, under sanitizers; $(1) seconds for each fuzzer.
FUZZ = mkdir -p build-fuzz && flock build-fuzz/lock cmake --preset fuzz -DFUZZ_SECONDS=$(1) >build-fuzz/configure.log && \
       flock build-fuzz/lock cmake --build build-fuzz -j $(JOBS) && \
       ctest --test-dir build-fuzz --output-on-failure --no-tests=error -j2

.PHONY: help setup packages libtorch venv torchvenv build demo test test-arm wheel quick torture fuzz check hooks bench
.PHONY: format install deb dist archive clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: packages libtorch venv  ## install all that is needed, build nothing

packages:
	@tools/install_packages.sh

libtorch: packages
	@[ "$(TORCH_DIR)" != "$(LIBTORCH)" ] || tools/fetch_libtorch.sh "$(LIBTORCH)"

venv: packages
	@tools/make_venv.sh "$(VENV)" tests/requirements.txt

# 2.4 GB of downloads. Where PyPI cannot be reached, the tests of the Python package are skipped, with that reason.
torchvenv: packages
	@PIP_NO_DEPS=1 tools/make_venv.sh "$(TORCH_VENV)" tests/python/requirements.txt || true

build: libtorch  ## build the program build/normlab; TORCH_DIR=folder: with your own libtorch or torch wheel
	@$(BUILD) --target normlab
	@echo 'built build/normlab; to call it as normlab: export PATH="$(CURDIR)/build:$$PATH"'

demo: build  ## compare seven values of p on Tiny Shakespeare, a few minutes, and write the report
	build/normlab compare --config recipes/lp-shakespeare-quick.toml --out studies/demo

test: libtorch venv torchvenv  ## build everything and run all tests
	@tools/install_packages.sh test
	@$(BUILD)
	ctest --test-dir build --output-on-failure --no-tests=error -j2
	$(call FUZZ,10)
	@# Studies with a time budget have the machine to themselves; the other tests share it.
	NORMLAB_BINARY="$(CURDIR)/build/normlab" "$(VENV)/bin/python" -m pytest -q tests/e2e/test_first_study.py
	NORMLAB_BINARY="$(CURDIR)/build/normlab" "$(VENV)/bin/python" -m pytest -q -n 2 --dist loadfile tests/e2e \
	    --ignore tests/e2e/test_first_study.py
	python="$(TORCH_VENV)/bin/python"; [ -x "$$python" ] || python="$(VENV)/bin/python"; \
	  NORMLAB_BINARY="$(CURDIR)/build/normlab" "$$python" -m pytest -q -n 2 --dist loadfile tests/python

test-arm: packages  ## compile the torch-free layers for aarch64 and run the tests of the kernels under qemu
	@tools/install_packages.sh test-arm
	@tools/make_arm_sysroot.sh build-arm/sysroot
	@flock build-arm/lock cmake --preset arm >build-arm/configure.log && \
	  flock build-arm/lock cmake --build build-arm -j $(JOBS) --target core_tests
	ctest --test-dir build-arm --output-on-failure --no-tests=error

wheel: packages  ## build a wheel of program and Python package into dist, with the torch of PYTHON=python3
	@$(or $(PYTHON),python3) -m pip wheel --no-deps --wheel-dir dist .

deb: build  ## write a Debian package of the program and of the library for C into dist
	@tools/install_packages.sh deb
	@flock build/lock cmake --build build -j $(JOBS) --target normlab normlab_c
	@tools/make_deb.sh build dist

# All three bear the date of the last commit.
dist: archive torchvenv deb  ## write source archive, wheel and Debian package into dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(MAKE) --no-print-directory wheel PYTHON="$(TORCH_VENV)/bin/python"

archive:  ## write the source archive of the last commit into dist; the same commit gives the same bytes
	@mkdir -p dist
	@name=normlab-$$(sed -n 's/^project(normlab VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt) && \
	  git -c tar.umask=0022 archive --format=tar --prefix=$$name/ HEAD | gzip -9n >dist/$$name.tar.gz && \
	  echo dist/$$name.tar.gz

quick: libtorch  ## build everything and run the unit tests, without the slow ones: under 90 s once built
	@$(BUILD)
	ctest --test-dir build --output-on-failure --no-tests=error -j2 -LE slow

torture: libtorch venv deb  ## a fault at every call of a training, a study killed for ten minutes, random cases: an hour
	@# Where Slurm cannot be installed, its test is skipped, with that reason.
	@tools/install_packages.sh torture || true
	@$(BUILD) --target normlab normlab_faults core_tests
	RC_PARAMS=max_success=2000 build/core_tests --gtest_brief=1 --gtest_filter='*Properties.*'
	NORMLAB_TORTURE=1 NORMLAB_BINARY="$(CURDIR)/build/normlab" "$(VENV)/bin/python" -m pytest -q -n 2 \
	    tests/e2e/test_long_haul.py tests/e2e/test_fault_injection.py tests/e2e/test_hosts.py \
	    tests/e2e/test_slurm.py
	tools/try_deb.sh dist/normlab_*.deb || [ $$? = 77 ]

fuzz: packages  ## run each fuzzer for MINUTES=10
	@tools/install_packages.sh test
	$(call FUZZ,$$((60 * $(or $(MINUTES),10))))

check: libtorch  ## formatting, clang-tidy, self-contained headers and lone compilation of what differs from BASE=main
	@tools/install_packages.sh format
	@flock build/lock cmake --preset release -DTORCH_DIR="$(TORCH_DIR)" >/dev/null
	@tools/check_changes.sh "$(or $(BASE),main)"

hooks:  ## check the formatting of what is committed, and the length of the subject
	git config core.hooksPath tools/hooks

bench: build  ## measure the speed of steps, attention, operators, studies and decoding
	for what in step attention ops study decode; do build/normlab bench $$what || exit; done

format:  ## format the C++ sources
	@tools/install_packages.sh format
	git ls-files -co --exclude-standard '*.h' '*.cpp' | xargs clang-format -i

install: $(if $(wildcard build/build.ninja),,build)  ## install the program, recipes and documents; PREFIX=folder
	@# Not by way of `build`: under sudo that would take root's cache for the user's.
	@flock build/lock cmake --build build -j $(JOBS) --target normlab normlab_c
	@cmake --install build --prefix "$(PREFIX)"

clean:  ## remove what was built; libtorch and the Python packages stay in the cache
	rm -rf build build-fuzz build-arm

# One command for each task; `make help` lists them. Everything generated goes to build/.

CLANG ?= 19
SECONDS ?= 60
export CLANG FRAMEWORKS FREE_THREADED_PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup test test-cpp test-python test-asan test-free-threaded test-fuzz test-long demo bench fuzz dev \
        develop wheel format format-check lint clean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Install the packages that all tasks need (root), or print the apt line
	@tools/setup.sh all

test:  ## Set up, build and test everything; FRAMEWORKS=1 adds PyTorch and JAX
	@tools/test.sh

test-cpp:  ## The C++ stages of `make test`
	@tools/test.sh setup asan clang

test-python:  ## The Python stage of `make test`
	@tools/test.sh setup wheel

test-asan:  ## The Python tests under AddressSanitizer
	@tools/test.sh setup python-asan

test-free-threaded:  ## Build and test with a free-threaded Python, FREE_THREADED_PYTHON=path
	@tools/test.sh setup free-threaded

test-fuzz:  ## Ten seconds of every fuzz target
	@tools/test.sh setup fuzz

test-long:  ## `make test` with long tests, shared libraries and SECONDS=60 of each fuzz target
	@SECONDS_PER_TARGET=$(SECONDS) HURRAY_TEST_LONG=1 tools/test.sh all shared

demo:  ## Convert, inspect, map and stream a real checkpoint; MODEL=path takes another
	@tools/demo.sh $(MODEL)

bench:  ## Benchmarks in C++ and Python; FRAMEWORKS=1 adds PyTorch and JAX
	@tools/bench.sh

fuzz:  ## Fuzz every target for SECONDS=60
	@VERBOSE=1 SECONDS_PER_TARGET=$(SECONDS) tools/test.sh setup fuzz

dev:  ## Debug build with its tests, in build/dev
	@tools/setup.sh cpp
	@cmake --workflow --preset dev

develop:  ## Incremental Python build, installed into build/venv-develop
	@tools/setup.sh cpp python
	@tools/develop.sh

wheel:  ## sdist and wheel, in build/dist
	@tools/setup.sh cpp python
	@tools/wheel.sh

format:  ## Lay out all C++ sources
	@tools/setup.sh clang
	@tools/sources.sh | xargs clang-format-$(CLANG) -i

format-check:  ## Fail where `make format` would change a file
	@tools/setup.sh clang
	@tools/sources.sh | xargs clang-format-$(CLANG) --dry-run --Werror

lint:  ## clang-tidy over all C++ sources
	@tools/setup.sh cpp clang
	@cmake --preset clang -DCMAKE_CXX_COMPILER=clang++-$(CLANG) >/dev/null
	@run-clang-tidy-$(CLANG) -quiet -p build/clang -j 2 '^$(CURDIR)/(core|io|formats|cli|python|fuzz|bench|examples)/'

clean:  ## Remove build/, but keep downloaded files (build/cache)
	@if [ -d build ]; then find build -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +; fi

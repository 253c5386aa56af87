# Every lane of the project. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
UV := tools/uv
RUN := $(UV) run --no-sync
# Where lanes write down which tests ran, for `make promises`.
export METAL_RAN := $(CURDIR)/.cache/ran
# Without bytecode each worker rewrites the assertions of all tests anew, and each process compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets, one line each
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install the locked dependencies into .venv (nothing outside the checkout)
	@$(UV) sync --locked --quiet

.PHONY: up
up: setup ## run everything on the embedded control plane with eight simulated machines (ARGS= is passed on)
	@$(RUN) metalctl up --fleet 8 $(ARGS)

.PHONY: lint
lint: setup ## ruff, mypy and import contracts
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) lint-imports

.PHONY: generate
generate: setup ## write config/crd, config/rbac, the chart and generated pages of docs/ from code and tests
	$(RUN) python -m metal.codegen.crd_files
	$(RUN) python -m metal.codegen.options
	$(RUN) python -m metal.codegen.metrics
	$(RUN) python -m metal.codegen.rbac
	$(RUN) python -m metal.codegen.states
	$(RUN) python -m charts.generate
	$(RUN) python -m tests.pages

.PHONY: generate-check
generate-check: setup ## fail when a generated file is stale
	$(RUN) python -m metal.codegen.crd_files --check
	$(RUN) python -m metal.codegen.options --check
	$(RUN) python -m metal.codegen.metrics --check
	$(RUN) python -m metal.codegen.rbac --check
	$(RUN) python -m metal.codegen.states --check
	$(RUN) python -m charts.generate --check
	$(RUN) python -m tests.pages --check

.PHONY: test
test: setup ## lint, types, import contracts, generated files and the fast tests (under 3 minutes on two cores)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync lint generate-check
ifeq ($(ARGS),)
	@rm -rf "$(METAL_RAN)"
	$(RUN) pytest -n 2 --dist loadfile
	$(RUN) python -m tests.promises
else
	$(RUN) pytest $(ARGS)
endif

.PHONY: test-life
test-life: setup ## many lives of simulated machines: faults, erasure, bugs put back, random stories; metalctl up from start to end
ifeq ($(ARGS),)
	$(RUN) pytest -m life -n 2 --ignore tests/cli
	$(RUN) pytest -m life tests/cli # one after the other: they start processes and look at the clock
else
	$(RUN) pytest -m life $(ARGS)
endif

.PHONY: promises
promises: setup ## fail unless the tests that docs/behaviour.md and docs/failures.md name ran and passed (ARGS=--all: after all lanes)
	$(RUN) python -m tests.promises $(ARGS)

.PHONY: bench
bench: setup ## measure enrolment and claims with simulated machines (ARGS="-n 1000 --rate 20")
	$(RUN) python bench/enrol.py $(ARGS)

.PHONY: kubectl
kubectl: ## find kubectl, or build one, for the tests that use the real one
	@echo "kubectl for the tests: $$(tools/kubectl)"

.PHONY: butane
butane: ## find butane, or build it once with Go, for the tests that use the real one
	@echo "butane for the tests: $$(tools/butane)"

.PHONY: kube
kube: ## find a real kube-apiserver (KUBEBUILDER_ASSETS), or build one once with Go, for the tests that use it
	@tools/kube
	@echo "helm=$$(tools/kube helm)"

.PHONY: test-kube
test-kube: setup kube ## everything that is tested against a real kube-apiserver (ARGS= goes to pytest)
ifeq ($(ARGS),)
	$(RUN) pytest -m kube --ignore tests/conformance/kubectl
	$(RUN) pytest -m kube tests/conformance/kubectl # on a cluster that nothing else has used
else
	$(RUN) pytest -m kube $(ARGS)
endif

.PHONY: test-handover
test-handover: setup kube ## hand-overs of managers and faults of the API on a real kube-apiserver, some minutes of a quiet machine
	$(RUN) pytest -m handover $(ARGS)

.PHONY: fmt
fmt: setup ## format the code
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

.PHONY: images
images: setup ## build the discovery and demo OS images from Debian packages (cached in .cache/images)
	@python3 tests/lab/preflight.py images
	@$(RUN) python images/build.py $(IMAGES_ARGS)

.PHONY: image
image: ## build the manager's own container image from Debian packages (cached in .cache/images)
	@python3 images/manager/build.py $(ARGS)

.PHONY: test-image
test-image: setup kube image ## run the manager from its image against a real kube-apiserver, as root (ARGS= goes to pytest)
	$(RUN) pytest -m image $(ARGS)

.PHONY: lab-images
lab-images: images ## the images for the lab: besides the small ones, those with the kernel for real hardware
	@$(RUN) python images/build.py --kernel generic --out .cache/images/generic

.PHONY: lab
lab: ## the chain on a real VM, as root, in network namespaces of its own (ARGS= goes to pytest)
	@python3 tests/lab/preflight.py lab
	@$(MAKE) --no-print-directory lab-images
	@$(UV) sync --locked --quiet --group lab
	@$(RUN) pytest tests/lab -m lab $(ARGS)

# From a bare clone with Python (3.9 or later), make and a network: every target installs what it needs into .cache/
# and touches nothing outside the clone. The stamps below make a second run quick. CI runs these same targets.

UV_VERSION := 0.13.9
YQ_VERSION := 4.54.3
KUSTOMIZE_VERSION := 5.8.2
MAXTEXT_VERSION := 0.2.5

# Relative, because make cannot handle a clone whose path holds spaces.
UV := .cache/uv-$(UV_VERSION)/bin/uv
VENV := .cache/venv
MAXTEXT := .cache/maxtext-$(MAXTEXT_VERSION)
YQ := .cache/yq-$(YQ_VERSION)/yq
KUSTOMIZE := .cache/kustomize-$(KUSTOMIZE_VERSION)/kustomize
SCRIPTS := .ci/run bench/rfc_pipeline.sh pod/bootstrap.sh tools/chromium tools/go-program

export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_CACHE_DIR := .cache/uv-cache
export UV_PYTHON_INSTALL_DIR := .cache/python
export RUFF_CACHE_DIR := .cache/ruff
export MYPY_CACHE_DIR := .cache/mypy

.DELETE_ON_ERROR:
.PHONY: help render check test test-workflows test-browser test-deep test-cluster demo bench bench-apply yq install clean

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | column -t -s '|'

render: install ## Render every experiment, verify rendered/ and print a table
	@$(VENV)/bin/renderer render
	@$(VENV)/bin/renderer render --check

check: install ## Format, lint, types, shell scripts, and rendered/ against its sources
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy
	$(VENV)/bin/shellcheck $(SCRIPTS)
	$(VENV)/bin/renderer render --check

test: install ## Every test that needs neither MaxText nor a cluster; ARGS="..." goes to pytest
	$(VENV)/bin/pytest -n 3 $(ARGS)

test-workflows: install ## The workflows under act, and the hooks as pre-commit installs them
	$(VENV)/bin/pytest -m workflows -n 2 $(ARGS)

test-deep: install $(MAXTEXT)/.done ## The tests that load the real MaxText; AGREEMENT_CASES=200 makes it shorter
	$(VENV)/bin/pytest -m deep -s $(ARGS)

test-cluster: install ## The tests on a real control plane, which the first run builds from source
	UV=$(abspath $(UV)) $(VENV)/bin/python -m tests.cluster.build
	REQUIRE_CLUSTER=1 $(VENV)/bin/pytest -m cluster -n 2 $(ARGS)

test-browser: install ## The HTML report in headless Chromium, installed by apt where it is missing
	@tools/chromium >/dev/null
	$(VENV)/bin/pytest -m browser $(ARGS)

bench: install $(YQ) $(KUSTOMIZE) ## Time the renderer and its peers side by side on 1,000 experiments
	$(VENV)/bin/python -m bench.render --yq $(YQ) --kustomize $(KUSTOMIZE) $(ARGS)

bench-apply: install ## Time renderer apply of 100 runs beside kubectl apply --server-side of the same manifests
	UV=$(abspath $(UV)) $(VENV)/bin/python -m bench.apply $(ARGS)

demo: install ## The whole story on a simulated cluster: experiment, render, report, merge, 256 hosts, clean-up
	UV=$(abspath $(UV)) $(VENV)/bin/python -m tools.demo

yq: $(YQ) ## Build mikefarah's yq, one of the YAML readers that the tests compare

install: $(VENV)/.compiled

clean: ## Delete .cache
	rm -rf .cache

# A pyenv that lacks the version in .python-version offers no python3 here; the system's own will do.
$(UV):
	@mkdir -p .cache
	@for python in python3 /usr/bin/python3; do \
	  "$$python" -m venv --clear .cache/uv-$(UV_VERSION) && exit; \
	done; echo "no python3 with its venv module (on Debian: apt-get install python3-venv)" >&2; exit 1
	@.cache/uv-$(UV_VERSION)/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check \
	  --require-hashes -r tools/uv-$(UV_VERSION).txt
	@touch $@

$(VENV)/.synced: uv.lock pyproject.toml .python-version | $(UV)
	$(UV) sync --locked --compile-bytecode --quiet
	@touch $@

# PYTHONDONTWRITEBYTECODE would otherwise make every command compile the sources again.
$(VENV)/.compiled: $(VENV)/.synced $(wildcard renderer/*.py renderer/*/*.py pod/*.py)
	@$(VENV)/bin/python -m compileall -q renderer pod
	@touch $@

$(MAXTEXT)/.done: tests/deep/maxtext-$(MAXTEXT_VERSION).txt | $(UV)
	@test -x $(MAXTEXT)/bin/python || $(UV) venv --quiet --clear --python 3.12 $(MAXTEXT)
	$(UV) pip sync --python $(MAXTEXT)/bin/python --compile-bytecode $<
	@touch $@

$(YQ): | $(UV)
	UV=$(UV) tools/go-program github.com/mikefarah/yq/v4@v$(YQ_VERSION) $@

$(KUSTOMIZE): | $(UV)
	UV=$(UV) tools/go-program sigs.k8s.io/kustomize/kustomize/v5@v$(KUSTOMIZE_VERSION) $@

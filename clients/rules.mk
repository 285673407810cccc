# Included by the Makefile: the Python client, in environments in $(BUILD)/python and
# $(BUILD)/peers. deploy/deps.sh makes the environments, this rule puts the client into them.

PYTHON := $(abspath $(BUILD))/python/bin/python
PYTHON_CLIENT := $(BUILD)/python/client-installed
PEERS_PYTHON := $(abspath $(BUILD))/peers/bin/python
PEERS_CLIENT := $(BUILD)/peers/client-installed
LEARN_PYTHON := $(abspath $(BUILD))/learn/bin/python
LEARN_CLIENT := $(BUILD)/learn/client-installed

$(PYTHON_CLIENT) $(PEERS_CLIENT) $(LEARN_CLIENT): $(BUILD)/%/client-installed: \
    $(wildcard clients/python/src/tribo/*.py clients/python/src/tribo/*/*.py clients/python/*.py) $(wildcard solver/tribo*.h) \
    clients/python/pyproject.toml $(PROTO:%=proto/%)
	$(call say,PIP,clients/python into $(@D))
	$(Q)$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    --no-deps --force-reinstall ./clients/python
	@touch $@

# scene and hand of the demo
$(B)/demo/grasp.xml: $(B)/tests/data/mug $(B)/tests/data/hand
	@mkdir -p $(@D)
	@$(B)/tests/data/mug $(@D) >/dev/null && $(B)/tests/data/hand $(@D) 0.7 0.003 >/dev/null

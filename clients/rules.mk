# Included by the Makefile: the Python client, in an environment of its own in $(BUILD)/python.
# deploy/deps.sh makes the environment, this rule puts the client into it.

PYTHON_HOME := $(BUILD)/python
PYTHON := $(abspath $(PYTHON_HOME))/bin/python
PYTHON_CLIENT := $(PYTHON_HOME)/client-installed

$(PYTHON_CLIENT): $(wildcard clients/python/src/tribo/*.py clients/python/*.py) \
    clients/python/pyproject.toml $(PROTO:%=proto/%)
	$(call say,PIP,clients/python)
	$(Q)$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    --no-deps --force-reinstall ./clients/python
	@touch $@

# what the demo grasps, and with which hand
$(B)/demo/grasp.xml: $(B)/tests/data/mug $(B)/tests/data/hand
	@mkdir -p $(@D)
	@$(B)/tests/data/mug $(@D) >/dev/null && $(B)/tests/data/hand $(@D) >/dev/null

# Included by the Makefile: the dashboard, built in $(BUILD)/dashboard, where deploy/deps.sh puts the
# packages of npm. Sources are copied there, so that node_modules stays out of the tree.
#
#   generated/          messages and services by protoc-gen-es
#   dist/               by Vite: index.html, assets/NAME-HASH.{js,css}, each with its FILE.br
#   $(GEN)/dashboard.inc  dist/ as C; missing.html where Node or the packages are missing
#   checked             tsc (strict) and ESLint have passed
#
# DASHBOARD_DIST names a dist/ that was built before, for images and packages: they need no Node.

DASHBOARD := $(BUILD)/dashboard
DASHBOARD_READY := $(shell command -v node >/dev/null && \
    cmp -s clients/web/package-lock.json $(DASHBOARD)/complete && echo yes)
DASHBOARD_SOURCES := $(shell find clients/web -type f ! -name '*.mk' ! -name '*.md' ! -name '*.sh' ! -name missing.html)
DASHBOARD_CHECKED := $(DASHBOARD)/checked
DASHBOARD_PROTO := $(filter tribo/% google/rpc/%,$(PROTO))

$(DASHBOARD)/sources: $(DASHBOARD_SOURCES) $(PROTO:%=proto/%) $(if $(DASHBOARD_READY),$(DASHBOARD)/complete)
	@rm -rf $(DASHBOARD)/src $(DASHBOARD)/generated && mkdir -p $(DASHBOARD)/generated
	@cp -r $(wildcard clients/web/*.json clients/web/*.ts clients/web/*.js) clients/web/index.html clients/web/src $(DASHBOARD)/
	@protoc -Iproto --plugin=protoc-gen-es=$(DASHBOARD)/node_modules/.bin/protoc-gen-es \
	    --es_out=$(DASHBOARD)/generated --es_opt=target=ts,import_extension=none $(DASHBOARD_PROTO)
	@touch $@

ifndef DASHBOARD_DIST
$(DASHBOARD)/dist/index.html: $(DASHBOARD)/sources
	$(call say,VITE,clients/web)
	$(Q)cd $(DASHBOARD) && node_modules/.bin/vite build --logLevel warn
	@touch $@
endif

$(DASHBOARD_CHECKED): $(DASHBOARD)/sources
	$(call say,LINT,clients/web)
	$(Q)cd $(DASHBOARD) && node_modules/.bin/tsc --noEmit && node_modules/.bin/eslint .
	@touch $@

# dist/ of the dashboard, unless it cannot be built here
.PHONY: dashboard
dashboard: $(if $(DASHBOARD_READY),$(DASHBOARD)/dist/index.html)

DASHBOARD_DIST ?= $(if $(DASHBOARD_READY),$(DASHBOARD)/dist)
$(GEN)/stamp.dashboard: text = $(or $(DASHBOARD_DIST),no)
$(GEN)/stamp.dashboard: force
	@mkdir -p $(@D)
	@echo '$(text)' | cmp -s - $@ || echo '$(text)' > $@

$(GEN)/dashboard.inc: clients/web/embed.sh $(GEN)/stamp.dashboard \
    $(if $(DASHBOARD_DIST),$(DASHBOARD_DIST)/index.html,clients/web/missing.html)
	@mkdir -p $(@D)/dashboard-missing
	@cp clients/web/missing.html $(@D)/dashboard-missing/index.html
	$(Q)clients/web/embed.sh $(or $(DASHBOARD_DIST),$(@D)/dashboard-missing) > $@

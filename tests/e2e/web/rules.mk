# Included by the Makefile: JavaScript clients of other projects, in $(BUILD)/web. deploy/deps.sh
# installs the packages there, this rule adds the programs that clients_agree.py runs, stubs by
# protoc-gen-es, and the page's program in one file for the browser.

WEB := $(BUILD)/web
WEB_CLIENTS := $(WEB)/clients-ready
WEB_PROTO := $(filter tribo/% google/rpc/%,$(PROTO))

$(WEB_CLIENTS): $(wildcard tests/e2e/web/*.js tests/e2e/web/*.html) \
    tests/e2e/web/package-lock.json $(PROTO:%=proto/%)
	$(call say,NPM,tests/e2e/web)
	$(Q)cp $(filter tests/e2e/web/%,$^) $(WEB)/
	$(Q)rm -rf $(WEB)/generated && mkdir $(WEB)/generated
	$(Q)protoc -Iproto --plugin=protoc-gen-es=$(WEB)/node_modules/.bin/protoc-gen-es \
	    --es_out=$(WEB)/generated --es_opt=target=js,import_extension=js $(WEB_PROTO)
	$(Q)cd $(WEB) && node_modules/.bin/esbuild page.js --bundle --format=esm --log-level=warning \
	    --outfile=page.bundle.js
	@touch $@

# Tribod: build, tests, install. `make help` lists the targets, deploy/config.mk the knobs.
#
# Sources are found by their folder and name:
#   solver/**/*.c                                 compiled once, but for gpu and the rooms of physics
#   solver/{collide,contact,qp,solve,step}/**/*.c the rooms of physics: one unit of all, so that the
#                                                 compiler sees through every call of a step;
#                                                 compiled twice into the one library, as double and
#                                                 (-DTB_SINGLE, *.f32.o) as float; by themselves and
#                                                 once if the name ends in _once.c or _file.c
#   solver/modelica/syntax/{lexer.l,grammar.y}    by flex and bison: solver/modelica/rules.mk
#   clients/cli/**/*.c                            the command tribo
#   server/**/*.c, db/*.c, proto                  the daemon tribod: server/rules.mk
#   tests/unit/**/test_*.c, tests/truth/truth_*.c one libcheck program each; the folders of unit are
#                                                 those of the sources
#   tests/bench/bench_*.c                         one program each
#   tests/fuzz/fuzz_*.c                           one LLVMFuzzerTestOneInput each; replay_X runs it
#                                                 over tests/fuzz/corpus/X in `make check`
#   tests/data/*.c                                generators, one program each
#   solver/gpu/**/*.c, *.cu, tests/plugin/*.c     plug-ins: solver/gpu/rules.mk
#   tests/*/common*.c                             helpers, linked to every program of their folder
#   tests/e2e/*.{sh,py}, tests/peers/peer_*.py    scripts that drive build/tribo and build/tribod
include deploy/config.mk

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
# ---- sources ------------------------------------------------------------------------------------

PHYSICS := collide contact qp solve step
sources = $(sort $(shell find $(1) -name '$(2)'))
twice_all := $(call sources,$(PHYSICS:%=solver/%),*.c)
TWICE := $(filter-out %_once.c %_file.c,$(twice_all))
ONCE  := $(filter-out $(TWICE) solver/gpu/%,$(call sources,solver,*.c))
LIB_OBJECTS := $(patsubst %.c,$(B)/%.o,$(ONCE)) $(B)/solver/physics.o $(B)/solver/physics.f32.o
include solver/modelica/rules.mk
CLI_OBJECTS := $(patsubst %.c,$(B)/%.o,$(call sources,clients/cli,*.c))

helpers = $(wildcard tests/$(1)/common*.c tests/$(1)/*_util.c)
programs = $(patsubst %.c,%,$(filter-out $(call helpers,$(1)),$(wildcard tests/$(1)/$(2)*.c)))
suite_unit  := $(patsubst %.c,%,$(call sources,tests/unit,test_*.c))
suite_truth := $(call programs,truth,truth_)
suite_e2e   := $(filter-out tests/e2e/common%,$(wildcard tests/e2e/*.sh tests/e2e/*.py))
BENCH := $(call programs,bench,bench_)
DATA  := $(call programs,data,)
FUZZ  := $(call programs,fuzz,fuzz_)
PLUGINS := $(patsubst %.c,%.so,$(wildcard tests/plugin/*.c))
CARD := $(B)/tests/plugin/card.so
suite_fuzz  := $(FUZZ:tests/fuzz/fuzz_%=tests/fuzz/replay_%)

only = $(if $(ONLY),$(foreach t,$(1),$(if $(findstring $(ONLY),$(t)),$(t))),$(1))
suites = $(call only,$(foreach s,$(1),$(suite_$(s))))
# Without tests that play a card lane by lane: each lane has a stack of its own, and ASan takes such
# a stack for one that has ended.
ASAN_TESTS := $(filter-out %/test_gpu_qp %/test_symgbmm %/test_stored,$(call suites,$(ASAN_SUITES)))
# `make check` runs under ASan what reads others' input and keeps memory, in double; `make check-asan`
# also the same tests in float, and those that play a card or take a minute.
ASAN_IN_CHECK := $(filter-out %_f32 tests/unit/gpu/% %_card %/test_modelica_kernels %/test_team_solve \
    %/test_mesh_team %/test_planar %/test_poulsen %/test_grasp_jobs %/test_server_batch \
    %/test_server_device %/test_soft_state %/test_soft_world,$(ASAN_TESTS))
# Without tests that play a card lane by lane: TSan does not follow a thread to the stack of a lane, stops
# in its own report and never returns.
TSAN_TESTS := $(filter-out %/test_gpu_qp %/test_symgbmm %/test_stored %/test_balls %/test_traversal \
    %/test_soft_card %/test_soft_card_states %/test_planar %/test_poulsen,$(call suites,$(TSAN_SUITES)))
RELEASE_TESTS := $(call suites,truth unit fuzz e2e) \
    $(call only,tests/check_format.sh tests/check_rooms.sh tests/check_server_rooms.sh)
# Tests of `make check` that are attacks: check-attack runs them after the long ones of
# tests/attack.
ATTACK_TESTS := $(addprefix tests/e2e/daemon_,bears_bad_clients.py drains_under_load.py \
    guards_keys.py keeps_descriptors.py minds_small_things.py minds_the_disk.py \
    parses_stored_scenes_aside.py parses_uploads_aside.py speaks_http2.py survives_kill9.py)
PEER_TESTS := $(call only,$(wildcard tests/peers/peer_*.py))

LIBRARY := $(B)/libtribo.a
VERSION := $(or $(shell sed -n 's/^.define TB_VERSION "\(.*\)"/\1/p' solver/tribo.h 2>/dev/null),0.0.0)
SONAME  := libtribo.so.$(firstword $(subst ., ,$(VERSION)))
# The shared library exports a symbol whose name holds a digest of the public headers: clients
# without a compiler ask for it to know that the library is of their headers.
ABI     := tb_abi_$(shell cat solver/tribo*.h | sha256sum | cut -c 1-16)
SHARED  := $(B)/libtribo.so.$(VERSION)
PRODUCTS := $(LIBRARY) $(B)/tribo
PRODUCTS += $(if $(wildcard server/main.c),$(B)/tribod)
PRODUCTS += $(if $(SANITIZE),,$(B)/libtribo.so $(if $(NVCC),$(B)/libtribo_gpu.so))
ALL := $(PRODUCTS) $(DATA:%=$(B)/%) $(PLUGINS:%=$(B)/%) $(CARD)

# ---- targets for people -------------------------------------------------------------------------

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(Q),@printf '%-5s %s\n' '$(1)' '$(2)')
# a recipe that calls make again runs JOBS jobs unless the caller asked for another number
SUBMAKE = $(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(JOBS))
RUN = JOBS=$(JOBS) TEST_TIMEOUT=$(TEST_TIMEOUT) CLANG_FORMAT=$(CLANG_FORMAT) ARCHER=$(ARCHER) \
      CC="$(CC)" TEST_PYTHON=$(PYTHON) tests/run_all.sh $(BUILD)/log

# protobuf-c's source: `make check` goes on without it, `make fuzz` needs it
with_protobuf_source = BUILD=$(BUILD) deploy/deps.sh fuzz || echo 'protobuf-c stays unwatched'

# builds the dashboard's pages if Node can be installed; else the daemon serves a page that says so
with_dashboard = BUILD=$(BUILD) deploy/deps.sh dashboard && $(SUBMAKE) dashboard || echo 'the daemon goes without its dashboard'

.PHONY: help all products tests demo check check-asan check-tsan check-peers check-format format bench fuzz
.PHONY: bench-gpu check-attack check-learn check-wheel check-clients image image-check image-twice fleet-check helm-check alerts-check deb deb-check
.PHONY: collector-check
.PHONY: check-ray check-web dashboard-picture install clean build-asan run-tsan run-fuzz force
help: ## this list
	@echo 'Tribod $(VERSION). Targets (knobs such as DEBUG=1, ONLY=word, BUILD=dir are in deploy/config.mk):'
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

all: $(ALL) ## the library, the command and the data generators, into build/

products: $(PRODUCTS) ## programs and libraries that `make install` installs

demo: ## install missing packages, build, start the daemon and have it evaluate grasps of a mug
	@BUILD=$(BUILD) deploy/deps.sh build python
	@$(with_dashboard)
	@$(SUBMAKE) $(B)/tribo $(B)/tribod $(PYTHON_CLIENT) $(B)/demo/grasp.xml
	@TRIBOD=$(abspath $(B)/tribod) $(PYTHON) -m tribo.demo --data $(B)/demo

tests: all $(addprefix $(B)/,$(suite_unit) $(suite_truth) $(suite_fuzz)) ## build every test program

# Where no card can run them, `make check` compiles kernels to intermediate code alone, which a driver
# compiles when it first loads the plug-in. Kernels that have machine code keep it.
GPU_IN_CHECK = $(if $(wildcard /dev/nvidiactl)$(shell grep -s sm_ $(B)/stamp.gpu),,GPU_ARCHITECTURES=)

check: ## all tests of CI: format, unit, truth, fuzz replay, e2e; input and memory under ASan
	@BUILD=$(BUILD) deploy/deps.sh build test python dashboard web gpu
	@$(with_protobuf_source)
	@$(SUBMAKE) $(GPU_IN_CHECK) $(PYTHON_CLIENT) $(WEB_CLIENTS) $(DASHBOARD_CHECKED) $(if $(ONLY),all $(call built,$(RELEASE_TESTS)),tests)
	@$(SUBMAKE) VARIANT=asan ASAN_TESTS='$(ASAN_IN_CHECK)' build-asan
	@$(RUN) $(RELEASE_TESTS:%=$(B):%) $(ASAN_IN_CHECK:%=$(BUILD)/asan:%)

check-asan: ## the tests of ASAN_SUITES under AddressSanitizer and UBSan
	@deploy/deps.sh build test
	@$(with_protobuf_source)
	@$(SUBMAKE) VARIANT=asan build-asan
	@$(RUN) $(ASAN_TESTS:%=$(BUILD)/asan:%)

check-tsan: ## the tests of TSAN_SUITES under ThreadSanitizer (clang)
	@deploy/deps.sh build test clang
	@$(SUBMAKE) VARIANT=tsan run-tsan

check-attack: ## attacks on the daemon under load (tests/attack and ATTACK_TESTS), one after the other
	@BUILD=$(BUILD) deploy/deps.sh build python
	@$(SUBMAKE) $(B)/tribo $(B)/tribod $(DATA:%=$(B)/%) $(PYTHON_CLIENT)
	@failed=; \
	for s in $(call only,$(filter-out %/frames.py,$(wildcard tests/attack/*.py)) $(ATTACK_TESTS)); do echo "== $$s"; \
	    TRIBOD=$(abspath $(B)/tribod) TRIBO_BUILD=$(abspath $(B)) $(PYTHON) $$s || failed="$$failed $$s"; done; \
	[ -z "$$failed" ] || { echo "attacks that failed:$$failed" >&2; exit 1; }

image: ## a container image with the daemon, tribod:cpu; IMAGES="cpu gpu" builds both
	@BUILD=$(BUILD) deploy/deps.sh build image
	@$(with_dashboard)
	@deploy/image/build.sh $(IMAGES)

image-check: ## run that image as an operator would, and ask it for grasps from outside
	@BUILD=$(BUILD) deploy/deps.sh build python image
	@$(SUBMAKE) $(PYTHON_CLIENT) $(B)/demo/grasp.xml
	@TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/deploy/image_check.py

image-twice: ## builds IMAGES twice, the second time without a cache, and compares their files
	@BUILD=$(BUILD) deploy/deps.sh build python image
	@$(SUBMAKE) $(PYTHON_CLIENT)
	@$(with_dashboard)
	@TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/deploy/image_twice.py $(IMAGES)

fleet-check: ## 10,000 grasps by three containers of that image, one killed, another joining; ARGS="--grasps 1000"
	@BUILD=$(BUILD) deploy/deps.sh build python image
	@$(SUBMAKE) $(PYTHON_CLIENT) $(B)/tests/data/mug $(B)/tests/data/hand
	@TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/deploy/fleet_check.py $(ARGS)

helm-check: ## the Helm chart against the schemas of its kinds, then played and restarted under load
	@BUILD=$(BUILD) deploy/deps.sh build python image helm
	@$(SUBMAKE) $(PYTHON_CLIENT)
	@TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/deploy/helm_check.py

alerts-check: ## each alert of deploy/compose provoked under a real Prometheus, three minutes
	@BUILD=$(BUILD) deploy/deps.sh build python alerts
	@$(SUBMAKE) $(B)/tribod $(B)/tests/plugin/failing.so $(PYTHON_CLIENT)
	@promtool test rules tests/deploy/alerts_test.yaml
	@TRIBOD=$(abspath $(B)/tribod) TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/deploy/alerts_check.py

collector-check: ## spans of a daemon in OpenTelemetry's own collector
	@BUILD=$(BUILD) deploy/deps.sh build python collector
	@$(SUBMAKE) $(B)/tribod $(PYTHON_CLIENT)
	@TRIBOD=$(abspath $(B)/tribod) TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/deploy/collector_check.py

deb: ## Debian packages of the committed tree, into build/deb
	@BUILD=$(BUILD) deploy/deps.sh build deb
	@$(with_dashboard)
	@NVCC=$(NVCC) BUILD=$(BUILD) deploy/deb.sh

deb-check: ## lintian over these packages; installed, upgraded and purged in a container
	@BUILD=$(BUILD) deploy/deps.sh build python image deb
	@$(SUBMAKE) $(PYTHON_CLIENT)
	@TRIBO_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/deploy/deb_check.py

check-web: ## figures of the dashboard in a browser: frames/s, age, slowing of the client; ARGS="--seconds 60"
	@BUILD=$(BUILD) deploy/deps.sh build python dashboard web
	@$(SUBMAKE) $(B)/tribod $(PYTHON_CLIENT)
	@TRIBOD=$(abspath $(B)/tribod) TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/web/dashboard_follows.py $(ARGS)

dashboard-picture: ## the picture of the dashboard that README.md shows, clients/web/dashboard.png
	@BUILD=$(BUILD) deploy/deps.sh build python dashboard web
	@$(SUBMAKE) $(B)/tribod $(PYTHON_CLIENT) $(B)/demo/grasp.xml
	@TRIBOD=$(abspath $(B)/tribod) TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/web/picture.py

check-ray: ## tribo.cluster over daemons that Ray starts, one of them killed; ARGS="--grasps 10000"
	@BUILD=$(BUILD) deploy/deps.sh build python ray
	@$(SUBMAKE) $(B)/tribo $(B)/tribod $(PYTHON_CLIENT) $(B)/tests/data/mug $(B)/tests/data/hand
	@TRIBOD=$(abspath $(B)/tribod) TRIBO_BUILD=$(abspath $(B)) $(PYTHON) tests/deploy/ray_check.py $(ARGS)

check-learn: ## PPO of stable-baselines3 learns tribo.gym's tasks, on torch; convex parts by CoACD (tests/learn)
	@BUILD=$(BUILD) deploy/deps.sh build learn
	@$(SUBMAKE) $(B)/libtribo.so $(B)/tribod $(LEARN_CLIENT)
	@TRIBO_LIBRARY=$(abspath $(B)/libtribo.so) TRIBOD=$(abspath $(B)/tribod) \
	    $(LEARN_PYTHON) tests/learn/check_learn.py $(ARGS)
	@cd clients/python && TRIBO_LIBRARY=$(abspath $(B)/libtribo.so) TRIBOD=$(abspath $(B)/tribod) \
	    $(LEARN_PYTHON) -m pytest -q -p no:cacheprovider tests/test_meshes.py tests/test_planner.py tests/test_show.py

check-wheel: ## wheel with programs and sdist into build/wheel, installed by every Python from 3.9 on
	@BUILD=$(BUILD) deploy/deps.sh build
	@$(SUBMAKE) $(B)/libtribo.so $(B)/tribod $(B)/tribo $(B)/tests/data/mug $(B)/tests/data/hand
	@BUILD=$(B) deploy/wheel.sh
	@TRIBO_BUILD=$(abspath $(B)) TRIBO_WHEELS=$(abspath $(B))/wheel python3 tests/deploy/wheel_check.py

check-clients: ## gRPC clients and tools of others: grpc-go, grpc-js, grpc-java, tonic, h2spec, grpcurl, buf, ghz
	@BUILD=$(BUILD) deploy/deps.sh build python clients
	@$(SUBMAKE) $(B)/tribo $(B)/tribod $(PYTHON_CLIENT)
	@TRIBOD=$(abspath $(B)/tribod) TRIBO_BUILD=$(abspath $(B)) \
	    $(PYTHON) tests/clients/foreign_clients.py --build $(BUILD)/clients

check-peers: ## compare with MuJoCo and Siconos (tests/peers/peer_*.py)
	@BUILD=$(BUILD) deploy/deps.sh build peers
	@$(SUBMAKE) all $(B)/tests/bench/bench_problems $(PEERS_CLIENT)
	@PEERS_PYTHON=$(PEERS_PYTHON) $(RUN) $(PEER_TESTS:%=$(B):%)

bench: ## build and run tests/bench, one program after the other
	@$(SUBMAKE) all $(BENCH:%=$(B)/%)
	@for b in $(call only,$(BENCH:%=$(B)/%)); do \
	    echo "== $$b"; TRIBO=$(abspath $(B)/tribo) TRIBO_BUILD=$(abspath $(B)) $$b || exit 1; done

bench-gpu: ## on a GPU, beside MuJoCo Warp and Newton, to build/bench-gpu; ARGS="--help" lists the parts
	@BUILD=$(BUILD) deploy/deps.sh build test gpu peers gpu-peers
	@$(SUBMAKE) all $(BENCH:%=$(B)/%) $(B)/tests/unit/gpu/test_gpu_step \
	    $(B)/tests/unit/gpu/test_gpu_large $(B)/tests/unit/gpu/test_gpu_resume
	@$(SUBMAKE) NVCC=`deploy/find_nvcc.sh $(BUILD)` $(BUILD)/tests/bench/bench_large
	@NVCC_APPEND_FLAGS=-DTB_STAGE_TIMES $(SUBMAKE) BUILD=$(BUILD)/stages \
	    NVCC=`deploy/find_nvcc.sh $(BUILD)` $(BUILD)/stages/libtribo_gpu.so
	@TRIBO_BUILD=$(abspath $(B)) PEERS=$(abspath $(BUILD))/peers python3 tests/bench/gpu/run.py \
	    --peers-python $(abspath $(BUILD))/gpu-peers/bin/python $(ARGS)

fuzz: ## libFuzzer programs into build/fuzz; FUZZ_SECONDS=60 runs each for a minute
	@BUILD=$(BUILD) deploy/deps.sh build clang fuzz
	@$(SUBMAKE) VARIANT=fuzz run-fuzz

format: ## rewrite the C sources in the style of .clang-format
	@tests/check_format.sh --fix

check-format: ## say which C sources are not in that style
	@CLANG_FORMAT=$(CLANG_FORMAT) tests/check_format.sh

install: TRIBO_BUILT = $(filter %/tribo,$(ALL))
install: products ## header, libraries, command and pkg-config file to DESTDIR/PREFIX
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin include lib/pkgconfig)
	install -m 644 $(PUBLIC_HEADERS) $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(LIBRARY) $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(SHARED) $(DESTDIR)$(PREFIX)/lib/
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libtribo.so
	install -m 755 $(filter %/tribo %/tribod,$(ALL)) $(DESTDIR)$(PREFIX)/bin/
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@PACKAGES@|$(PACKAGES)|; s|@LIBS@|$(SUNDIALS_LIBS)|' \
	    deploy/tribo.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/tribo.pc
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions zsh/site-functions fish/vendor_completions.d man/man1)
	$(TRIBO_BUILT) completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tribo
	$(TRIBO_BUILT) completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tribo
	$(TRIBO_BUILT) completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tribo.fish
	$(TRIBO_BUILT) man > $(DESTDIR)$(PREFIX)/share/man/man1/tribo.1
	for c in $$($(TRIBO_BUILT) man | sed -n 's/^\.BR tribo\\-\([a-z]*\) (1)$$/\1/p' | grep -v '^help$$'); do \
	    $(TRIBO_BUILT) man $$c > $(DESTDIR)$(PREFIX)/share/man/man1/tribo-$$c.1 || exit 1; done

clean: ## remove build/
	rm -rf $(BUILD)

# ---- rules --------------------------------------------------------------------------------------

# A stamp changes when its text does. := fixes the text of stamp.flags here, since targets that
# depend on it add to CPPFLAGS.
$(B)/stamp.flags: text := $(CC) $(CPPFLAGS) $(CFLAGS)
$(B)/stamp.objects: text = $(LIB_OBJECTS)
$(B)/stamp.physics: text = $(TWICE)
$(B)/stamp.flags $(B)/stamp.objects $(B)/stamp.physics $(B)/stamp.commit: force
	@mkdir -p $(@D)
	@$(if $(PKG_LIBS),:,echo 'libraries are missing: run deploy/deps.sh' >&2; exit 1)
	@echo '$(text)' | cmp -s - $@ || echo '$(text)' > $@

$(B)/%.o: %.c $(B)/stamp.flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MD -MP -c -o $@ $<

$(B)/solver/contact/files/hdf5_once.o: CPPFLAGS += -DTB_HDF5_SONAME='"$(HDF5_NAME)"'
$(B)/solver/penalty/%.o: CPPFLAGS += $(if $(SUNDIALS),-DTB_HAVE_SUNDIALS)
$(B)/solver/grid/%.o: CFLAGS += $(PHYSICS_OPTIMIZE)
$(B)/solver/contact/files/hdf5_once.o: deploy/config.mk

$(B)/solver/physics.c: $(B)/stamp.physics
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(TWICE:solver/%=%) > $@

$(B)/solver/physics.o $(B)/solver/physics.f32.o: $(B)/solver/physics.c $(B)/stamp.flags
	$(call say,CC,$(if $(findstring f32,$@),float,double) physics)
	$(Q)$(CC) $(CPPFLAGS) $(if $(findstring f32,$@),-DTB_SINGLE) $(CFLAGS) $(PHYSICS_OPTIMIZE) -MD -MP -c -o $@ $<

$(LIBRARY): $(LIB_OBJECTS) $(B)/stamp.objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $(LIB_OBJECTS)

# symbols that the shared library exports: functions declared by the public headers, and functions
# of base/ that libtribo_client.a takes from it
CLIENT_NEEDS := tb_bytes_append tb_bytes_free tb_fail tb_fail_field tb_fail_memory tb_file_read
PUBLIC_HEADERS := $(wildcard solver/tribo*.h)
$(B)/exports.map: $(PUBLIC_HEADERS) Makefile
	@mkdir -p $(@D)
	@{ echo '{ global:'; sed -nE 's/^([a-z].*[ *])?(tb_[a-z0-9_]+)\(.*/\2;/p' $(filter %.h,$^) | sort -u; \
	    printf '%s;\n' $(CLIENT_NEEDS) 'tb_abi_*'; echo 'local: *; };'; } > $@

$(SHARED): $(LIB_OBJECTS) $(B)/stamp.objects $(B)/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,--version-script=$(B)/exports.map -Wl,-soname,$(SONAME) -Wl,--defsym=$(ABI)=1 -o $@ $(LIB_OBJECTS) $(LDLIBS)

$(B)/libtribo.so: $(SHARED)
	@ln -sf $(<F) $(B)/$(SONAME) && ln -sf $(SONAME) $@

define link
$(call say,LD,$@)
$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBRARY) $(LDLIBS)
endef

$(B)/tribo: $(CLI_OBJECTS) $(LIBRARY)
	$(link)

include solver/gpu/rules.mk server/rules.mk clients/rules.mk clients/web/rules.mk tests/rules.mk tests/e2e/web/rules.mk
-include $(shell find $(B)/solver $(B)/clients $(B)/tests $(B)/server $(B)/db -name '*.d' 2>/dev/null)

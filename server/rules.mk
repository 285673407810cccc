# Included by the Makefile: the wire language, the store, the daemon.
#
#   proto/**.proto             to C by protoc-c, into $(GEN); the set of descriptors beside it
#   clients/c/*.c              libtribo_client.a, which the command tribo links too
#   db/**/*.c                  libtribo_db.a, the store, which the command tribo links too
#   server/**/*.c              libtribod.a, all but server/main.c, which makes it the daemon tribod
#   FILE.inc in $(GEN)         the bytes of FILE as a list for a C array: SQL, descriptors; dashboard.inc: clients/web/rules.mk
#   protobuf-c                 from its own source in asan and fuzz builds, where deps.sh put it
#   tests/unit/{server,db}/*.c, tests/fuzz/fuzz_wire_*.c
#                              link libtribod.a too
#   tests/unit/client/*.c, tests/unit/server/test_server_rpc*.c
#                              link libtribod.a and libtribo_client.a: daemon and client in one process
#   tests/unit/cli/test_cli_NAME.c
#                              links NAME.o of the command alone
# Includes name the room: "session/session.h" from server/, "common/args.h" from clients/cli/.

GEN := $(BUILD)/generated
PROTO_ALL := $(patsubst proto/%,%,$(shell find proto -name '*.proto'))
# PROTO: the messages that the daemon serves. A collector of spans gets the others; clients have no use for them.
PROTO := $(filter-out opentelemetry/%,$(PROTO_ALL))
PROTO_C := $(PROTO_ALL:%.proto=$(GEN)/%.pb-c.c)
PROTO_OBJECTS := $(PROTO_ALL:%.proto=$(B)/generated/%.pb-c.o)
DESCRIPTORS := $(GEN)/descriptors.pb.inc
EMBEDDED := $(DESCRIPTORS) $(GEN)/dashboard.inc $(patsubst %,$(GEN)/%.inc,$(wildcard db/schema/*.sql))
SERVER_OBJECTS := $(patsubst %.c,$(B)/%.o,$(filter-out server/main.c,$(wildcard server/*.c server/*/*.c server/*/*/*.c)))
SERVER_LIBRARY := $(B)/libtribod.a
DB_OBJECTS := $(patsubst %.c,$(B)/%.o,$(wildcard db/*.c db/*/*.c))
DB_LIBRARY := $(B)/libtribo_db.a
CLIENT_OBJECTS := $(patsubst %.c,$(B)/%.o,$(wildcard clients/c/*.c))
CLIENT_LIBRARY := $(B)/libtribo_client.a
CLIENT_TESTS = $(filter tests/unit/client/% tests/unit/server/test_server_rpc%,$(suite_unit))
SERVER_TESTS = $(filter tests/unit/server/% tests/unit/db/% tests/fuzz/fuzz_wire_% \
                 tests/fuzz/replay_wire_%,$(suite_unit) $(FUZZ) $(suite_fuzz)) $(CLIENT_TESTS)

GENERATED_FLAGS = -D_GNU_SOURCE -I$(GEN) -std=c11 $(OPTIMIZE) $(MARCH) -pthread -fPIC $(SANITIZE)
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

.SECONDARY: $(PROTO_C)
$(GEN)/%.pb-c.c $(GEN)/%.pb-c.h &: proto/%.proto
	$(call say,PROTO,$<)
	@mkdir -p $(GEN)
	$(Q)protoc -Iproto --c_out=$(GEN) $<

$(GEN)/descriptors.pb: $(PROTO:%=proto/%)
	@mkdir -p $(@D)
	$(Q)protoc -Iproto --include_imports --include_source_info --descriptor_set_out=$@ $^

$(GEN)/%.inc: $(GEN)/%
	@od -An -v -tx1 $< | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g' > $@
$(GEN)/%.inc: %
	@mkdir -p $(@D)
	@od -An -v -tx1 $< | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g' > $@

$(B)/generated/%.o: $(GEN)/%.c $(B)/stamp.flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GENERATED_FLAGS) -c -o $@ $<

# everything that may include a generated header waits until all are there
$(SERVER_OBJECTS) $(DB_OBJECTS) $(B)/server/main.o $(PROTO_OBJECTS) $(CLI_OBJECTS) $(CLIENT_OBJECTS) \
    $(patsubst %,$(B)/%.o,$(filter-out tests/fuzz/replay_%,$(SERVER_TESTS))): \
    | $(PROTO_C) $(EMBEDDED)
$(SERVER_OBJECTS) $(DB_OBJECTS) $(B)/server/main.o: CPPFLAGS += -isystem $(GEN) -Iserver -I.
$(patsubst %,$(B)/%.o,$(SERVER_TESTS)): CPPFLAGS += -isystem $(GEN) -Iserver -I.

# the commit is in one file, so that a new one compiles one file
$(B)/server/ops/build.o $(B)/clients/cli/common/commit.o: CPPFLAGS += -DTB_COMMIT='"$(COMMIT)"'
$(B)/server/ops/build.o $(B)/clients/cli/common/commit.o: $(B)/stamp.commit
$(B)/stamp.commit: text = $(COMMIT)

# with libpq's header the daemon can send its runs to a fleet's database; the library is loaded then
$(B)/db/fleet/postgres.o: CPPFLAGS += $(POSTGRES_FLAGS)

# embedded files are not listed in .d files as headers are, so they are named here
$(B)/db/migrate.o: $(patsubst %,$(GEN)/%.inc,$(wildcard db/schema/*.sql))
$(B)/server/transport/http/dashboard.o: $(GEN)/dashboard.inc
$(B)/server/transport/grpc/reflection.o: $(DESCRIPTORS)

# Decoders are instrumented inside too: sanitizers see each read of protobuf-c and the fuzzer each
# branch. `make fuzz` insists on the source; under ASan the system's library does where it is not.
# For messages without fields and for empty packed fields it adds 0 to the null pointer, or copies 0
# bytes to it: harmless, and allowed by C2y.
PROTOBUF_SOURCE := $(if $(filter asan fuzz,$(VARIANT)),$(BUILD)/protobuf-c/protobuf-c/protobuf-c.c)
PROTOBUF_OBJECT := $(if $(filter fuzz,$(VARIANT))$(wildcard $(PROTOBUF_SOURCE)),$(B)/protobuf-c.o)
$(B)/protobuf-c.o: $(PROTOBUF_SOURCE) $(B)/stamp.flags
	$(call say,CC,$<)
	$(Q)$(CC) $(GENERATED_FLAGS) -fno-sanitize=pointer-overflow,nonnull-attribute \
	    -c -o $@ $<
ifneq ($(PROTOBUF_OBJECT),)
PROTO_OBJECTS += $(PROTOBUF_OBJECT)
SERVER_LIBS := $(filter-out -lprotobuf-c,$(SERVER_LIBS))
endif

$(SERVER_LIBRARY): $(SERVER_OBJECTS) $(PROTO_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(DB_LIBRARY): $(DB_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/tribod: $(B)/server/main.o $(SERVER_LIBRARY) $(DB_LIBRARY) $(LIBRARY)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(SERVER_LIBRARY) $(DB_LIBRARY) $(LIBRARY) $(SERVER_LIBS) $(LDLIBS)

$(addprefix $(B)/,$(SERVER_TESTS)): $(SERVER_LIBRARY) $(DB_LIBRARY)
$(addprefix $(B)/,$(SERVER_TESTS)): LIBRARY := $(SERVER_LIBRARY) $(DB_LIBRARY) $(LIBRARY)
$(addprefix $(B)/,$(SERVER_TESTS)): LDLIBS := $(SERVER_LIBS) $(LDLIBS)
$(addprefix $(B)/,$(CLIENT_TESTS)): $(CLIENT_LIBRARY)
$(addprefix $(B)/,$(CLIENT_TESTS)): LIBRARY := $(CLIENT_LIBRARY) $(LIBRARY)
$(patsubst %,$(B)/%.o,$(CLIENT_TESTS)): CPPFLAGS += -Iclients/c

# ---- the client library: its objects hold the messages that a program needs beside them ----

$(CLIENT_OBJECTS): CPPFLAGS += -isystem $(GEN)
$(CLI_OBJECTS): CPPFLAGS := -Iclients/cli $(CPPFLAGS) -isystem $(GEN) -Iclients/c -I.
$(CLIENT_LIBRARY): $(CLIENT_OBJECTS) $(filter $(B)/generated/tribo/%,$(PROTO_OBJECTS)) \
    $(PROTOBUF_OBJECT)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# the store is for `tribo backup`
$(B)/tribo: $(CLIENT_LIBRARY) $(DB_LIBRARY)
$(B)/tribo: LIBRARY := $(CLIENT_LIBRARY) $(DB_LIBRARY) $(LIBRARY)
$(B)/tribo: LDLIBS := $(SERVER_LIBS) $(LDLIBS)

CLI_TESTS = $(filter tests/unit/cli/%,$(suite_unit))
$(foreach t,$(CLI_TESTS),$(eval $(B)/$t: $(filter %/$(t:tests/unit/cli/test_cli_%=%).o,$(CLI_OBJECTS))))
$(patsubst %,$(B)/%.o,$(CLI_TESTS)): CPPFLAGS += -isystem $(GEN) -Iclients/c -Iclients/cli
$(patsubst %,$(B)/%.o,$(CLI_TESTS)): | $(PROTO_C)

# benchmarks of the wire are clients
WIRE_BENCH := $(filter tests/bench/bench_wire%,$(BENCH))
$(patsubst %,$(B)/%.o,$(WIRE_BENCH)): CPPFLAGS += -isystem $(GEN) -Iclients/c
$(patsubst %,$(B)/%.o,$(WIRE_BENCH)): | $(PROTO_C)
$(addprefix $(B)/,$(WIRE_BENCH)): $(CLIENT_LIBRARY)
$(addprefix $(B)/,$(WIRE_BENCH)): LIBRARY := $(CLIENT_LIBRARY) $(LIBRARY)
$(addprefix $(B)/,$(WIRE_BENCH)): LDLIBS := $(SERVER_LIBS) $(LDLIBS)

# ---- the client's part of `make install`: library, header, messages, pkg-config file ----

.PHONY: install-client
install: install-client
install-client: $(CLIENT_LIBRARY)
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,include/tribo/v1 lib/pkgconfig)
	install -m 644 clients/c/tribo_client.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(filter $(GEN)/tribo/v1/%,$(PROTO_C:.c=.h)) $(DESTDIR)$(PREFIX)/include/tribo/v1/
	install -m 644 $(CLIENT_LIBRARY) $(DESTDIR)$(PREFIX)/lib/
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' \
	    deploy/tribo-client.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/tribo-client.pc

# ---- the daemon's part of `make install`: an example of its configuration, and a systemd unit ----

.PHONY: install-daemon
install: install-daemon
install-daemon: products
	install -d $(DESTDIR)$(SYSCONFDIR) $(DESTDIR)$(PREFIX)/lib/systemd/system
	[ -e $(DESTDIR)$(SYSCONFDIR)/tribod.ini ] || \
	    install -m 644 deploy/tribod.ini $(DESTDIR)$(SYSCONFDIR)/tribod.ini
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@SYSCONFDIR@|$(SYSCONFDIR)|' deploy/tribod.service \
	    > $(DESTDIR)$(PREFIX)/lib/systemd/system/tribod.service

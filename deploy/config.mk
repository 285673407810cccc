# Knobs and flags. Set any of them on the command line: `make DEBUG=1`, `make BUILD=/tmp/mine all`.

# where things go
BUILD   ?= build
PREFIX  ?= /usr/local
# under a prefix of its own nothing is written elsewhere
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)
DESTDIR ?=

# DEBUG=1 builds without optimization into $(BUILD)/debug; V=1 shows the commands
DEBUG ?= 0
V     ?= 0
JOBS  ?= $(shell nproc 2>/dev/null || echo 2)

# tests: ONLY=word keeps those with the word in their path; TEST_TIMEOUT is seconds for one program
ONLY         ?=
TEST_TIMEOUT ?= 600
# which folders of tests/ run again under a sanitizer (unit truth fuzz e2e)
ASAN_SUITES  ?= unit fuzz
TSAN_SUITES  ?= unit
# seconds that `make fuzz` runs each target after building it
FUZZ_SECONDS ?= 0

# The oldest processor that a default build runs on. MARCH=native is for this machine only.
ifeq ($(shell uname -m),x86_64)
MARCH ?= -march=x86-64-v2
endif
ifeq ($(MARCH),native)
override MARCH := -march=native
endif

# The GPU's plug-in: the compiler (empty: no plug-in is built), and the cards that get machine code;
# newer ones than the last compile its intermediate code when they first load it. GPU_ALL=1, for a
# release, is for every card since 2018: the code of one compute capability also runs on later ones
# of the same major number (8.0 on 8.6, 8.7 and 8.9; 10.0 on 10.3; 12.0 on 12.1).
EVERY_CARD := 75 80 90 100 120
ifeq ($(origin NVCC),undefined)
NVCC := $(shell deploy/find_nvcc.sh $(BUILD))
endif
GPU_ALL ?= 0
GPU_ARCHITECTURES ?= $(if $(filter 1,$(GPU_ALL)),$(EVERY_CARD),90)

# which images `make image` builds: cpu gpu
IMAGES ?= cpu

# VARIANT is set by the Makefile when it calls itself: each variant has objects of its own.
VARIANT ?= $(if $(filter 1,$(DEBUG)),debug,release)

ifeq ($(origin CC),default)
CC := gcc
endif
CLANG        ?= clang
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format 2>/dev/null))

B := $(BUILD)/$(VARIANT)
WERROR := -Werror
OPTIMIZE ?= -O2
ifeq ($(VARIANT),release)
B := $(BUILD)
# the step's rooms, which are one unit, and soft bodies
PHYSICS_OPTIMIZE ?= -O3
endif
ifeq ($(VARIANT),debug)
OPTIMIZE := -O0 -g3
endif
# Sanitized builds drop -Werror: instrumentation makes gcc see uninitialized values where there are
# none, and the release build has already been strict about the same sources.
ifeq ($(VARIANT),asan)
OPTIMIZE := -O1 -g
SANITIZE := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
SANITIZE += -fno-omit-frame-pointer
WERROR :=
endif
# ThreadSanitizer does not see the barriers of gcc's libgomp and reports false races. With clang's
# libomp, its tool Archer tells the sanitizer about them.
ifeq ($(VARIANT),tsan)
CC := $(CLANG)
OPTIMIZE := -O1 -g
SANITIZE := -fsanitize=thread -fno-omit-frame-pointer
WERROR :=
ARCHER := $(shell $(CLANG) -print-resource-dir 2>/dev/null)/../../libarcher.so
endif
# coverage instrumentation everywhere, libFuzzer's main only in the fuzz programs
ifeq ($(VARIANT),fuzz)
CC := $(CLANG)
OPTIMIZE := -O1 -g
SANITIZE := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
SANITIZE += -fno-omit-frame-pointer
WERROR :=
endif

# libraries; HDF5, which Debian calls hdf5-serial, is loaded when a file needs it, by this name
PACKAGES  := libxml-2.0 jansson libsodium qhull_r lapack blas libpng zlib
HDF5      := $(shell pkg-config --exists hdf5-serial 2>/dev/null && echo hdf5-serial || echo hdf5)
HDF5_PATH := $(shell pkg-config --libs-only-L $(HDF5) 2>/dev/null)
HDF5_FILE := $(firstword $(wildcard $(HDF5_PATH:-L%=%/libhdf5.so)) \
                         $(shell $(CC) -print-file-name=libhdf5.so))
HDF5_NAME := $(notdir $(or $(shell readelf -d $(HDF5_FILE) 2>/dev/null | sed -n 's/.*soname: \[\(.*\)\]/\1/p'),$(HDF5_FILE)))
# SUNDIALS, which has no pkg-config file, adds integrators to the volume law where it is there
SUNDIALS  ?= $(shell printf '\043include <arkode/arkode_erkstep.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo 1)
PKG_FLAGS := $(shell pkg-config --cflags $(PACKAGES) $(HDF5) 2>/dev/null)
PKG_LIBS  := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null)
SUNDIALS_LIBS := $(if $(SUNDIALS),-lsundials_cvode -lsundials_ida -lsundials_arkode -lsundials_nvecserial)

# of the daemon alone
SERVER_PACKAGES := libnghttp2 libprotobuf-c libmicrohttpd sqlite3 inih gnutls
SERVER_LIBS := $(shell pkg-config --libs $(SERVER_PACKAGES) 2>/dev/null)

# PostgreSQL's library, loaded when a fleet is configured; without its header there is no fleet
POSTGRES_FLAGS := $(shell pkg-config --exists libpq 2>/dev/null && echo -DTB_POSTGRES $$(pkg-config --cflags libpq | sed 's/-I/-isystem /g'))

# Results must be the same bytes on every run and every machine: no fused multiply-add that one
# compiler contracts and another does not, no -ffast-math. Ignoring errno and traps changes nothing.
FLOATING := -ffp-contract=off -fno-math-errno -fno-trapping-math
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes $(WERROR)
CPPFLAGS += -D_GNU_SOURCE -Isolver $(patsubst -I%,-isystem %,$(PKG_FLAGS))
CFLAGS   := -std=c11 $(OPTIMIZE) $(MARCH) $(FLOATING) $(WARNINGS) -fopenmp -pthread -fPIC \
            -fno-semantic-interposition $(SANITIZE) $(CFLAGS)
LDLIBS   := -Wl,--as-needed $(PKG_LIBS) $(SUNDIALS_LIBS) -lm $(LDLIBS)
CHECK_LIBS = $(shell pkg-config --libs check 2>/dev/null || echo -lcheck)

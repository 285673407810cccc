# Included by the Makefile: the GPU backend, a plug-in that nothing else links.
#
#   solver/gpu/**/*.c the host's side, C with the CUDA runtime's headers
#   solver/gpu/**/*.cu kernels, compiled as double and (-DTB_SINGLE, *.f32.o) as float; those of small
#                     worlds, of piles and of wide worlds as float alone
#   libtribo_gpu.so   both, with the parts of libtribo and of the CUDA runtime that they need inside;
#                     exports one symbol and needs no driver to be loaded
#   tests/plugin/*.c  backends for tests, one shared object each, with a library inside too

GPU_PLUGIN := $(B)/libtribo_gpu.so
GPU_C := $(call sources,solver/gpu,*.c)
GPU_C_OBJECTS := $(GPU_C:%.c=$(B)/%.o)
FLOAT_KERNELS := $(addprefix $(B)/solver/gpu/batch/step_,warp pile wide)
GPU_KERNELS := $(foreach k,$(patsubst %.cu,$(B)/%,$(call sources,solver/gpu,*.cu)),$(k).cu.o $(k).f32.cu.o)
GPU_KERNELS := $(filter-out $(FLOAT_KERNELS:=.cu.o),$(GPU_KERNELS))

# the toolkit that the compiler belongs to
CUDA = $(patsubst %/bin/nvcc,%,$(NVCC))
CUDA_RUNTIME = $(firstword $(wildcard $(addsuffix /libcudart_static.a,$(CUDA)/lib64 $(CUDA)/lib \
                 $(CUDA)/targets/$(shell uname -m)-linux/lib)))

# machine code for each architecture, and intermediate code of the last
gpu_intermediate = compute_$(or $(lastword $(GPU_ARCHITECTURES)),90)
gpu_code = $(foreach a,$(GPU_ARCHITECTURES),-gencode arch=compute_$(a),code=sm_$(a)) \
           -gencode arch=$(gpu_intermediate),code=$(gpu_intermediate)
# as on the CPU no product and sum become one operation; the seed keeps names the same every time.
# Not in parts (--split-compile): their functions are optimized apart, and a solve is a sixth larger
GPU_FLAGS = -std=c++20 -O3 --fmad=false $(gpu_code) -Isolver -Xcompiler -fPIC,-O2 \
            -Xcompiler -fvisibility=hidden -diag-suppress 177

$(GPU_C_OBJECTS): CPPFLAGS += $(if $(NVCC),-isystem $(CUDA)/include)
$(GPU_C_OBJECTS): CFLAGS += -fvisibility=hidden

$(B)/stamp.gpu: text = $(NVCC) $(GPU_FLAGS)
$(B)/stamp.gpu: force
	@mkdir -p $(@D)
	@echo '$(text)' | cmp -s - $@ || echo '$(text)' > $@

define compile_kernels
$(call say,NVCC,$<)
@mkdir -p $(@D)
$(Q)$(NVCC) $(GPU_FLAGS) -frandom-seed=$(@F) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@ $<
@objcopy --wildcard --strip-symbol='tmpxft_*' $@ # names of temporary files differ every time
endef

$(B)/%.cu.o: %.cu $(B)/stamp.gpu
	$(compile_kernels)
# private: the stamp must not inherit it
$(B)/%.f32.cu.o: private GPU_FLAGS += -DTB_SINGLE
inexact = -prec-div=false -prec-sqrt=false
# steps of many worlds: quotients and roots in float may miss the last bit. Where each is a function of its own, lanes
# wait for each other and for instructions (tests/bench/gpu/results/README.md)
$(B)/solver/gpu/batch/%.f32.cu.o: private GPU_FLAGS += $(inexact)
# the kernels of small worlds, of piles and of wide worlds have solvers of their own and so answers of their own, within
# the tolerance
$(FLOAT_KERNELS:=.f32.cu.o): private GPU_FLAGS := $(filter-out --fmad=false,$(GPU_FLAGS)) -DTB_SINGLE $(inexact)
$(B)/%.f32.cu.o: %.cu $(B)/stamp.gpu
	$(compile_kernels)

# for the host, each kernel file has an empty function of the same name for every device function
$(GPU_PLUGIN): $(GPU_C_OBJECTS) $(GPU_KERNELS) $(LIBRARY)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic,-z,defs,--exclude-libs,ALL \
	    -Wl,--gc-sections,-z,muldefs -o $@ $(filter %.o,$^) $(LIBRARY) $(CUDA_RUNTIME) \
	    -l:libstdc++.a -static-libgcc $(LDLIBS) -ldl -lrt

# a bench that times the stages of a large world links the backend itself
GPU_BENCH := $(B)/tests/bench/bench_large
$(B)/tests/bench/gpu/bench_large.o: CPPFLAGS += $(if $(NVCC),-isystem $(CUDA)/include)
$(GPU_BENCH): $(B)/tests/bench/gpu/bench_large.o $(B)/tests/bench/common_bench.o \
              $(GPU_C_OBJECTS) $(GPU_KERNELS) $(LIBRARY)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--gc-sections,-z,muldefs -o $@ $(filter %.o,$^) \
	    $(LIBRARY) $(CUDA_RUNTIME) -l:libstdc++.a $(LDLIBS) -ldl -lrt

$(PLUGINS:%=$(B)/%): %.so: %.o $(LIBRARY)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic -o $@ $< $(LIBRARY) $(LDLIBS)

# tests of the host's side that need no card
$(B)/tests/unit/gpu/test_gpu_image: $(B)/solver/gpu/device/model_image.o
$(B)/tests/unit/gpu/test_gpu_plugin: | $(PLUGINS:%=$(B)/%)

.PHONY: install-gpu
install-gpu: $(GPU_PLUGIN)
	install -d $(DESTDIR)$(PREFIX)/lib/tribo
	install -m 755 $(GPU_PLUGIN) $(DESTDIR)$(PREFIX)/lib/tribo/
ifneq ($(NVCC),)
install: install-gpu
endif

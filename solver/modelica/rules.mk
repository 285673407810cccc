# Included by the Makefile: the compiler of Modelica functions.
#
#   syntax/{grammar.y,lexer.l}  to C by bison and flex, into build/generated/modelica/syntax
#   prelude.inc                   its text, which prelude.c takes into the library
#   lexer.c and grammar.c are compiled without the warnings of the house: flex and bison wrote them

MODELICA_GEN := $(BUILD)/generated/modelica/syntax
MODELICA_OBJECTS := $(B)/generated/modelica/syntax/grammar.o $(B)/generated/modelica/syntax/lexer.o
LIB_OBJECTS += $(MODELICA_OBJECTS)

$(MODELICA_GEN)/grammar.c $(MODELICA_GEN)/grammar.h &: solver/modelica/syntax/grammar.y
	$(call say,BISON,$<)
	@mkdir -p $(@D)
	$(Q)bison -Wno-yacc -o $(MODELICA_GEN)/grammar.c --defines=$(MODELICA_GEN)/grammar.h $<

$(MODELICA_GEN)/lexer.c: solver/modelica/syntax/lexer.l
	$(call say,FLEX,$<)
	@mkdir -p $(@D)
	$(Q)flex -o $@ $<

$(MODELICA_OBJECTS): GENERATED_FLAGS += -Isolver
$(MODELICA_OBJECTS): $(MODELICA_GEN)/grammar.h solver/modelica/syntax/lexer.h solver/modelica/syntax/syntax.h
$(B)/solver/modelica/prelude.o: solver/modelica/prelude.inc

# a card that is played, under the names of the driver and of NVRTC
PLAYED_CUDA := $(B)/tests/plugin/modelica/played_cuda.so $(B)/tests/plugin/modelica/played_nvrtc.so
$(B)/tests/plugin/modelica/played_cuda.so: PLAYED_NAME := libcuda.so.1
$(B)/tests/plugin/modelica/played_nvrtc.so: PLAYED_NAME := libnvrtc.so.13
$(PLAYED_CUDA): tests/plugin/modelica/played_cuda.c $(B)/stamp.flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(OPTIMIZE) -Wall -Wextra $(WERROR) -shared -fPIC \
	    -Wl,-soname,$(PLAYED_NAME) -o $@ $< -ldl
$(B)/tests/unit/modelica/test_modelica_card $(B)/tests/unit/modelica/test_modelica_kernels \
    $(B)/tests/unit/modelica/test_modelica_kept: | $(PLAYED_CUDA)

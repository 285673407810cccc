# Included by the Makefile: the compiler of Modelica functions.
#
#   grammar.y, lexer.l   to C by bison and flex, into $(BUILD)/generated/modelica
#   prelude.h            its text, for generated code
#   lexer.c and grammar.c are compiled without the warnings of the house: flex and bison wrote them

MODELICA_GEN := $(BUILD)/generated/modelica
MODELICA_OBJECTS := $(B)/generated/modelica/grammar.o $(B)/generated/modelica/lexer.o
LIB_OBJECTS += $(MODELICA_OBJECTS)

$(MODELICA_GEN)/grammar.c $(MODELICA_GEN)/grammar.h &: solver/modelica/grammar.y
	$(call say,BISON,$<)
	@mkdir -p $(@D)
	$(Q)bison -Wno-yacc -o $(MODELICA_GEN)/grammar.c --defines=$(MODELICA_GEN)/grammar.h $<

$(MODELICA_GEN)/lexer.c: solver/modelica/lexer.l
	$(call say,FLEX,$<)
	@mkdir -p $(@D)
	$(Q)flex -o $@ $<

$(MODELICA_OBJECTS): GENERATED_FLAGS += -Isolver
$(MODELICA_OBJECTS): $(MODELICA_GEN)/grammar.h solver/modelica/lexer.h solver/modelica/syntax.h
$(B)/solver/modelica/prelude.o: CPPFLAGS += -isystem $(BUILD)/generated
$(B)/solver/modelica/prelude.o: $(BUILD)/generated/solver/modelica/prelude.h.inc

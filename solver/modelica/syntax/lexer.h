/* State that lexer.l and grammar.y share while they parse one source. */
#ifndef TB_MODELICA_LEXER_H
#define TB_MODELICA_LEXER_H

#include <setjmp.h>

#include "modelica/syntax/syntax.h"

/* Integers of the source; arithmetic has 64 bits. */
#define MO_LARGEST_LITERAL INT64_C(4503599627370496)

typedef struct mo_scan {
    mo_source *source;
    int32_t line, column; /* of the next byte */
    mo_node *classes;     /* result: MO_LIST of MO_CLASS */
    jmp_buf escape;       /* taken when the scanner has no memory */
} mo_scan;

#endif

/* The typed intermediate form that every back end reads.
 *
 * A function is a list of variables and a tree of statements over scalars. Records are split into
 * one variable a field, array expressions are loops over their elements, and calls stand alone.
 * So the interpreter, the C back end and the CUDA back end do the same scalar operations in the
 * same order, and their results agree to the last bit where the mathematics library does.
 *
 * An operation that can fail carries the place in the source that a failure names. */
#ifndef TB_MODELICA_IR_H
#define TB_MODELICA_IR_H

#include "modelica/syntax/syntax.h"
#include "tribo_function.h"

enum { MO_RANK = TB_FUNCTION_RANK };

typedef enum mo_base { MO_T_REAL, MO_T_INTEGER, MO_T_BOOLEAN } mo_base;

/* Operators of scalar expressions; the type of the operands is that of the first child. */
#define MO_X_LIST(X)                                                                               \
    X(CONSTANT)                                                                                    \
    X(VARIABLE)                                                                                    \
    X(ELEMENT)                                                                                     \
    X(SIZE)                                                                                        \
    X(CAST)                                                                                        \
    X(ADD)                                                                                         \
    X(SUBTRACT)                                                                                    \
    X(MULTIPLY)                                                                                    \
    X(DIVIDE)                                                                                      \
    X(POWER)                                                                                       \
    X(NEGATE)                                                                                      \
    X(LESS)                                                                                        \
    X(LESS_EQUAL)                                                                                  \
    X(EQUAL)                                                                                       \
    X(NOT_EQUAL)                                                                                   \
    X(AND)                                                                                         \
    X(OR)                                                                                          \
    X(NOT)                                                                                         \
    X(SELECT)                                                                                      \
    X(ABS)                                                                                         \
    X(SIGN)                                                                                        \
    X(MINIMUM)                                                                                     \
    X(MAXIMUM)                                                                                     \
    X(DIV)                                                                                         \
    X(MOD)                                                                                         \
    X(REM)                                                                                         \
    X(FLOOR)                                                                                       \
    X(CEIL)                                                                                        \
    X(INTEGER)                                                                                     \
    X(SQRT)                                                                                        \
    X(SIN)                                                                                         \
    X(COS)                                                                                         \
    X(TAN)                                                                                         \
    X(ASIN)                                                                                        \
    X(ACOS)                                                                                        \
    X(ATAN)                                                                                        \
    X(ATAN2)                                                                                       \
    X(SINH)                                                                                        \
    X(COSH)                                                                                        \
    X(TANH)                                                                                        \
    X(EXP)                                                                                         \
    X(LOG)                                                                                         \
    X(LOG10)

typedef enum mo_x_op {
#define MO_X_ENUM(name) MO_X_##name,
    MO_X_LIST(MO_X_ENUM)
#undef MO_X_ENUM
} mo_x_op;

typedef struct mo_x {
    mo_x_op op;
    mo_base base; /* of the result */
    mo_place place;
    int32_t variable;  /* MO_X_VARIABLE, MO_X_ELEMENT, MO_X_SIZE */
    int32_t dimension; /* MO_X_SIZE: from 0 */
    int32_t count;     /* operands, or subscripts of an element */
    double real;       /* MO_X_CONSTANT */
    int64_t integer;   /* MO_X_CONSTANT of type Integer or Boolean */
    const struct mo_x *operand[MO_RANK];
} mo_x;

typedef enum mo_variable_role { MO_LOCAL, MO_IN, MO_OUT } mo_variable_role;

typedef struct mo_variable {
    const char *name; /* "state.h" for a field of a record */
    mo_base base;
    int32_t rank; /* 0: scalar */
    mo_variable_role role;
    mo_place place;
    bool optional;             /* an input with a default */
    bool fixed[MO_RANK];       /* the declaration gives the size; else ":" */
    const mo_x *value;         /* the only value that a scalar ever has, of stable parts, or NULL */
    const mo_x *size[MO_RANK]; /* the sizes that it always has, of stable parts, or NULL */
    bool assigned;             /* by a statement of the source */
    bool iterator;             /* of a for statement: no statement of the source assigns it */
    bool temporary;            /* made by the compiler, assigned in one place */
} mo_variable;

typedef enum mo_s_op {
    MO_S_ASSIGN,   /* variable := value */
    MO_S_STORE,    /* variable[subscript] := value */
    MO_S_ALLOCATE, /* variable gets the sizes of subscript[], filled with zeros */
    MO_S_MOVE,     /* variable takes the content of the local `source`, which is left empty */
    MO_S_COPY,     /* variable gets size and content of the array `source` */
    MO_S_FOR,      /* variable from value by step to limit, inclusive: body */
    MO_S_WHILE,    /* repeats body until MO_S_BREAK */
    MO_S_IF,       /* value: body, else orelse */
    MO_S_BREAK,
    MO_S_RETURN,
    MO_S_ASSERT, /* value, else the program's message number `source` */
    MO_S_CALL    /* callee with arguments into results */
} mo_s_op;

/* An assignment that is a step of a sum by a tree (prelude.inc). As a plain assignment it is the sum in
 * the order of its terms: v := 0, v := v + term, v := v. */
typedef enum mo_tree_step { MO_TREE_OPEN, MO_TREE_ADD, MO_TREE_CLOSE } mo_tree_step;

struct mo_function;

typedef struct mo_argument {
    const mo_x *value; /* of a scalar input; NULL: the array `variable` */
    int32_t variable;
} mo_argument;

typedef struct mo_s {
    mo_s_op op;
    mo_place place;
    int32_t variable, source;
    int32_t count; /* subscripts, or sizes */
    int32_t tree;  /* MO_S_ASSIGN: number of a sum in its function, from 1; 0: none */
    mo_tree_step tree_step;
    const mo_x *value, *limit, *step;
    const mo_x *subscript[MO_RANK];
    struct mo_s *body, *orelse;
    const struct mo_function *callee;
    mo_argument *arguments;
    int32_t *results;
    struct mo_s *next;
    struct mo_loop *loop; /* MO_S_FOR: result of the dependence analysis, or NULL */
} mo_s;

typedef struct mo_function {
    const char *name; /* dotted */
    mo_place place;
    mo_variable *variables;
    int32_t count, capacity;
    /* variables: the inputs; Boolean inputs that say whether optional inputs are given; the
     * outputs; the rest */
    int32_t inputs, flags, outputs;
    mo_s *body;
    int32_t index;       /* in the program */
    const int32_t *flag; /* [inputs]: variable that says whether an input is given, or -1 */
    bool on_card;        /* annotation(gpuFunction = true) */
    bool reorder;        /* annotation(__Tribod_reorder = true): sums in any order on the card */
    int32_t kernels;     /* loops that the card can run */
    int32_t sweeps;      /* sequential loops for which one launch can run several rounds */
    int32_t trees;       /* sums by a tree */
} mo_function;

/* Text of a failed assertion. */
typedef struct mo_message {
    const char *text;
    tb_status status;
    mo_place place;
} mo_message;

/* A compiled source. Immutable once tb_mo_lower has returned. */
typedef struct mo_program {
    tb_arena arena;
    mo_source source;
    mo_function **functions;
    int32_t count, capacity;
    mo_message *messages; /* of assertions, by their number */
    int32_t message_count, message_capacity;
    const char *text; /* copy of the source, for carets */
    char key[65];     /* SHA-256 of the source */
} mo_program;

/* Whether an expression reads a variable, its elements or its sizes. */
bool tb_mo_x_mentions(const mo_x *x, int32_t variable);

/* Parses and checks the source and lowers its functions; on failure the diagnosis is in
 * program->source. The program's arena owns everything. */
tb_status tb_mo_lower(mo_program *program);

/* Marks each loop that can run on the card, and says why the others cannot. */
tb_status tb_mo_analyse(mo_program *program);

#endif

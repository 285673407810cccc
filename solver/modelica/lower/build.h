/* Lowering: from syntax trees to the intermediate form, with the checks of names, types and shapes.
 *
 * Array expressions stay unevaluated (mo_lazy) until a statement needs their elements; then one
 * loop nest computes them, without a temporary where the target allows it. Private to the lowering. */
#ifndef TB_MODELICA_BUILD_H
#define TB_MODELICA_BUILD_H

#include "modelica/ir.h"

/* ---- names ---- */

typedef struct mo_class {
    const mo_node *node;
    struct mo_class *parent, *next; /* next of the same parent */
    struct mo_class *classes;
    const char *name; /* dotted */
    mo_function *function;
    struct mo_entity *entities; /* of a function: its components */
    int visiting;               /* guard against records and constants that hold themselves */
} mo_class;

typedef struct mo_type {
    mo_base base;
    mo_class *record; /* or NULL */
} mo_type;

/* A scalar field of a record, records in records opened. */
typedef struct mo_leaf {
    const char *suffix; /* "a.b" */
    mo_base base;
    int32_t rank;
    const mo_node *sizes[MO_RANK]; /* subscripts of the declaration */
    mo_class *scope;               /* where their names are looked up */
} mo_leaf;

typedef struct mo_leaves {
    int32_t count, capacity;
    mo_leaf *leaf;
} mo_leaves;

/* A component or an iterator of a function. */
typedef struct mo_entity {
    const char *name;
    const mo_node *node; /* MO_COMPONENT, or NULL for an iterator */
    mo_type type;
    int32_t rank;     /* without the ranks of fields */
    int32_t variable; /* of its first leaf; the other leaves follow */
    int32_t leaves;   /* 1, or the fields of a record */
    int32_t flag;     /* variable that says whether an optional input is given, or -1 */
    enum { MO_WAITING, MO_VISITING, MO_READY } state;
    struct mo_entity *next;
} mo_entity;

/* ---- values ---- */

typedef enum mo_lazy_kind {
    MO_L_SCALAR,   /* the same everywhere: x */
    MO_L_VARIABLE, /* elements of a variable, through subscripts */
    MO_L_APPLY,    /* an operation on each element of the operands */
    MO_L_TRANSPOSE,
    MO_L_RANGE, /* operand-free: x + (i - 1) step */
    MO_L_IDENTITY
} mo_lazy_kind;

/* A subscript: one element (x), every `step`th element from x on, or the elements that an Integer
 * vector names. */
typedef struct mo_subscript {
    enum { MO_AT, MO_FROM, MO_VECTOR } kind;
    const mo_x *x, *step; /* MO_FROM with NULL x: all */
    int32_t vector;
} mo_subscript;

typedef struct mo_lazy {
    mo_lazy_kind kind;
    mo_x_op op;
    mo_base base;
    int32_t variable, subscripts;
    mo_place place;
    const mo_x *x, *step;
    const struct mo_lazy *operand[3];
    mo_subscript subscript[MO_RANK];
} mo_lazy;

/* An expression's value: a scalar (rank 0: x), an array (sizes and elements), or a record (leaves;
 * type.record). */
typedef struct mo_value {
    mo_type type;
    int32_t rank;
    mo_place place;
    const mo_x *x;
    const mo_x *size[MO_RANK];
    const mo_lazy *lazy;
    struct mo_value *leaf;
    int32_t leaves;
    const char *text; /* of a string, or NULL */
} mo_value;

/* ---- the builder ---- */

typedef struct mo_build {
    mo_program *program;
    mo_source *source;
    tb_arena *arena;
    mo_class *root;
    mo_class *scope;       /* where names are looked up */
    mo_function *function; /* under construction */
    mo_entity *entities;   /* its components and the iterators in scope, innermost first */
    mo_s **tail;           /* where the next statement goes */
    const mo_x *end;       /* value of `end`, or NULL outside of subscripts */
    int32_t loops;         /* around the current statement */
    int32_t constants;     /* being evaluated inside one another */
} mo_build;

/* ---- build.c: statements and scalar expressions ---- */

mo_x *tb_mo_x(mo_build *b, mo_x_op op, mo_base base, mo_place place);
const mo_x *tb_mo_x_integer(mo_build *b, int64_t value, mo_place place);
const mo_x *tb_mo_x_real(mo_build *b, double value, mo_place place);
const mo_x *tb_mo_x_boolean(mo_build *b, bool value, mo_place place);
const mo_x *tb_mo_x_variable(mo_build *b, int32_t variable, mo_place place);
const mo_x *tb_mo_x_size(mo_build *b, int32_t variable, int32_t dimension, mo_place place);
/* An operation with constants folded; NULL operands end the list. */
const mo_x *tb_mo_x_apply(mo_build *b, mo_x_op op, mo_base base, mo_place place, const mo_x *p,
                          const mo_x *q, const mo_x *r);
/* The value as Real. */
const mo_x *tb_mo_x_cast(mo_build *b, const mo_x *x);
bool tb_mo_x_same(const mo_x *a, const mo_x *b);
/* Whether the value is that of constants, inputs and their sizes alone. */
bool tb_mo_x_stable(const mo_build *b, const mo_x *x);

int32_t tb_mo_variable(mo_build *b, const char *name, mo_base base, int32_t rank, mo_place place);
int32_t tb_mo_temporary(mo_build *b, mo_base base, int32_t rank, mo_place place);
/* The expression itself if it is cheap, else a temporary that holds its value. */
const mo_x *tb_mo_hoist(mo_build *b, const mo_x *x);

mo_s *tb_mo_s(mo_build *b, mo_s_op op, mo_place place);
mo_s *tb_mo_s_assign(mo_build *b, int32_t variable, const mo_x *x, mo_place place);
/* Makes three assignments, total := 0, total := total + term and total := total behind the loops, the
 * steps of a sum by a tree. */
void tb_mo_s_make_tree(mo_build *b, mo_s *open, mo_s *add, mo_s *close);
void tb_mo_s_assert(mo_build *b, const mo_x *condition, tb_status status, mo_place place,
                    const char *message);
void tb_mo_s_allocate(mo_build *b, int32_t variable, int32_t rank, const mo_x *const *size,
                      mo_place place);
/* Opens a loop over 1:limit with a new iterator, whose value is returned; close with the result of
 * *outer. */
const mo_x *tb_mo_open_loop(mo_build *b, const mo_x *limit, mo_place place, mo_s ***outer);
void tb_mo_close(mo_build *b, mo_s **outer);
/* Checks that two sizes agree: now if both are known, else when the function runs. */
void tb_mo_check_size(mo_build *b, const mo_x *p, const mo_x *q, mo_place place, int32_t dimension,
                      const char *what);

const char *tb_mo_format(mo_build *b, const char *format, ...) TB_PRINTF(2, 3);
const char *tb_mo_base_name(mo_base base);
/* "Real[:,:]", for messages. */
const char *tb_mo_type_name(mo_build *b, mo_type type, int32_t rank);

/* ---- scope.c ---- */

/* Makes the tree of classes and functions; reports names that are taken. */
tb_status tb_mo_declare(mo_build *b, const mo_node *classes);
mo_class *tb_mo_find_class(mo_build *b, const char *name, mo_class *scope);
/* A constant of a package, its scope in *scope; NULL if there is none. */
const mo_node *tb_mo_find_constant(mo_build *b, const char *name, mo_class **scope);
/* The type with a name, sizes of an alias included; false with a diagnosis. */
bool tb_mo_find_type(mo_build *b, const char *name, mo_class *scope, mo_place place, mo_type *type,
                     const mo_node **sizes);
/* The fields of a record, opened. */
bool tb_mo_open_record(mo_build *b, mo_class *record, mo_place place, mo_leaves *leaves);
/* The name as the library of Modelica writes it without its package: "sin" for "Modelica.Math.sin";
 * imports of the scope are applied. */
const char *tb_mo_plain_name(mo_build *b, const char *name);

/* ---- lower.c ---- */

/* The component or iterator in scope, ready for use; NULL if there is none. */
mo_entity *tb_mo_find_entity(mo_build *b, const char *name);

/* ---- lower_statement.c ---- */

void tb_mo_lower_statements(mo_build *b, const mo_node *list);
/* Assigns a value to an entity's variables, all of it. */
void tb_mo_assign_variable(mo_build *b, int32_t variable, mo_value value, mo_place place);

/* ---- lower_expression.c ---- */

mo_value tb_mo_lower_expression(mo_build *b, const mo_node *node);
/* The same, of a scalar type: Integer is accepted for Real. */
const mo_x *tb_mo_lower_scalar(mo_build *b, const mo_node *node, mo_base base, const char *what);
mo_value tb_mo_scalar(const mo_x *x);
mo_value tb_mo_nothing(mo_place place);
/* Converts Integer to Real where `base` asks for it. False, with a diagnosis, if it cannot be. */
bool tb_mo_convert(mo_build *b, mo_value *value, mo_base base, const char *what);
mo_value tb_mo_lower_unary(mo_build *b, const mo_node *node);
mo_value tb_mo_lower_binary(mo_build *b, const mo_node *node);
/* lower_reference.c; the target of an assignment too: a lazy variable with subscripts */
mo_value tb_mo_lower_reference(mo_build *b, const mo_node *node);

/* ---- lower_array.c ---- */

const mo_x *tb_mo_element(mo_build *b, const mo_lazy *lazy, const mo_x *const *index);
/* A variable that holds the array: itself, or a temporary. */
int32_t tb_mo_materialise(mo_build *b, const mo_value *value);
mo_value tb_mo_array_of(mo_build *b, int32_t variable, mo_place place);
/* Applies a scalar operation to each element; operands of rank 0 are repeated. */
mo_value tb_mo_each(mo_build *b, mo_x_op op, mo_base base, mo_place place, const mo_value *p,
                    const mo_value *q);
/* Stores the value's elements into a lazy variable. */
void tb_mo_store_all(mo_build *b, const mo_lazy *target, const mo_value *value, mo_place place);
bool tb_mo_lazy_mentions(const mo_lazy *lazy, int32_t variable, bool elsewhere_only);
mo_value tb_mo_lower_range(mo_build *b, const mo_node *node);
mo_value tb_mo_lower_array(mo_build *b, const mo_node *node);
mo_value tb_mo_lower_matrix(mo_build *b, const mo_node *node);
mo_value tb_mo_join(mo_build *b, mo_value *parts, int32_t count, int32_t dimension, mo_place place);
mo_value tb_mo_promote(mo_build *b, mo_value value, int32_t rank);

/* ---- lower_call.c, lower_builtin.c, lower_iterators.c ---- */

/* A call of a function of the source, of a record's constructor or of a built-in function. */
mo_value tb_mo_lower_call(mo_build *b, const mo_node *node);
/* Calls a function of the source; all its outputs, in order, to values[function->outputs]. */
mo_class *tb_mo_call_function(mo_build *b, const mo_node *node, mo_value **values);
/* True if the name is built in. */
bool tb_mo_lower_builtin(mo_build *b, const mo_node *node, const char *name, mo_value *value);
mo_value tb_mo_multiply(mo_build *b, mo_value p, mo_value q, mo_place place);
/* sum, product, min or max of an expression for iterators, or an array of it. */
mo_value tb_mo_lower_reduction(mo_build *b, const mo_node *node, const char *name);
mo_value tb_mo_lower_comprehension(mo_build *b, const mo_node *node);
/* Opens the loop of one iterator of the source; its name is in scope until the close. */
bool tb_mo_open_iterator(mo_build *b, const mo_node *iterator, mo_s ***outer);
void tb_mo_close_iterator(mo_build *b, mo_s **outer);

#endif

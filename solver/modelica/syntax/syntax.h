/* Syntax trees of Modelica sources, and the diagnosis that every stage of the compiler writes.
 *
 * One node type serves classes, statements and expressions. The trees live in an arena with a
 * limit; the parser refuses a source that is larger, or nested deeper, than the limits below, so
 * that recursive passes over a tree have a bounded stack. */
#ifndef TB_MODELICA_SYNTAX_H
#define TB_MODELICA_SYNTAX_H

#include "base/arena.h"
#include "base/error.h"

enum {
    MO_SOURCE_BYTES = 1 << 20, /* largest source */
    MO_TREE_BYTES = 256 << 20, /* arena of one compilation */
    MO_NESTING = 250,          /* nodes between a class and its deepest expression */
    MO_NAME_BYTES = 200        /* longest identifier or dotted name */
};

/* Line and column of a token, both from 1; columns count bytes. */
typedef struct mo_place {
    int32_t line, column;
} mo_place;

/* A source under compilation: its text and the first thing found wrong with it. */
typedef struct mo_source {
    const char *name; /* file name in messages */
    const char *text;
    size_t size;
    tb_arena *arena;
    tb_error *error;
    mo_place fault; /* of the error */
    bool failed;
} mo_source;

typedef enum mo_node_kind {
    MO_LIST,
    /* classes: text is the name, op the mo_class_kind, children are elements */
    MO_CLASS,
    MO_COMPONENT,  /* text, type, op: MO_INPUT...; children MO_DIMENSIONS, MO_BINDING */
    MO_DIMENSIONS, /* subscripts */
    MO_BINDING,    /* expression */
    MO_IMPORT,     /* text: alias or "", type: full name */
    MO_ALIAS,      /* type text = type; child MO_DIMENSIONS */
    MO_ALGORITHM,  /* statements */
    MO_ARGUMENT,   /* annotation or modification: text, child: value */
    /* statements */
    MO_ASSIGN,       /* reference or tuple, expression */
    MO_CALL_ALONE,   /* call */
    MO_IF_STATEMENT, /* MO_BRANCH children */
    MO_BRANCH,       /* condition or MO_LIST of nothing for else; MO_LIST of statements */
    MO_FOR,          /* MO_ITERATOR children, then MO_LIST */
    MO_ITERATOR,     /* text, child: range */
    MO_WHILE,        /* condition, MO_LIST */
    MO_BREAK,
    MO_RETURN,
    /* expressions */
    MO_REAL,
    MO_INTEGER,
    MO_BOOLEAN,
    MO_STRING,
    MO_REFERENCE, /* MO_PART children */
    MO_PART,      /* text; children are subscripts; op: 1 if brackets are written */
    MO_COLON,
    MO_END,
    MO_RANGE,         /* 2 or 3 children */
    MO_UNARY,         /* op, 1 child */
    MO_BINARY,        /* op, 2 children */
    MO_IF,            /* condition, then, else */
    MO_CALL,          /* text: dotted name; children are arguments */
    MO_NAMED,         /* text, child */
    MO_COMPREHENSION, /* expression, MO_ITERATOR children */
    MO_ARRAY,
    MO_MATRIX, /* MO_LIST children: rows */
    MO_TUPLE   /* expressions; an omitted one is an empty MO_LIST */
} mo_node_kind;

typedef enum mo_class_kind { MO_PACKAGE, MO_FUNCTION, MO_RECORD } mo_class_kind;

enum { MO_INPUT = 1, MO_OUTPUT = 2, MO_PROTECTED = 4, MO_CONSTANT = 8, MO_PARAMETER = 16 };

typedef enum mo_op {
    MO_ADD,
    MO_SUBTRACT,
    MO_MULTIPLY,
    MO_DIVIDE,
    MO_POWER,
    MO_ADD_EACH, /* the operators with a point */
    MO_SUBTRACT_EACH,
    MO_MULTIPLY_EACH,
    MO_DIVIDE_EACH,
    MO_POWER_EACH,
    MO_LESS,
    MO_LESS_EQUAL,
    MO_GREATER,
    MO_GREATER_EQUAL,
    MO_EQUAL,
    MO_NOT_EQUAL,
    MO_AND,
    MO_OR,
    MO_NOT,
    MO_NEGATE,
    MO_PLUS
} mo_op;

typedef struct mo_node {
    mo_node_kind kind;
    int op;
    mo_place place;
    int depth; /* of the tree below */
    const char *text, *type;
    double real;
    int64_t integer;
    struct mo_node *first, *last, *next; /* children, and the next child of the same parent */
    int32_t count;                       /* children */
} mo_node;

/* Parses the source into a list of classes; INVALID_ARGUMENT with a diagnosis, or
 * RESOURCE_EXHAUSTED above a limit. */
tb_status tb_mo_parse(mo_source *source, mo_node **classes);

/* Writes the first diagnosis, "FILE:LINE:COLUMN: ...", and marks the source as failed; later ones
 * are dropped. Returns INVALID_ARGUMENT (tb_mo_fail) or the given status. */
tb_status tb_mo_fail(mo_source *source, mo_place place, const char *format, ...) TB_PRINTF(3, 4);
tb_status tb_mo_fail_as(mo_source *source, tb_status status, mo_place place, const char *format,
                        ...) TB_PRINTF(4, 5);

/* Nodes for the grammar. A node without memory is a shared empty one and fails the source. */
mo_node *tb_mo_node(mo_source *source, mo_node_kind kind, mo_place place);
mo_node *tb_mo_node_of(mo_source *source, mo_node_kind kind, mo_place place, int op, mo_node *a,
                       mo_node *b);
/* Appends a child (NULL is ignored) and returns the parent. */
mo_node *tb_mo_push(mo_source *source, mo_node *parent, mo_node *child);
/* Moves the children of a list to another node. */
mo_node *tb_mo_adopt(mo_source *source, mo_node *parent, mo_node *list);
/* The child with an index, or NULL. */
mo_node *tb_mo_child(const mo_node *node, int32_t index);
/* A copy of bytes as a string in the source's arena; "" without memory. */
const char *tb_mo_text(mo_source *source, const char *bytes, size_t size);
/* Two names joined by a point. */
const char *tb_mo_dotted(mo_source *source, const char *a, const char *b, mo_place place);

#endif

/* Grammar of Modelica 3.6 (appendix A) as far as functions need it. Actions build the trees of
 * syntax.h. The grammar has no conflict. */
%code requires {
#include "modelica/syntax/lexer.h"
}

%define api.pure full
%define api.prefix {mo_yy}
%define api.location.type {mo_place}
%define parse.error custom
%define parse.lac full
%locations
%param { void *scanner }
%parse-param { mo_scan *scan }
%expect 0

%code {
#include <stdio.h>
#include <string.h>

/* a rule begins where its first symbol does, an empty one behind the symbol before it */
#define YYLLOC_DEFAULT(current, rhs, n) ((current) = (n) > 0 ? (rhs)[1] : (rhs)[0])

#define S scan->source
#define NEW(kind, place) tb_mo_node(S, (kind), (place))
#define OF(kind, place, op, a, b) tb_mo_node_of(S, (kind), (place), (op), (a), (b))
#define PUSH(parent, child) tb_mo_push(S, (parent), (child))
#define ADOPT(parent, list) tb_mo_adopt(S, (parent), (list))
}

%union {
    mo_node *node;
    int number;
}

%code {
int mo_yylex(MO_YYSTYPE *value, mo_place *location, void *scanner);
static void mo_yyerror(mo_place *location, void *scanner, mo_scan *scan, const char *text);
static mo_node *named(mo_scan *scan, mo_node *node, const char *text);
static mo_node *with_type(mo_scan *scan, mo_node *components, const mo_node *name, mo_node *sizes,
                          int prefix);
static mo_node *close_class(mo_scan *scan, mo_node *body, int kind, const mo_node *name,
                            const mo_node *end);
static mo_node *call_of(mo_scan *scan, mo_node *reference, mo_node *arguments);
static mo_node *comprehend(mo_scan *scan, mo_node *value, mo_node *iterators);
static mo_node *mark_protected(mo_scan *scan, mo_node *elements);
}

%token ALGORITHM "algorithm" AND "and" ANNOTATION "annotation" BREAK "break" CONSTANT "constant"
%token EACH "each" ELSE "else" ELSEIF "elseif" ENCAPSULATED "encapsulated" END "end"
%token FALSE_ "false" FINAL "final" FOR "for" FUNCTION "function" IF "if" IMPORT "import" IN "in"
%token INPUT "input" LOOP "loop" NOT "not" OR "or" OUTPUT "output" PACKAGE "package"
%token PARAMETER "parameter" PROTECTED "protected" PUBLIC "public" PURE "pure" RECORD "record"
%token RETURN "return" THEN "then" TRUE_ "true" TYPE "type" WHILE "while" WITHIN "within"
%token ASSIGN ":=" LESS_EQUAL "<=" GREATER_EQUAL ">=" EQUAL "==" NOT_EQUAL "<>"
%token ADD_EACH ".+" SUBTRACT_EACH ".-" MULTIPLY_EACH ".*" DIVIDE_EACH "./" POWER_EACH ".^"
%token <node> IDENT "name" STRING "text" INTEGER "integer number" REAL "real number"

%type <node> class composition elements element component_list component import_clause alias
%type <node> statements statement branches iterators iterator else_branch
%type <node> modification arguments argument annotation optional_annotation value optional_binding
%type <node> expression simple logical conjunction negation relation sum term factor primary
%type <node> reference part subscripts subscript_list subscript call_arguments positional named_list
%type <node> named_argument rows row tuple tuple_item name if_tail sizes array_items
%type <number> class_kind prefix relational additive multiplicative

%%

source:
    within classes
;
within: %empty | WITHIN ';' | WITHIN name ';' ;
classes:
    %empty               { scan->classes = NEW(MO_LIST, @$); }
|   classes class ';'    { PUSH(scan->classes, $2); }
|   classes FINAL class ';' { PUSH(scan->classes, $3); }
;

class:
    class_kind IDENT description composition END IDENT { $$ = close_class(scan, $4, $1, $2, $6); }
|   ENCAPSULATED class_kind IDENT description composition END IDENT { $$ = close_class(scan, $5, $2, $3, $7); }
;
class_kind:
    PACKAGE { $$ = MO_PACKAGE; } | FUNCTION { $$ = MO_FUNCTION; }
|   PURE FUNCTION { $$ = MO_FUNCTION; } | RECORD { $$ = MO_RECORD; }
;
description: %empty | strings ;
strings: STRING | strings '+' STRING ;

composition:
    elements                         { $$ = $1; }
|   composition PUBLIC elements      { $$ = ADOPT($1, $3); }
|   composition PROTECTED elements   { $$ = ADOPT($1, mark_protected(scan, $3)); }
|   composition ALGORITHM statements { $3->kind = S->failed ? $3->kind : MO_ALGORITHM; $$ = PUSH($1, $3); }
|   composition annotation ';'       { $$ = ADOPT($1, $2); }
;
elements:
    %empty                { $$ = NEW(MO_LIST, @$); }
|   elements element ';'  { $$ = ADOPT($1, $2); }
;
element:
    import_clause   { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   alias           { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   class           { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   FINAL class     { $$ = PUSH(NEW(MO_LIST, @$), $2); }
|   prefix name sizes component_list       { $$ = with_type(scan, $4, $2, $3, $1); }
|   FINAL prefix name sizes component_list { $$ = with_type(scan, $5, $3, $4, $2); }
;
import_clause:
    IMPORT IDENT '=' name description optional_annotation { $$ = named(scan, NEW(MO_IMPORT, @2), $2->text); if (!S->failed) $$->type = $4->text; }
|   IMPORT name description optional_annotation { $$ = NEW(MO_IMPORT, @2); if (!S->failed) $$->type = $2->text; }
;
alias:
    TYPE IDENT '=' name sizes modification description optional_annotation {
        $$ = PUSH(named(scan, NEW(MO_ALIAS, @2), $2->text), $5);
        if (!S->failed) $$->type = $4->text;
    }
;
prefix:
    %empty { $$ = 0; } | CONSTANT { $$ = MO_CONSTANT; } | PARAMETER { $$ = MO_PARAMETER; }
|   INPUT { $$ = MO_INPUT; } | OUTPUT { $$ = MO_OUTPUT; }
|   PARAMETER INPUT { $$ = MO_INPUT; } | CONSTANT INPUT { $$ = MO_INPUT; }
;
sizes:
    %empty             { $$ = NEW(MO_DIMENSIONS, @$); }
|   '[' subscripts ']' { $$ = ADOPT(NEW(MO_DIMENSIONS, @1), $2); }
;
component_list:
    component                    { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   component_list ',' component { $$ = PUSH($1, $3); }
;
component:
    IDENT sizes modification optional_binding description optional_annotation {
        $$ = PUSH(PUSH(named(scan, NEW(MO_COMPONENT, @1), $1->text), $2), $4);
    }
;
optional_binding:
    %empty             { $$ = NULL; }
|   '=' expression     { $$ = OF(MO_BINDING, @2, 0, $2, NULL); }
|   ASSIGN expression  { $$ = OF(MO_BINDING, @2, 0, $2, NULL); }
;
modification:
    %empty             { $$ = NULL; }
|   '(' ')'            { $$ = NULL; }
|   '(' arguments ')'  { $$ = $2; }
;
arguments:
    argument               { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   arguments ',' argument { $$ = PUSH($1, $3); }
;
argument:
    marks name modification value description optional_annotation {
        $$ = PUSH(named(scan, NEW(MO_ARGUMENT, @2), $2->text), $4);
    }
;
marks: %empty | EACH | FINAL | EACH FINAL ;
value:
    %empty         { $$ = NULL; }
|   '=' expression { $$ = $2; }
;
annotation:
    ANNOTATION '(' ')'           { $$ = NEW(MO_LIST, @1); }
|   ANNOTATION '(' arguments ')' { $$ = $3; }
;
optional_annotation: %empty { $$ = NULL; } | annotation ;

statements:
    %empty { $$ = NEW(MO_LIST, @$); }
|   statements statement description optional_annotation ';' { $$ = PUSH($1, $2); }
;
statement:
    reference ASSIGN expression          { $$ = OF(MO_ASSIGN, @1, 0, $1, $3); }
|   reference '(' call_arguments ')'     { $$ = OF(MO_CALL_ALONE, @1, 0, call_of(scan, $1, $3), NULL); }
|   '(' tuple ')' ASSIGN reference '(' call_arguments ')' { $$ = OF(MO_ASSIGN, @1, 0, $2, call_of(scan, $5, $7)); }
|   BREAK   { $$ = NEW(MO_BREAK, @1); }
|   RETURN  { $$ = NEW(MO_RETURN, @1); }
|   IF expression THEN statements branches else_branch END IF {
        $$ = PUSH(NEW(MO_IF_STATEMENT, @1), OF(MO_BRANCH, @1, 0, $2, $4));
        ADOPT($$, $5);
        PUSH($$, $6);
    }
|   FOR iterators LOOP statements END FOR { $$ = PUSH(ADOPT(NEW(MO_FOR, @1), $2), $4); }
|   WHILE expression LOOP statements END WHILE { $$ = OF(MO_WHILE, @1, 0, $2, $4); }
;
branches:
    %empty { $$ = NEW(MO_LIST, @$); }
|   branches ELSEIF expression THEN statements { $$ = PUSH($1, OF(MO_BRANCH, @2, 0, $3, $5)); }
;
else_branch:
    %empty          { $$ = NULL; }
|   ELSE statements { $$ = OF(MO_BRANCH, @1, 0, NEW(MO_LIST, @1), $2); }
;
iterators:
    iterator               { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   iterators ',' iterator { $$ = PUSH($1, $3); }
;
iterator:
    IDENT               { $$ = named(scan, NEW(MO_ITERATOR, @1), $1->text); }
|   IDENT IN expression { $$ = PUSH(named(scan, NEW(MO_ITERATOR, @1), $1->text), $3); }
;

expression:
    simple
|   IF expression THEN expression if_tail { $$ = PUSH(OF(MO_IF, @1, 0, $2, $4), $5); }
;
if_tail:
    ELSE expression { $$ = $2; }
|   ELSEIF expression THEN expression if_tail { $$ = PUSH(OF(MO_IF, @1, 0, $2, $4), $5); }
;
simple:
    logical
|   logical ':' logical             { $$ = OF(MO_RANGE, @1, 0, $1, $3); }
|   logical ':' logical ':' logical { $$ = PUSH(OF(MO_RANGE, @1, 0, $1, $3), $5); }
;
logical: conjunction | logical OR conjunction { $$ = OF(MO_BINARY, @2, MO_OR, $1, $3); } ;
conjunction: negation | conjunction AND negation { $$ = OF(MO_BINARY, @2, MO_AND, $1, $3); } ;
negation: relation | NOT relation { $$ = OF(MO_UNARY, @1, MO_NOT, $2, NULL); } ;
relation: sum | sum relational sum { $$ = OF(MO_BINARY, @2, $2, $1, $3); } ;
relational:
    '<' { $$ = MO_LESS; } | LESS_EQUAL { $$ = MO_LESS_EQUAL; } | '>' { $$ = MO_GREATER; }
|   GREATER_EQUAL { $$ = MO_GREATER_EQUAL; } | EQUAL { $$ = MO_EQUAL; } | NOT_EQUAL { $$ = MO_NOT_EQUAL; }
;
sum:
    term
|   additive term     { $$ = OF(MO_UNARY, @1, $1 == MO_SUBTRACT || $1 == MO_SUBTRACT_EACH ? MO_NEGATE : MO_PLUS, $2, NULL); }
|   sum additive term { $$ = OF(MO_BINARY, @2, $2, $1, $3); }
;
additive:
    '+' { $$ = MO_ADD; } | '-' { $$ = MO_SUBTRACT; }
|   ADD_EACH { $$ = MO_ADD_EACH; } | SUBTRACT_EACH { $$ = MO_SUBTRACT_EACH; }
;
term: factor | term multiplicative factor { $$ = OF(MO_BINARY, @2, $2, $1, $3); } ;
multiplicative:
    '*' { $$ = MO_MULTIPLY; } | '/' { $$ = MO_DIVIDE; }
|   MULTIPLY_EACH { $$ = MO_MULTIPLY_EACH; } | DIVIDE_EACH { $$ = MO_DIVIDE_EACH; }
;
factor:
    primary
|   primary '^' primary        { $$ = OF(MO_BINARY, @2, MO_POWER, $1, $3); }
|   primary POWER_EACH primary { $$ = OF(MO_BINARY, @2, MO_POWER_EACH, $1, $3); }
;
primary:
    INTEGER | REAL | STRING
|   TRUE_  { $$ = NEW(MO_BOOLEAN, @1); if (!S->failed) $$->integer = 1; }
|   FALSE_ { $$ = NEW(MO_BOOLEAN, @1); }
|   END    { $$ = NEW(MO_END, @1); }
|   reference
|   reference '(' call_arguments ')' { $$ = call_of(scan, $1, $3); }
|   '(' tuple ')'   { $$ = $2->count == 1 ? $2->first : $2; }
|   '[' rows ']'    { $$ = $2; }
|   '{' array_items '}' { $$ = $2; }
|   '{' expression FOR iterators '}' { $$ = OF(MO_ARRAY, @1, 0, comprehend(scan, $2, $4), NULL); }
;
array_items:
    expression                   { $$ = OF(MO_ARRAY, @1, 0, $1, NULL); }
|   array_items ',' expression   { $$ = PUSH($1, $3); }
;
tuple:
    tuple_item           { $$ = PUSH(NEW(MO_TUPLE, @$), $1); }
|   tuple ',' tuple_item { $$ = PUSH($1, $3); }
;
tuple_item: %empty { $$ = NEW(MO_LIST, @$); } | expression ;
rows:
    row          { $$ = PUSH(NEW(MO_MATRIX, @$), $1); }
|   rows ';' row { $$ = PUSH($1, $3); }
;
row:
    expression         { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   row ',' expression { $$ = PUSH($1, $3); }
;
name:
    IDENT          { $$ = $1; }
|   '.' IDENT      { $$ = $2; }
|   name '.' IDENT { $$ = named(scan, NEW(MO_PART, @1), tb_mo_dotted(S, $1->text, $3->text, @3)); }
;
reference:
    part               { $$ = PUSH(NEW(MO_REFERENCE, @1), $1); }
|   '.' part           { $$ = PUSH(NEW(MO_REFERENCE, @2), $2); }
|   reference '.' part { $$ = PUSH($1, $3); }
;
part:
    IDENT                    { $$ = $1; }
|   IDENT '[' subscripts ']' { $$ = ADOPT($1, $3); if (!S->failed) $$->op = 1; }
;
subscripts: subscript_list ;
subscript_list:
    subscript                    { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   subscript_list ',' subscript { $$ = PUSH($1, $3); }
;
subscript: ':' { $$ = NEW(MO_COLON, @1); } | expression ;
call_arguments:
    %empty                    { $$ = NEW(MO_LIST, @$); }
|   positional                { $$ = $1; }
|   positional ',' named_list { $$ = ADOPT($1, $3); }
|   named_list                { $$ = $1; }
|   expression FOR iterators  { $$ = PUSH(NEW(MO_LIST, @$), comprehend(scan, $1, $3)); }
;
positional:
    expression                { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   positional ',' expression { $$ = PUSH($1, $3); }
;
named_list:
    named_argument                { $$ = PUSH(NEW(MO_LIST, @$), $1); }
|   named_list ',' named_argument { $$ = PUSH($1, $3); }
;
named_argument: IDENT '=' expression { $$ = PUSH(named(scan, NEW(MO_NAMED, @1), $1->text), $3); } ;

%%

static mo_node *named(mo_scan *scan, mo_node *node, const char *text)
{
    if (!S->failed) node->text = text;
    return node;
}

static mo_node *with_type(mo_scan *scan, mo_node *components, const mo_node *name, mo_node *sizes,
                          int prefix)
{
    for (mo_node *c = components->first; c != NULL && !S->failed; c = c->next) {
        c->type = name->text;
        c->op = prefix;
        /* Real[3] x[2] has 2 rows of 3; both brackets on one component read best as one */
        if (sizes->count > 0 && c->first->count > 0)
            tb_mo_fail_as(S, TB_UNSUPPORTED, c->place,
                          "sizes behind the type and behind '%s' are left out: write them all "
                          "behind the name", c->text);
        else if (sizes->count > 0) {
            mo_node *own = NEW(MO_DIMENSIONS, sizes->place);
            if (S->failed) break;
            /* the components share the sizes' children */
            *own = *sizes;
            own->next = c->first->next;
            if (c->last == c->first) c->last = own;
            c->first = own;
        }
    }
    return components;
}

static mo_node *mark_protected(mo_scan *scan, mo_node *elements)
{
    for (mo_node *c = elements->first; c != NULL && !S->failed; c = c->next)
        if (c->kind == MO_COMPONENT) {
            if (c->op & (MO_INPUT | MO_OUTPUT))
                tb_mo_fail(S, c->place, "'%s' is an input or output and must be public", c->text);
            c->op |= MO_PROTECTED;
        }
    return elements;
}

static mo_node *close_class(mo_scan *scan, mo_node *body, int kind, const mo_node *name,
                            const mo_node *end)
{
    if (S->failed) return body;
    body->kind = MO_CLASS;
    body->op = kind;
    body->text = name->text;
    body->place = name->place;
    if (strcmp(name->text, end->text) != 0)
        tb_mo_fail(S, end->place, "'end %s' closes '%s', expected 'end %s'", end->text, name->text,
                   name->text);
    return body;
}

static mo_node *call_of(mo_scan *scan, mo_node *reference, mo_node *arguments)
{
    mo_node *call = NEW(MO_CALL, reference->place);
    if (S->failed) return call;
    const char *text = NULL;
    for (const mo_node *p = reference->first; p != NULL; p = p->next) {
        if (p->op) tb_mo_fail(S, p->place, "'%s' is called with subscripts", p->text);
        text = text == NULL ? p->text : tb_mo_dotted(S, text, p->text, p->place);
    }
    call->text = text;
    return ADOPT(call, arguments);
}

static mo_node *comprehend(mo_scan *scan, mo_node *value, mo_node *iterators)
{
    return ADOPT(OF(MO_COMPREHENSION, value->place, 0, value, NULL), iterators);
}

static void mo_yyerror(mo_place *location, void *scanner, mo_scan *scan, const char *text)
{
    (void)scanner;
    tb_mo_fail(S, *location, "%s", text);
}

/* "unexpected 'end', expected ';' or 'then'": a short list of allowed tokens, or the kind. */
static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, mo_scan *scan)
{
    enum { MOST = 5, ALL = 80 };
    (void)scanner;
    yysymbol_kind_t expected[ALL];
    const yysymbol_kind_t found = yypcontext_token(context);
    const int count = yypcontext_expected_tokens(context, expected, ALL);
    char text[400];
    size_t used = 0;
    const char *name = found == YYSYMBOL_YYEMPTY ? "nothing" : yysymbol_name(found);
    const char *quote = name[0] == '\'' || found == YYSYMBOL_YYEOF || found == YYSYMBOL_IDENT ? "" : "'";
    if (found == YYSYMBOL_YYEOF) name = "the end of the source";
    used += (size_t)snprintf(text, sizeof text, "unexpected %s%s%s", quote, name, quote);
    bool operand = false;
    for (int i = 0; i < count; i++) operand = operand || expected[i] == YYSYMBOL_REAL;
    if (count > MOST || count <= 0) {
        snprintf(text + used, sizeof text - used, ", expected %s",
                 operand ? "an expression" : "an operator, a delimiter or a keyword");
        bool semicolon = false, end = false;
        for (int i = 0; i < count; i++) {
            semicolon = semicolon || strcmp(yysymbol_name(expected[i]), "';'") == 0;
            end = end || expected[i] == YYSYMBOL_END;
        }
        if (!operand && semicolon) snprintf(text + used, sizeof text - used, ", expected ';' or an operator");
        if (!operand && end) snprintf(text + used, sizeof text - used, ", expected a declaration, a statement or 'end'");
    } else {
        for (int i = 0; i < count && used < sizeof text; i++) {
            const char *want = yysymbol_name(expected[i]);
            const char *mark = want[0] == '\'' || expected[i] == YYSYMBOL_IDENT ? "" : "'";
            if (expected[i] == YYSYMBOL_YYEOF) { want = "the end of the source"; mark = ""; }
            const char *join = i == 0 ? ", expected " : i + 1 == count ? " or " : ", ";
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s", join, mark, want, mark);
        }
    }
    const mo_place *where = yypcontext_location(context);
    tb_mo_fail(S, *where, "%s", text);
    return 0;
}

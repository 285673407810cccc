/* A call while it runs: arrays, limits and the way out of a failure.
 *
 * The interpreter, generated C and the card's host side share these types. Generated C knows the
 * first members of mo_array and mo_run by a declaration of its own (emit_c.c). */
#ifndef TB_MODELICA_RUN_H
#define TB_MODELICA_RUN_H

#include <setjmp.h>

#include "modelica/ir.h"

enum { MO_ON_HOST = 1, MO_ON_CARD = 2 };

/* A list holds the memory of a run, so that a failure also frees arrays of unwound calls. */
typedef struct mo_block {
    struct mo_block *previous, *next;
    int64_t bytes, unused; /* keeps the alignment of 16 */
} mo_block;

typedef struct mo_array {
    void *data; /* host memory, or NULL: none yet */
    int64_t size[MO_RANK];
    void *card;    /* the card's copy, or NULL */
    int32_t where; /* MO_ON_HOST, MO_ON_CARD: copies that are up to date */
    mo_base base;
    int32_t rank;
    bool borrowed; /* data belongs to the caller */
    bool zero;     /* every element is 0: the card needs no copy */
    bool kept;     /* card belongs to a kept array */
    int64_t bytes; /* of data */
} mo_array;

typedef struct mo_run {
    /* members that generated C knows, in this order */
    int64_t budget; /* loop rounds until the next poll */
    int64_t depth;  /* of calls */
    void (*poll)(struct mo_run *run);
    void (*fail)(struct mo_run *run, int kind, int64_t place, int64_t what, int64_t a, int64_t b);
    void (*allocate)(struct mo_run *run, mo_array *array, int64_t place);
    void (*move)(struct mo_run *run, mo_array *to, mo_array *from);
    void (*copy)(struct mo_run *run, mo_array *to, const mo_array *from, int64_t place);
    void (*close)(struct mo_run *run, mo_array *array);

    const mo_program *program;
    const mo_function *function; /* being interpreted, for messages */
    const tb_function_options *options;
    double deadline; /* s, of the monotonic clock; 0: none */
    int64_t bytes;   /* of all arrays */
    mo_block *blocks;
    tb_status status;
    tb_error *error;
    jmp_buf escape;
    struct mo_card *card; /* NULL: no card */
    tb_function_timing timing;
} mo_run;

enum { MO_DEEPEST_CALL = 40, MO_POLL_ROUNDS = 1 << 20 };

double tb_mo_seconds(void);
void tb_mo_run_init(mo_run *run, const mo_program *program, const tb_function_options *options,
                    tb_error *error);
/* Frees every array of the run. */
void tb_mo_run_end(mo_run *run);

/* Ends the call with a status: does not return. */
void tb_mo_run_escape(mo_run *run, tb_status status, mo_place place, const char *format, ...)
    TB_PRINTF(4, 5) __attribute__((noreturn));

/* Ends the call with a failure of the card; what, a and b as in MO_FAIL. */
void tb_mo_fail_kind(mo_run *run, int kind, mo_place place, int64_t what, int64_t a, int64_t b)
    __attribute__((noreturn));
/* Zeroed memory of the run, or NULL above its limit. */
void *tb_mo_take(mo_run *run, int64_t bytes);
void tb_mo_give_back(mo_run *run, void *memory);
void tb_mo_close_array(mo_run *run, mo_array *array);
/* array->size holds the sizes: gives it that many zeros. In a call on the card the zeros get memory
 * of the host when the host first needs it. */
void tb_mo_allocate(mo_run *run, mo_array *array, int64_t place);
/* Gives an array without memory of the host its zeros. */
void tb_mo_need_host(mo_run *run, mo_array *array);
size_t tb_mo_element_bytes(mo_base base);

/* Interprets a function; arguments are in the frame's variables. See interpret.c. */
typedef union mo_slot {
    double real;
    int64_t integer; /* and Boolean */
    mo_array *array;
} mo_slot;

typedef struct mo_frame {
    const mo_function *function;
    mo_slot *slot;
} mo_frame;

/* Slots of a function, and behind them its arrays and its sums by trees. */
mo_slot *tb_mo_open_frame(mo_run *run, const mo_function *function);
void tb_mo_close_frame(mo_run *run, const mo_function *function, mo_slot *slot);
/* The sum that a statement is a step of. */
struct mo_tree;
struct mo_tree *tb_mo_tree_of(const mo_frame *frame, const mo_s *s);
/* Fills the outputs of a frame whose inputs are set. Failures escape. */
void tb_mo_interpret(mo_run *run, mo_frame *frame);
/* Rounds of a loop that counts up by one, on the host but for the kernels inside. */
void tb_mo_interpret_rounds(mo_run *run, mo_frame *frame, const mo_s *loop, int64_t from,
                            int64_t to);
/* Integer or Boolean expressions of a frame, for launches. */
int64_t tb_mo_evaluate_integer(mo_run *run, mo_frame *frame, const mo_x *x);

/* ---- the card's side, in modelica/card ---- */

/* Runs a loop on the card if it is a kernel; false: interpret it. */
bool tb_mo_card_loop(mo_run *run, mo_frame *frame, const mo_s *loop);
/* Brings an array's content to the host. */
void tb_mo_card_fetch(mo_run *run, mo_array *array);
/* The same into memory[array->bytes] of the caller. */
void tb_mo_card_read(mo_run *run, mo_array *array, void *memory);
/* Copies an array on the card; false: the host copies. */
bool tb_mo_card_copy(mo_run *run, mo_array *to, mo_array *from, int64_t place);
/* Waits for the kernels; a failure of one ends the call. */
void tb_mo_card_finish(mo_run *run);
/* Frees the card's copy. */
void tb_mo_card_free(mo_run *run, mo_array *array);
/* The first element of a Real array on the card that is not finite, or -1; false: this function has no
 * kernels, so the host looks. */
bool tb_mo_card_first_infinite(mo_run *run, const mo_array *array, int64_t *index);
/* Takes the memory of the card from an array of the run, which the run then does not free. */
void *tb_mo_card_take(mo_run *run, mo_array *array);

/* ---- kept arrays, in modelica/card/kept.c ---- */

/* Lends a kept array to an input, on the side where the call runs. */
void tb_mo_lend_kept(mo_run *run, tb_function_array *kept, mo_array *array);
/* Makes a kept array of an output; the card's memory goes with it. NULL without memory. */
tb_function_array *tb_mo_keep_output(mo_run *run, mo_array *array);
/* Memory that free() takes back. A large output is written once: huge pages spare its page faults. */
void *tb_mo_output_memory(size_t bytes);
/* Copies an array, from the side that has it, to memory of the caller. */
void tb_mo_get_array(mo_run *run, mo_array *array, void *to);
/* The first element that is not finite, or -1. */
int64_t tb_mo_first_infinite(const double *x, int64_t count);

#endif

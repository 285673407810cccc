/* Protobuf views of library data: arrays, certificates, contacts, states, options.
 *
 * Responses are built without a copy where the memory already has the wire's layout: message
 * structs in a scratch arena point at the numbers of a state. They are valid until the state or the
 * arena changes; td_call_send packs at once. Requests are decoded into the library's types, and
 * every error names the field. */
#ifndef SERVER_WIRE_H
#define SERVER_WIRE_H

#include "tribo.h"

#include "tribo/v1/common.pb-c.h"
#include "tribo/v1/simulation.pb-c.h"

/* ---- scratch ---- */

struct td_wire_block;

/* Memory of one answer. Zeroed at first; used again after a reset. When memory runs out, `failed`
 * is set and takers give NULL, so a builder checks once at its end. */
typedef struct td_wire {
    struct td_wire_block *blocks;
    bool failed;
} td_wire;

void *td_wire_take(td_wire *, size_t bytes); /* zeroed, 16-byte aligned; NULL sets `failed` */
void td_wire_reset(td_wire *);               /* keeps one block for the next answer */
void td_wire_destroy(td_wire *);

/* ---- answers ---- */

/* Views of `rows` x `columns` numbers (columns 0: a vector of `rows`). The data is borrowed. */
Tribo__V1__Array *td_wire_array(td_wire *, Tribo__V1__DataType, const void *data, int64_t rows,
                                int64_t columns);
/* Gives an array (NULL is fine) the shape worlds x rows x columns. NULL if out of memory. */
Tribo__V1__Array *td_wire_cube(td_wire *, Tribo__V1__Array *, int64_t worlds, int64_t rows,
                               int64_t columns);

/* Fills a message that lives as long as the certificate. */
void td_wire_certificate(const tb_certificate *, Tribo__V1__Certificate *);
/* Pointers to `count` messages, in the form of a repeated field. */
Tribo__V1__Certificate **td_wire_certificates(td_wire *, const tb_certificate *, int32_t count);

/* The same as columns, a row each. */
Tribo__V1__CertificateArrays *
td_wire_certificate_arrays(td_wire *, const tb_certificate *const *certificates, int32_t count);

/* Both of the last step of each world. */
Tribo__V1__Certificate **td_wire_last_certificates(td_wire *, tb_state *const *states,
                                                   int32_t worlds);
Tribo__V1__CertificateArrays *td_wire_last_certificate_arrays(td_wire *, tb_state *const *states,
                                                              int32_t worlds);

Tribo__V1__Outcome td_wire_outcome(tb_status);

/* The parts of a state that an answer holds. */
typedef struct td_wire_want {
    bool state, controls, contacts, bodies, poses, forces, arrays, pairs, sensors, surfaces,
        evaluations;
    Tribo__V1__DataType dtype; /* FLOAT64 or FLOAT32 */
    double dt;                 /* s, of a step: a force is an impulse over it */
} td_wire_want;

/* Of a StepReturn (NULL: nothing wanted); dt stays 0. INVALID_ARGUMENT for another dtype, with `field`. */
tb_status td_wire_read_want(const Tribo__V1__StepReturn *, td_wire_want *, tb_error *);

/* The worlds `states[0..worlds)` as one message; time and steps always. NULL if out of memory. */
Tribo__V1__State *td_wire_state(td_wire *, tb_state *const *states, int32_t worlds, td_wire_want);
/* The contacts of each world's last step. */
Tribo__V1__Contacts **td_wire_contacts(td_wire *, tb_state *const *states, int32_t worlds,
                                       td_wire_want);
/* The evaluations that each world keeps of its last step; and their approximate bytes in a world, with
 * `number` bytes a number. */
Tribo__V1__Evaluations **td_wire_evaluations(td_wire *, tb_state *const *states, int32_t worlds,
                                             Tribo__V1__DataType);
size_t td_wire_evaluations_bytes(const tb_state *, size_t number);
Tribo__V1__ContactStatus td_wire_contact_status(tb_contact_status);
/* One side of a pair of contacts. */
typedef struct td_wire_side {
    bool any;
    int32_t body, shape; /* -1: not that kind */
} td_wire_side;

typedef struct td_wire_pair {
    td_wire_side a, b;
} td_wire_pair;

enum { TD_WIRE_PAIR_NUMBERS = 6 };

/* The pairs of a StepReturn (NULL: none) in the model, in the arena. NOT_FOUND and INVALID_ARGUMENT
 * name the field. */
tb_status td_wire_find_pairs(td_wire *, const tb_model *, const Tribo__V1__StepReturn *,
                             const td_wire_pair **, int32_t *count, tb_error *);
/* State.pairs; `dt` (s) of the last step. NULL if out of memory. */
Tribo__V1__Array *td_wire_pair_contacts(td_wire *, tb_state *const *states, int32_t worlds,
                                        const td_wire_pair *, int32_t count, double dt);

/* Approximate bytes of a world in an answer with `want` and a certificate. */
size_t td_wire_world_bytes(const tb_state *, td_wire_want);

/* ---- requests ---- */

/* Numbers for each world: row i begins at numbers + i * stride. */
typedef struct td_wire_rows {
    const double *numbers; /* NULL: the field was absent */
    int64_t stride;        /* 0: the same row for all */
} td_wire_rows;

/* Reads an Array of `columns` or `rows` x `columns` FLOAT64 or FLOAT32 elements, all finite.
 * Borrows the array's data where it can, else takes from the arena. An absent one gives no numbers.
 * INVALID_ARGUMENT names `field`, its shape, size or element at fault. */
tb_status td_wire_read_rows(td_wire *, const Tribo__V1__Array *, const char *field, int64_t rows,
                            int64_t columns, td_wire_rows *, tb_error *);

/* The same of `columns` numbers for each of `items` things: items x columns, or rows x items x
 * columns. */
tb_status td_wire_read_tables(td_wire *, const Tribo__V1__Array *, const char *field, int64_t rows,
                              int64_t items, int64_t columns, td_wire_rows *, tb_error *);

/* Reads an Array of `worlds` UINT8 elements, which is borrowed; NULL if it is absent: all. */
tb_status td_wire_read_mask(const Tribo__V1__Array *, const char *field, int32_t worlds,
                            const uint8_t **mask, tb_error *);
static inline bool td_wire_masked_in(const uint8_t *mask, int32_t world)
{
    return mask == NULL || mask[world] != 0;
}
static inline const double *td_wire_row(td_wire_rows rows, int32_t world)
{
    return rows.numbers + (size_t)world * (size_t)rows.stride;
}

/* INVALID_ARGUMENT naming `field` for a policy that this server does not know. */
tb_status td_wire_read_overlaps(Tribo__V1__OverlapPolicy, const char *field, tb_overlap_policy *,
                                tb_error *);
/* The pairs as messages; names are the model's. NULL, and `wire` failed, without memory. */
Tribo__V1__Overlap **td_wire_overlaps(td_wire *, const tb_model *, const tb_overlap *,
                                      int32_t count);

/* Options of a request over the defaults: a zero field keeps its default. `solver` points at the
 * library's own name. INVALID_ARGUMENT or NOT_FOUND names the field below `field` ("options"). */
tb_status td_wire_read_step_options(const Tribo__V1__StepOptions *, const char *field,
                                    tb_step_options *, tb_error *);
tb_status td_wire_read_solve_options(const Tribo__V1__SolveOptions *, const char *field,
                                     tb_solve_options *, tb_error *);

#endif

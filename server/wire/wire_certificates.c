/* Certificates of many worlds as columns: see wire.h. */
#include "wire/wire.h"

#define INT32   TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32
#define INT64   TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64
#define UINT8   TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8
#define FLOAT64 TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64

/* column of the message, its element's type here and on the wire, its value in a certificate */
#define COLUMNS(X)                                                                                 \
    X(outcomes, uint8_t, UINT8, (uint8_t)td_wire_outcome(c->status))                               \
    X(steps, int64_t, INT64, c->step)                                                              \
    X(times, double, FLOAT64, c->time)                                                             \
    X(residuals, double, FLOAT64, c->residual)                                                     \
    X(penetrations, double, FLOAT64, c->penetration)                                               \
    X(cone_errors, double, FLOAT64, c->cone_error)                                                 \
    X(complementarity_errors, double, FLOAT64, c->complementarity_error)                           \
    X(closure_errors, double, FLOAT64, c->closure_error)                                           \
    X(energies, double, FLOAT64, c->energy)                                                        \
    X(energy_changes, double, FLOAT64, c->energy_change)                                           \
    X(contacts, int32_t, INT32, c->contacts)                                                       \
    X(iterations, int32_t, INT32, c->iterations)                                                   \
    X(faults, int32_t, INT32, c->faults)

Tribo__V1__CertificateArrays *
td_wire_certificate_arrays(td_wire *wire, const tb_certificate *const *certificates, int32_t count)
{
    Tribo__V1__CertificateArrays *out = td_wire_take(wire, sizeof *out);
    if (out == NULL) return NULL;
    tribo__v1__certificate_arrays__init(out);
#define FILL(column, type, dtype, value)                                                           \
    {                                                                                              \
        type *numbers = td_wire_take(wire, (size_t)count * sizeof *numbers);                       \
        if (numbers == NULL) return NULL;                                                          \
        for (int32_t i = 0; i < count; i++) {                                                      \
            const tb_certificate *c = certificates[i];                                             \
            numbers[i] = value;                                                                    \
        }                                                                                          \
        out->column = td_wire_array(wire, dtype, numbers, count, 0);                               \
    }
    COLUMNS(FILL)
#undef FILL
    return out;
}

Tribo__V1__CertificateArrays *
td_wire_last_certificate_arrays(td_wire *wire, tb_state *const *states, int32_t worlds)
{
    const tb_certificate **rows = td_wire_take(wire, (size_t)worlds * sizeof *rows);
    if (rows == NULL) return NULL;
    for (int32_t w = 0; w < worlds; w++) rows[w] = tb_state_certificate(states[w]);
    return td_wire_certificate_arrays(wire, rows, worlds);
}

Tribo__V1__Certificate **td_wire_last_certificates(td_wire *wire, tb_state *const *states,
                                                   int32_t worlds)
{
    Tribo__V1__Certificate **pointers = td_wire_take(wire, (size_t)worlds * sizeof *pointers);
    Tribo__V1__Certificate *messages = td_wire_take(wire, (size_t)worlds * sizeof *messages);
    if (pointers == NULL || messages == NULL) return NULL;
    for (int32_t w = 0; w < worlds; w++) {
        td_wire_certificate(tb_state_certificate(states[w]), &messages[w]);
        pointers[w] = &messages[w];
    }
    return pointers;
}

/* A call on the card: its loaded kernels and its device memory. */
#ifndef TB_MODELICA_CALL_H
#define TB_MODELICA_CALL_H

#include "modelica/card/kernels.h"
#include "modelica/function.h"

/* The kernels of a product by tiles, as tb_mo_tiles lists them; NULL for those that the card lacks. */
typedef struct mo_tiled {
    cu_handle handle[MO_TILES];
} mo_tiled;

/* Kernels of a function and of those that it calls; by the program's index, or NULL. */
typedef struct mo_loaded {
    int32_t function, count;
    mo_kernel **kernels;
    cu_handle module, **handle; /* of kernels, and of sweeps */
    cu_handle join[MO_JOINS];   /* of the parts of reductions */
    cu_handle finite;           /* of the search for numbers that are not finite */
    mo_tiled **tiled;
    struct mo_loaded *next;
} mo_loaded;

struct mo_card_program {
    mo_driver *driver;
    mo_loaded *functions;
};

/* A call's view of the card. */
struct mo_card {
    mo_driver *driver;
    const mo_program *program;
    mo_loaded *functions;
    int64_t launches;    /* since the last check */
    cu_pointer *pointer; /* memory that the call holds */
    int32_t pointers, capacity;
    bool used;
};

#endif

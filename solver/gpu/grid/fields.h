/* Fields of soft bodies on a card: the structures that the host and the kernels share. */
#ifndef TB_GPU_SOFT_FIELDS_H
#define TB_GPU_SOFT_FIELDS_H

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "gpu/device/device.h"
#include "grid/card/fields.h"
#include "grid/nodes/projections.h"
#include "grid/nodes/sweeps.h"
#include "tribo_qp.h"

enum { TB_GPU_SOFT_THREADS = 256, TB_GPU_SOFT_BLOCKS = 4 /* of a processor */ };
enum { TB_GPU_SOFT_MEETING = 128 /* bytes */ };

/* Fields that a pass of extrapolation extends. */
enum { TB_GPU_SOFT_X = 1, TB_GPU_SOFT_V = 2 };

/* Passes over nodes or bodies. */
typedef enum tb_gpu_soft_pass {
    TB_GPU_SOFT_TAKE,
    TB_GPU_SOFT_ACCELERATE,
    TB_GPU_SOFT_HOLD,
    TB_GPU_SOFT_SLOPES,
    TB_GPU_SOFT_EXTEND, /* by one layer */
    TB_GPU_SOFT_ADVECT,
    TB_GPU_SOFT_ADOPT,
    TB_GPU_SOFT_SCALE,
    TB_GPU_SOFT_CLEAR,
    TB_GPU_SOFT_LAYER,
    TB_GPU_SOFT_REPAIR,
    /* of sums and what follows from them, a body a block */
    TB_GPU_SOFT_END_STRESS,
    TB_GPU_SOFT_END_MOMENTUM,
    TB_GPU_SOFT_END_WAS,
    TB_GPU_SOFT_END_MASSES,
    TB_GPU_SOFT_END_BOX,
    TB_GPU_SOFT_END_HELD,
    TB_GPU_SOFT_END_REPAIR
} tb_gpu_soft_pass;

/* Working memory of a body on the card. Forces of cells and results of transport are never needed at the
 * same time. */
typedef struct tb_gpu_soft_scratch {
    double *cell_force;          /* nodes x 24 */
    double *slope_X, *slope_v;   /* nodes x 9 */
    tb_soft_stages stages;       /* nodes x 3 each */
    tb_soft_sums *runs;          /* nodes[2] x nodes[1] x runs of a row */
    tb_soft_sums *rows, *planes; /* nodes[2] x nodes[1]; nodes[2] */
    int32_t lower[3], upper[3];  /* box of the nodes with mass */
} tb_gpu_soft_scratch;

/* Rows of J and T of a cell in contact, by the nodes and halves of rigid bodies that it moves. */
typedef struct tb_gpu_soft_rows {
    int32_t count;
    int32_t rigid;                      /* rigid body that the last two entries are of, or -1 */
    uint64_t key[TB_SOFT_MOST_ENTRIES]; /* ascending, as of tb_soft_entry */
    double inverse_mass[TB_SOFT_MOST_ENTRIES]; /* 1/kg */
    double weight[TB_SOFT_MOST_ENTRIES];       /* with the sign of the side; 1 of a half */
    double row[3][TB_SOFT_MOST_ENTRIES][3];    /* of the normal and of the tangents */
    double map[2][9];                          /* of the halves of the rigid body */
    double mobility; /* 1/kg, sum of the cell's three diagonal entries of J M^-1 J' and T M^-1 T' */
    double diagonal; /* 1/kg, of the normal */
    bool moves;      /* tb_soft_moves */
} tb_gpu_soft_rows;

/* ---- projections ---- */

/* Passes over contacts, a contact a lane; over places of contacts; by one block; and over rigid bodies, a body
 * a block. */
typedef enum tb_gpu_soft_stage {
    TB_GPU_SOFT_KEYS,
    TB_GPU_SOFT_NUMBER, /* found cells that an impulse can change get their places by their keys */
    TB_GPU_SOFT_RECALL, /* contacts in order, with the impulses of the substep before */
    TB_GPU_SOFT_CELLS,
    TB_GPU_SOFT_PLACES,  /* of places: owners, the next contact with the place, reach of (C) */
    TB_GPU_SOFT_COLOURS, /* of one block */
    TB_GPU_SOFT_ORDER,   /* positions in a colour by the contacts' numbers */
    TB_GPU_SOFT_SWEPT,   /* velocities without impulses, and what sweeps need */
    TB_GPU_SOFT_PUSHED,
    TB_GPU_SOFT_SUM, /* of one block: adds up parts */
    TB_GPU_SOFT_SLOWER,
    TB_GPU_SOFT_BACK,   /* impulses and sets from the sweeps */
    TB_GPU_SOFT_OPEN,   /* rows and the first set of a program */
    TB_GPU_SOFT_GATHER, /* of places: impulses on nodes */
    TB_GPU_SOFT_HALVES, /* of rigid bodies: impulses on their halves */
    TB_GPU_SOFT_FORCE,  /* the right sides of a program */
    TB_GPU_SOFT_ANSWER, /* impulses and sets from a program */
    TB_GPU_SOFT_CHOOSE, /* of one block: cells of (F) */
    TB_GPU_SOFT_REACH,  /* of places: reach of (F) */
    TB_GPU_SOFT_TEST,
    TB_GPU_SOFT_SETS, /* counts active rows */
    TB_GPU_SOFT_APPLY,
    TB_GPU_SOFT_WRENCHES /* of rigid bodies: impulses by contacts */
} tb_gpu_soft_stage;

/* Columns of the parts of a contact: sums, and from TB_GPU_SOFT_SUMMED on maxima. */
enum { TB_GPU_SOFT_SUMMED = 5, TB_GPU_SOFT_PARTS = 7 };
/* Numbers of a rigid body in answers[]: y and its wrench. */
enum { TB_GPU_SOFT_ANSWERS = 2 * TB_SOFT_TWIST };

/* Counts and sums of the contacts of a substep that are copied to the host. */
typedef struct tb_gpu_soft_counts {
    int32_t contacts; /* found cells that an impulse can change */
    int32_t
        reach[2];  /* most by which the numbers of two contacts of a place differ, in (C) and (F) */
    int32_t ranks; /* contacts of one cell, less one */
    int32_t colours;
    int32_t slower; /* overlaps are pushed apart more slowly, and sweeps begin again */
    int32_t sliding,
        others; /* cells of (F), and how many of all are in it and were not, or were and are not */
    int32_t active[2],
        warm[2]; /* rows at the end of (C) and (F), and those of the first set among them */
    double sum[TB_GPU_SOFT_PARTS];
} tb_gpu_soft_counts;

/* Contacts of a substep and their programs. Pointers of the card. A contact has TB_SOFT_MOST_ENTRIES places of
 * nodes and of halves of rigid bodies; the first contact that has a node or half owns its place. */
typedef struct tb_gpu_soft_projections {
    tb_gpu_soft_counts *counts;
    uint64_t *key;            /* of found cells, UINT64_MAX where no impulse changes them */
    int32_t *order;           /* contacts: their places in `found` */
    int32_t *cell;            /* nodes: first contact of the cell, or -1 */
    int32_t *owner, *next;    /* places: of the node, and of the next contact that has it, or -1 */
    tb_soft_contact *contact; /* by their keys */
    const tb_soft_contact *before; /* of the last substep */
    double *gap_velocity;          /* contacts, m/s */
    double *base;                  /* contacts x 3, m/s */
    int32_t *position;             /* contacts: in the sweeps */
    int32_t *cursor;               /* colours: next position */
    int32_t *colour, *partner;     /* contacts: colour; rigid body that they move, or -1 */
    double *answers;               /* rigid bodies x 12: y, impulse and its moment */
    double
        *later; /* 2 x contacts x 6, in the order of sweeps: changes of y by the present colour */
    int32_t *number, *which; /* contacts: in (F), or -1; those of (F): their places in `found` */
    double *impulse[3];      /* places x 3, N s: scratch; of friction before and now */
    double *part, *run;      /* contacts x PARTS; their runs x PARTS */
    uint8_t *first;          /* rows of a program: its first set */
    const double *push_rate; /* bodies, 1/s */
    /* of the program in work, of its rows' coordinates */
    double *f, *b, *x, *value;
    uint8_t *active;
    int32_t *row_first, *row_of;
    double dt, least_spacing, most_pushed;
    int32_t befores, found, columns; /* 1: (C), 2: (F) */
    int32_t from;                    /* impulse[] that GATHER writes, FORCE and APPLY read */
    bool normal, tangential;         /* parts that GATHER takes */
    tb_soft_first_sets sets;
    tb_gpu_soft_stage stage;
} tb_gpu_soft_projections;

/* The search for contacts, H of their programs, and velocities that change. Pointers of the card. */
typedef struct tb_gpu_soft_contacts {
    const tb_soft_card_pair *pair;
    const tb_soft_card_obstacle *obstacle;
    const tb_soft_partner *rigid;
    const int32_t *followed; /* clamps: their rigid bodies, or -1 */
    int32_t pairs, obstacles, rigids;
    int64_t cells;
    int32_t *count; /* cells in contact, also those beyond `capacity` */
    tb_soft_card_found *found;
    tb_gpu_soft_rows *rows; /* of found cells */
    const int32_t *which;   /* rows of H: places of `contacts` found cells */
    int32_t contacts, columns, half_bandwidth, linked; /* linked: found cells that get rows */
    bool turned;  /* pairs of columns, as qp/facet_coordinates.h */
    double *band; /* columns `stride` numbers apart */
    int64_t stride;
    int32_t capacity, pushes;
    const tb_soft_card_push *push;
    tb_soft_sweeps sweeps;
    int32_t *changed; /* number of the last sweep that has changed a working set */
    void *meeting;    /* of its blocks: qp/grid.h */
    const int32_t *colours_there,
        *wanted; /* number of colours; 0: no sweep. NULL: those of `sweeps`; sweep */
    tb_gpu_soft_projections p;
} tb_gpu_soft_contacts;

/* A pass. Pointers of the card; arrays by bodies. */
typedef struct tb_gpu_soft {
    tb_soft_space space;
    uint64_t nodes;
    int32_t bodies, clamps, runs; /* runs of a row */
    const tb_soft_card_body *body;
    const tb_soft_card_clamp *clamp;
    const tb_soft_frame *frames; /* clamps */
    double *impulses;            /* clamps x 6 */
    uint64_t followers;          /* bit c: clamp c moves with a rigid body */
    int32_t held_by;             /* clamp whose held nodes are summed */
    tb_gpu_soft_contacts contacts;
    tb_soft_field *fields;
    tb_gpu_soft_scratch *scratch;
    tb_soft_card_outcome *outcomes;
    double dt;
    tb_gpu_soft_pass pass;
    int32_t layer; /* of EXTEND and LAYER; depths: 1: outside of the body alone */
    int32_t which; /* TB_GPU_SOFT_X, TB_GPU_SOFT_V: of SLOPES and EXTEND */
    bool second;   /* stage of transport */
} tb_gpu_soft;

/* A world on a card: the host's side. */
typedef struct tb_gpu_soft_world {
    tb_gpu_device device;
    tb_gpu_buffer memory;
    tb_gpu_soft g; /* pointers of the card */
    int processors;
    size_t nodes;
    tb_soft_card_outcome *outcomes; /* bodies; as the card has them */
    tb_soft_field *fields;          /* pointers of the card; boxes of the last bringing */
    tb_gpu_buffer kept;             /* a copy of the fields */
    tb_soft_card_outcome *kept_outcomes;
    const double **planes; /* obstacles: of hulls, on the card; NULL: none */
    /* found cells and new velocities, on the card and, pinned, on the host */
    tb_gpu_buffer found, seen, push, pushed;
    tb_gpu_buffer swept;                /* arrays of sweeps */
    tb_gpu_buffer rows, which, band[2]; /* bands of programs of one and of two columns a cell */
    tb_gpu_buffer partners, answers;    /* rigid bodies and what they get; the latter on the host */
    int32_t unlinked;                   /* found cells that have no rows yet */
    /* arrays of the projections, contacts of the last substep (`now`) and of the one before, and counts on the host */
    tb_gpu_buffer projections, contacts[2], counted;
    int32_t now, remembered; /* which of contacts[], and how many */
    int32_t expected; /* cells in contact of the next search, a little more than in the last one */
} tb_gpu_soft_world;

#ifdef __cplusplus
extern "C" {
#endif
/* Copies on the stream, which do not wait. */
tb_status tb_gpu_soft_upload(tb_gpu_soft_world *c, const void *to, const void *from, size_t bytes,
                             tb_error *error);
tb_status tb_gpu_soft_download(tb_gpu_soft_world *c, void *to, const void *from, size_t bytes,
                               tb_error *error);
/* Room for found cells, obstacles and pairs on the card, and one search: contacts.c. */
tb_status tb_gpu_soft_find_there(tb_gpu_soft_world *c, const tb_soft_card_search *search,
                                 int32_t *count, tb_error *error);
/* Rows of all found cells, once a search. */
tb_status tb_gpu_soft_link_found(tb_gpu_soft_world *c, tb_gpu_soft *g, tb_error *error);
/* H of the contacts that g->contacts.which lists, as tb_soft_card_hessian without a host; does not wait. */
tb_status tb_gpu_soft_band(tb_gpu_soft_world *c, tb_gpu_soft *g, int32_t contacts, int32_t columns,
                           int32_t half_bandwidth, bool turned, tb_error *error);
/* The parts CONTACT and RECALL of a call. */
tb_status tb_gpu_soft_solve(tb_gpu_soft_world *c, tb_soft_card_contacts *contacts, tb_error *error);
tb_status tb_gpu_soft_recall(tb_gpu_soft_world *c, tb_soft_contact *contacts, tb_error *error);
/* The parts SEARCH, HESSIAN, SWEEP and PUSH of a call. */
tb_status tb_gpu_soft_find(tb_gpu_soft_world *c, tb_soft_card_search *search, tb_error *error);
tb_status tb_gpu_soft_make_hessian(tb_gpu_soft_world *c, tb_soft_card_hessian *hessian,
                                   tb_error *error);
tb_status tb_gpu_soft_sweep(tb_gpu_soft_world *c, tb_soft_sweeps *sweeps, tb_error *error);
tb_status tb_gpu_soft_push(tb_gpu_soft_world *c, const tb_soft_card_push *push, int32_t pushes,
                           tb_error *error);
/* The backend's entries. */
tb_status tb_gpu_soft_open(int32_t device, const tb_soft_card_scene *scene, void **context,
                           tb_error *error);
tb_status tb_gpu_soft_call(void *context, const tb_soft_card_call *call, tb_error *error);
void tb_gpu_soft_close(void *context);

/* Begin all launches of a call's part on the stream and do not wait. */
cudaError_t tb_gpu_soft_forces(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_transport(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_measure(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_search(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_link(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_hessian(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_sweep_contacts(const tb_gpu_soft *soft, int32_t processors,
                                       cudaStream_t stream);
/* One stage of the projections. */
cudaError_t tb_gpu_soft_project(const tb_gpu_soft *soft, tb_gpu_soft_stage stage,
                                int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_take_velocities(const tb_gpu_soft *soft, int32_t processors,
                                        cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif

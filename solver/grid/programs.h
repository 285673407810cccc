/* The contacts of a substep as a matrix: which nodes they touch and with which weights. */
#ifndef TB_SOFT_PROGRAMS_H
#define TB_SOFT_PROGRAMS_H

#include "grid/grid_internal.h"
#include "tribo_qp.h"

/* A contact's share in a node of a body. */
typedef struct tb_soft_entry {
    uint64_t key;      /* body and node */
    int32_t contact;   /* number */
    int32_t place;     /* of the node in tb_soft_links */
    double weight;     /* with the sign of the side: + for a, - for b */
    const double *map; /* 3 x 3, of a half of a rigid body (partners.c); NULL: a node */
} tb_soft_entry;

/* The row of a direction in the three components of the entry's place. */
static inline void tb_soft_entry_row(const tb_soft_entry *e, const double direction[3],
                                     double row[3])
{
    tb_soft_row(e->weight, e->map, direction, row);
}

/* Nodes of bodies that contacts move, and then halves of rigid bodies. Clamped nodes and walls are
 * none. */
typedef struct tb_soft_links {
    tb_soft_contact *contacts;
    int32_t count;
    tb_soft_entry *entries; /* by node, then by contact */
    int32_t number_of_entries;
    int32_t *first;              /* places + 1: entries of a place */
    int32_t places, soft_places; /* all; nodes */
    double *maps;                /* contacts x 2 x 9 */
    double *inverse_mass;        /* places */
    double **velocity;           /* places: the 3 components in the body's field */
    double *impulse;             /* places x 3, scratch */
    double *slip;                /* count x 3: relative velocity along normal and tangents, m/s */
    double *part;                /* count, scratch: of sums over contacts */
} tb_soft_links;

tb_status tb_soft_links_make(tb_soft_world *w, tb_soft_contact *contacts, int32_t count,
                             tb_soft_links *links, tb_error *error);
/* Relative velocities of all contacts at the fields' v, into `slip`. */
void tb_soft_links_slip(const tb_soft_world *w, const tb_soft_links *links, double *slip);
/* Impulses of contacts at nodes; `normal`, `tangential`: which ones count. */
void tb_soft_links_impulses(const tb_soft_links *links, bool normal, bool tangential,
                            double *impulse);
/* Adds to slip (count x 3) the relative velocities that node impulses cause. */
void tb_soft_links_respond(const tb_soft_links *links, const double *impulse, double *slip);
/* The sum of `part`. */
double tb_soft_links_sum(const tb_soft_links *links);
/* P' M^-1 Q over nodes, J; `part` of a contact is the sum over the places that no contact before it has. */
double tb_soft_links_product(const tb_soft_links *links, const double *p, const double *q);

/* How much an impulse along a contact's normal and tangents changes their own velocities (count x 3,
 * 1/kg): the diagonals of both Hessians. */
void tb_soft_links_mobility(const tb_soft_links *links, double *mobility);
/* Improves the contacts' impulses by sweeps of projected Gauss-Seidel over both programs, and takes
 * `active` from the impulses. base: contacts x 3, m/s, relative velocities without impulses;
 * gap_velocity: contacts, m/s, u of (C). warm/sweeps.c. */
tb_status tb_soft_links_sweep(tb_soft_world *w, const tb_soft_links *links, const double *base,
                              const double *gap_velocity, tb_error *error);

/* Half-bandwidth of H below. */
int32_t tb_soft_links_half_bandwidth(const tb_soft_links *links, const int32_t *number,
                                     int32_t columns);
/* H = J' M^-1 J (columns 1: normals) or T' M^-1 T (2: tangents) of the contacts with number[i] >= 0,
 * in that order, as LAPACK's lower band, from the arena. */
tb_status tb_soft_links_hessian(tb_soft_world *w, const tb_soft_links *links, const int32_t *number,
                                int32_t columns, int32_t half_bandwidth, double **band,
                                tb_error *error);

#endif

/* Private header of flexcomps: bodies cut into simplices, whose vertices are bodies that slide, or which are
 * rigid.
 *
 * flex_shapes.c makes the points and simplices of regular ones, flex_bending.c their hinges; flex_read.c reads a
 * soft flexcomp, flex_expand.c puts into the document what it stands for, flex_contacts.c reads its contacts from
 * there; flex_rigid.c reads rigid ones. Semantics are those of MuJoCo 4.0. */
#ifndef TB_FLEX_H
#define TB_FLEX_H

#include "model/import/mesh/mesh_file.h"
#include "model/import/mjcf/mjcf.h"

/* Places in FLEX_TYPES, the words of the attribute `type`. */
typedef enum flex_type {
    FLEX_GRID,
    FLEX_BOX,
    FLEX_CYLINDER,
    FLEX_ELLIPSOID,
    FLEX_SQUARE,
    FLEX_DISC,
    FLEX_CIRCLE,
    FLEX_MESH,
    FLEX_GMSH,
    FLEX_DIRECT
} flex_type;
#define FLEX_TYPES "grid box cylinder ellipsoid square disc circle mesh gmsh direct"

/* Joints of a vertex: three slides, one away from the first vertex, or those along x and y. */
typedef enum flex_dofs { FLEX_FULL, FLEX_RADIAL, FLEX_PLANAR } flex_dofs;

enum { FLEX_VERTEX_LIMIT = 20000 };

typedef struct flex_edge {
    int32_t a, b; /* points, a < b */
} flex_edge;

/* Two triangles on an edge, and their resistance to bending. If they are flat at rest, the energy is 1/2 stiffness
 * |sum of share_i x_i|^2 over the points' places; else they are an elastic hinge. */
typedef struct flex_hinge {
    bool flat;
    int32_t points[4]; /* the edge's, then the other two */
    double shares[4];  /* together zero */
    double stiffness;  /* N/m */
} flex_hinge;

/* A soft flexcomp as read. */
typedef struct flex {
    const char *name;
    flex_type type;
    flex_dofs dofs;
    int32_t count[3];
    double spacing[3];  /* m */
    double mass;        /* kg, of all points together */
    double inertia_box; /* m: half the side of the cube that gives a vertex its inertia */
    double radius;      /* m */
    bool closes_edges;  /* edges keep their length */
    double stiffness;   /* of edges, N/m */
    double damping;     /* of edges, N s/m */
    bool touches_itself;
    tb_simplices body; /* points in the parent's frame */
    bool *pinned;      /* number_of_points: fixed to the parent */
    /* segments, triangles, or the outer triangles of tetrahedra: number_of_faces x face_corners */
    int32_t *faces;
    int32_t number_of_faces, face_corners;
    flex_edge *edges;
    int32_t number_of_edges;
    bool stretches; /* the simplices are elastic */
    double young;   /* Pa */
    double poisson;
    double thickness; /* m; of dim 2 */
    double rigidity;  /* of a plate that resists bending, N m; 0: it does not */
    double loss;      /* damping over stiffness, s */
    flex_hinge *hinges;
    int32_t number_of_hinges;
} flex;

/* Names of elements that no document can have: a soft flexcomp behind its expansion, and the ball of one of its
 * vertices. */
#define FLEX_MADE   "soft flexcomp"
#define FLEX_VERTEX "flexcomp vertex"

/* Points and simplices of the types that have none of their own, about the origin, from type, dimension,
 * count and spacing. INVALID_ARGUMENT where they make no simplex; RESOURCE_EXHAUSTED. */
tb_status flex_make_shape(flex *f, const xmlNode *node, tb_error *error);
/* The hinges of a triangle mesh. UNSUPPORTED for radial flexes. */
tb_status flex_find_hinges(mjcf *m, const xmlNode *node, flex *f);
/* Reads a flexcomp that is not rigid. UNSUPPORTED for dofs that are not those of vertices. The caller frees it in any case. */
tb_status flex_read(mjcf *m, const xmlNode *node, flex *f);
void flex_free(flex *f);
/* Points and simplices of type="direct"; the dimension is set. The caller frees them in any case. */
tb_status flex_read_direct(mjcf *m, const xmlNode *node, tb_simplices *body);
/* Masks and surface of the child `contact` of a flexcomp or vertex. */
tb_status flex_read_contact(mjcf *m, const xmlNode *node, tb_shape_def *def);

#endif

/* Inside of the URDF importer.
 *
 * A URDF is read into links and joints first (urdf_read.c), which are then sorted into a tree with
 * the masses looked after (urdf_tree.c) and built as a scene (urdf_build.c, urdf_mesh.c, and
 * urdf_looks.c for colours). Names and nodes are borrowed from the document, which lives until the
 * scene is made. */
#ifndef TB_URDF_H
#define TB_URDF_H

#include "model/names.h"
#include "model/import/xml.h"

typedef enum urdf_joint_type {
    URDF_FIXED,
    URDF_REVOLUTE,
    URDF_CONTINUOUS,
    URDF_PRISMATIC,
    URDF_PLANAR,
    URDF_FLOATING,
    URDF_SPHERICAL /* not in the specification, but read by others too */
} urdf_joint_type;

/* in the order of urdf_joint_type */
#define URDF_JOINT_TYPES "fixed revolute continuous prismatic planar floating spherical"

typedef struct urdf_link {
    const char *name;
    const xmlNode *node;
    int32_t collisions;
    bool concave;  /* its meshes collide as they are, not as hulls */
    bool inertial; /* has an <inertial>, with any content */
    double mass;   /* kg; 0: none given */
    double com[3], frame[4], inertia[6];
    tb_surface surface;

    int32_t joint; /* joint to its parent, -1: the root */
    int32_t group; /* of the links that are fixed to one another, the one nearest to the root */
    int32_t
        collider; /* nearest link with collisions, itself or above, that it is fixed to; -1: none */
    bool shapes_weigh; /* mass comes from the link's collision shapes */
    tb_pose pose;      /* in the root's frame, all joints at zero */
    tb_handle body;
} urdf_link;

typedef struct urdf_joint {
    const char *name;
    const xmlNode *node;
    urdf_joint_type type;
    int32_t parent, child; /* links */
    double position[3], orientation[4], axis[3];
    bool limited;
    double lower, upper;
    double effort; /* N or N m; 0: no limit */
    double damping, friction;
    const xmlNode *mimic; /* NULL: none */
    const char *mimic_joint;
    double multiplier, offset;
    tb_handle handle; /* none for fixed joints */
} urdf_joint;

/* An ignored element, reported once with its count. */
typedef struct urdf_note {
    const xmlNode *node; /* the first */
    int32_t count;
    char text[160];
} urdf_note;

typedef struct urdf_material {
    double colour[4];
} urdf_material;

enum { URDF_NOTES = 64 };

typedef struct urdf {
    const tb_import_options *options;
    tb_xml *xml;
    tb_scene *scene;
    tb_error *error;
    tb_names names; /* of links (BODY) and joints (JOINT), and mesh files (MESH) */
    urdf_link *links;
    urdf_joint *joints;
    int32_t number_of_links, link_capacity, number_of_joints, joint_capacity;
    const char *mesh_folder; /* of <mujoco>, NULL: none */
    bool keep_path;          /* a mesh that is not where it is said to be is not sought by name */
    int32_t *order;          /* links, parents before children */
    tb_handle *meshes;
    int32_t number_of_meshes, mesh_capacity;
    urdf_material *materials; /* with a colour, found in `names` */
    int32_t number_of_materials, material_capacity;
    urdf_note notes[URDF_NOTES];
    int32_t number_of_notes;
} urdf;

/* Reads links and joints; joints know their links by index. */
tb_status urdf_read(urdf *u);

/* Finds the root, the order, the groups and where mass comes from. */
tb_status urdf_sort(urdf *u);
/* Whether a link cannot move: it is fixed to a root, and the root to the world. */
bool urdf_is_static(const urdf *u, int32_t link);

/* Makes the scene's bodies, joints, shapes, motors and couplings. */
tb_status urdf_build(urdf *u);

/* The mesh asset of a <mesh> element, loaded once for each file and scale. */
tb_status urdf_mesh(urdf *u, const xmlNode *node, tb_handle *asset);

/* Colours of all materials, by their names; after urdf_read. */
tb_status urdf_read_materials(urdf *u);
/* Gives a shape the colour and material of a <visual>, if it has a colour. */
void urdf_look(const urdf *u, const xmlNode *visual, tb_shape_def *def);
/* The same of the link's first visual that has one. */
void urdf_link_look(const urdf *u, const urdf_link *link, tb_shape_def *def);

/* Reads the <origin> among a node's children, if there is one. */
tb_status urdf_origin(urdf *u, const xmlNode *node, double position[3], double orientation[4]);

/* Remembers that something was ignored; the same text again is only counted. */
void urdf_note_ignored(urdf *u, const xmlNode *node, const char *format, ...) TB_PRINTF(3, 4);
/* Notes every attribute that is not among the space-separated `names` and of no foreign
 * namespace. */
void urdf_note_attributes(urdf *u, const xmlNode *node, const char *names);
/* Notes a child element that is not read; `ignored`, separated by spaces, are known to have no
 * effect.
 * UNSUPPORTED for xacro. */
tb_status urdf_other_element(urdf *u, const xmlNode *node, const char *ignored);
/* Passes on a failure of the builder as one of this node. */
tb_status urdf_fail_from(urdf *u, tb_status status, const xmlNode *node, const tb_error *cause);

#endif

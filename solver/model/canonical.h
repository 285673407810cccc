/* Layout of canonical bytes; one description reads and writes them.
 *
 *   "TRIBOMDL", version (u32), options, then for each kind a count (u32) and its things, then
 *   extras, then the SHA-256 of all bytes before it.
 *
 * An extra is a part that the first version lacks: a tag (u32) and its content. A model without
 * extras keeps the bytes, and so the digest, that it had before there were any.
 *
 * Everything is little endian; floats are IEEE bits, never -0; booleans are one byte, 0 or 1; a
 * text is its length (u32) and its bytes. Elements are in the model's numbering, so the bytes do
 * not depend on the order of the scene's description. References are indices in that order plus 1,
 * 0 for none.
 *
 * One function per kind visits its fields with a `tb_canonical`, which either writes or reads
 * them, so the two directions cannot differ. */
#ifndef TB_CANONICAL_H
#define TB_CANONICAL_H

#include "model/model_internal.h"

typedef struct tb_canonical {
    bool reading;
    tb_status status; /* after a failure every call does nothing */
    tb_error *error;
    tb_bytes *out;           /* writing */
    const unsigned char *in; /* reading */
    size_t size, at;
    tb_arena *arena; /* reading: texts and arrays, until the scene has copied them */
} tb_canonical;

/* Tags of extras. */
enum {
    EXTRA_LOOKS = 1,
    EXTRA_SENSORS = 2,
    EXTRA_TANGENTIAL_RESTITUTION = 3,
    EXTRA_VOLUME_CONSTANTS = 4,
    EXTRA_SOFT = 5,
    EXTRA_SLEEP = 6,
    EXTRA_ELEMENTS = 7,
    EXTRA_ELASTICS = 8
};

/* Marks an end of an exclude as a shape; an end without it is a body. Models without excluded
 * shapes keep the bytes of the first version. */
#define SHAPE_EXCLUDE 0x80000000u

void tb_canonical_fail(tb_canonical *io, const char *what);
void tb_canonical_u32(tb_canonical *io, uint32_t *x);
void tb_canonical_bool(tb_canonical *io, bool *x);
/* A count of elements of at least `least` bytes each; a count that exceeds the input fails
 * before any allocation. */
void tb_canonical_count(tb_canonical *io, int32_t *count, size_t least);

/* Fields of the definitions. Names are included; handles are not, they are written as
 * references. */
void tb_canonical_options(tb_canonical *io, tb_scene_def *x);
void tb_canonical_body(tb_canonical *io, tb_body_def *x);
void tb_canonical_mesh(tb_canonical *io, tb_mesh_def *x);
void tb_canonical_height_field(tb_canonical *io, tb_height_field_def *x);
void tb_canonical_joint(tb_canonical *io, tb_joint_def *x);
void tb_canonical_shape(tb_canonical *io, tb_shape_def *x);
/* of a surface, where a shape or a pair of the scene has one */
void tb_canonical_tangential_restitution(tb_canonical *io, tb_surface *x);
/* of a shape, where one of the scene has its own */
void tb_canonical_volume_constants(tb_canonical *io, tb_shape_def *x);
/* of the options, where it is positive */
void tb_canonical_sleep_tolerance(tb_canonical *io, tb_scene_def *x);
void tb_canonical_look(tb_canonical *io, tb_shape_def *x);
/* SHA-256 as 32 bytes. */
void tb_canonical_checksum(const unsigned char *bytes, size_t size,
                           unsigned char checksum[TB_CANONICAL_CHECKSUM_SIZE]);
/* balls: places in the bytes, from 1. */
void tb_canonical_element(tb_canonical *io, tb_element_def *x, uint32_t balls[3]);
void tb_canonical_elastic(tb_canonical *io, tb_elastic_def *x); /* without its sites */
void tb_canonical_site(tb_canonical *io, tb_site_def *x);
void tb_canonical_tendon(tb_canonical *io, tb_tendon_def *x);
void tb_canonical_tendon_point(tb_canonical *io, tb_tendon_point *x);
void tb_canonical_actuator(tb_canonical *io, tb_actuator_def *x);
void tb_canonical_equality(tb_canonical *io, tb_equality_def *x);
void tb_canonical_pair(tb_canonical *io, tb_pair_def *x);
void tb_canonical_keyframe(tb_canonical *io, tb_keyframe_def *x);
void tb_canonical_sensor(tb_canonical *io, tb_sensor_def *x);

#endif

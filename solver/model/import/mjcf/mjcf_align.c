/* Free bodies with align="true": MuJoCo moves their frame to the inertia's frame, at the centre of
 * mass and in the principal axes; coordinates in the document (keyframes, anchors of equalities)
 * refer to that frame.
 *
 * The first reading of a document finds the bodies and compiles the scene for their inertias; the
 * second one reads the same document with the frames moved. The axes are MuJoCo's, signs included:
 * the axes of a given diagonal or of an only primitive as they are written, else the principal axes
 * with the largest moment first, turned from the document's axes by Jacobi's method. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"
#include "model/model.h"

/* off-diagonal entries below this share of the trace count as zero */
static const double NEGLIGIBLE = 1e-14;

/* Entry of R' S R. */
static double turned_entry(const tb_mat33 *s, const tb_mat33 *r, int i, int k)
{
    return tb_v3_dot(tb_m33_column(r, i), tb_m33_mul_v3(s, tb_m33_column(r, k)));
}

/* A turn about axis `axis` by the angle of half sine `sine`. */
static tb_quaternion turn_about(int axis, double sine)
{
    const double s[3] = {axis == 0 ? sine : 0, axis == 1 ? sine : 0, axis == 2 ? sine : 0};
    return tb_q(sqrt(1 - sine * sine), s[0], s[1], s[2]);
}

/* The principal axes of a symmetric matrix as the rotation that Jacobi's method reaches from the
 * identity by turning away the largest off-diagonal entry, then by quarter turns that order the
 * moments (Golub and Van Loan, Matrix Computations, 8.5). */
static tb_quaternion principal_axes(const tb_mat33 *matrix)
{
    static const int ROW[] = {0, 0, 1}, COLUMN[] = {1, 2, 2};
    const double small = NEGLIGIBLE * (matrix->m[0] + matrix->m[4] + matrix->m[8]);
    tb_quaternion q = tb_q_identity();
    tb_mat33 r = tb_q_matrix(q);
    for (int sweep = 0; sweep < 500; sweep++) {
        int largest = 2;
        double off[3];
        for (int k = 0; k < 3; k++) off[k] = turned_entry(matrix, &r, ROW[k], COLUMN[k]);
        if (fabs(off[0]) > fabs(off[1]) && fabs(off[0]) > fabs(off[2]))
            largest = 0;
        else if (fabs(off[1]) > fabs(off[2]))
            largest = 1;
        if (!(fabs(off[largest]) > small)) break;
        const int i = ROW[largest], k = COLUMN[largest], axis = 3 - i - k;
        const double tau =
            (turned_entry(matrix, &r, k, k) - turned_entry(matrix, &r, i, i)) / (2 * off[largest]);
        const double tangent = 1 / (fabs(tau) + sqrt(1 + tau * tau));
        const double cosine = 1 / sqrt(1 + tangent * tangent);
        const double sine = sqrt(fmax(0, 0.5 - 0.5 * cosine)) * (tau >= 0 ? -1 : 1);
        if (sine == 0) break;
        q = tb_q_normalize(tb_q_mul(q, turn_about(axis, axis == 1 ? -sine : sine)));
        r = tb_q_matrix(q);
    }
    double moments[3];
    for (int i = 0; i < 3; i++) moments[i] = turned_entry(matrix, &r, i, i);
    for (int j = 0; j < 3; j++) {
        const int i = j % 2;
        if (!(moments[i] + small < moments[i + 1])) continue;
        const double larger = moments[i + 1];
        moments[i + 1] = moments[i];
        moments[i] = larger;
        q = tb_q_normalize(tb_q_mul(q, turn_about((i + 2) % 3, sqrt(0.5))));
    }
    return q;
}

tb_status mjcf_note_aligned(mjcf *m, const mjcf_aligned *aligned)
{
    MJCF_TRY(mjcf_grow(m, (void **)&m->aligned, m->number_of_aligned, &m->aligned_capacity,
                       sizeof *m->aligned));
    m->aligned[m->number_of_aligned++] = *aligned;
    return TB_OK;
}

const mjcf_pose *mjcf_find_alignment(const mjcf *m, int32_t body)
{
    for (int32_t i = 0; i < m->number_of_alignments; i++)
        if (m->alignments[i].body == body) return &m->alignments[i].frame;
    return NULL;
}

tb_status mjcf_find_alignments(mjcf *m)
{
    tb_model *model = NULL;
    const tb_status status = tb_scene_compile(m->scene, &model, m->error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < m->number_of_aligned; i++) {
        mjcf_aligned *aligned = &m->aligned[i];
        const tb_model_body *body = &model->bodies[aligned->body];
        const tb_mat33 axes = tb_q_matrix(tb_q_conjugate(aligned->axes));
        const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
        const tb_mat33 turned = tb_m33_rotate_symmetric(&axes, &inertia);
        aligned->frame.position = tb_v3_load(body->com);
        aligned->frame.orientation = aligned->axes;
        if (!aligned->exact)
            aligned->frame.orientation =
                tb_q_normalize(tb_q_mul(aligned->axes, principal_axes(&turned)));
    }
    tb_model_destroy(model);
    return TB_OK;
}

/* Whether a convex shape is near a mesh or a height field at all: a fast test before the pair's
 * points are looked for, for worlds of which most shapes lie inside the box of a mesh (a bin, a
 * terrain). A pair that fails it has no points. */
#ifndef TB_MESH_NEAR_H
#define TB_MESH_NEAR_H

#include "collide/mesh/mesh_internal.h"

enum { TB_MESH_NEAR_DEPTH = 64 }; /* of a tree; a pair with a deeper one counts as near */

/* Whether any triangle's box meets the box of the job's shape. */
TB_STATIC bool mesh_is_near(const tb_mesh_job *j)
{
    tb_mesh_index_pair stack[TB_MESH_NEAR_DEPTH], next[2], triangles;
    int32_t depth = 0;
    stack[depth++] = TB_VALUE(tb_mesh_index_pair){0, 0};
    while (depth > 0) {
        const tb_mesh_index_pair nodes = stack[--depth];
        const int found = tb_mesh_descend(j, nodes, next);
        if (found == 1) {
            const int32_t size = tb_mesh_leaf_size(j, nodes);
            for (int32_t k = 0; k < size; k++)
                if (tb_mesh_leaf_meets(j, nodes, k, NULL, &triangles)) return true;
        }
        if (found < 2) continue;
        if (depth + 2 > TB_MESH_NEAR_DEPTH) return true;
        stack[depth++] = next[1];
        stack[depth++] = next[0];
    }
    return false;
}

/* Whether a box of the field's frame reaches down to the highest point of the cells under it. All
 * triangles of a field's part lie below that point. */
TB_STATIC bool field_is_near(const tb_height_field *field, const double lower[3],
                             const double upper[3])
{
    int32_t row, rows, column, columns;
    if (lower[2] > field->highest) return false;
    tb_height_field_range(lower[0], upper[0], field->half_x, field->columns - 1, &column, &columns);
    tb_height_field_range(lower[1], upper[1], field->half_y, field->rows - 1, &row, &rows);
    for (int32_t r = row; r <= row + rows; r++)
        for (int32_t c = column; c <= column + columns; c++)
            if (lower[2] <= field->heights[(size_t)r * (size_t)field->columns + (size_t)c])
                return true;
    return false;
}

/* False only if a shape and a mesh or height field have no contacts with gaps up to the margin
 * (m). Other pairs with meshes count as near. */
TB_STATIC bool tb_mesh_is_near(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin)
{
    tb_mesh_task task;
    tb_mesh_job *j = &task.job;
    tb_mesh_begin(&task, a, b, margin);
    if (j->kind != TB_MESH_ON_CONVEX) return true;
    if (task.shape->type == TB_SHAPE_HEIGHT_FIELD)
        return field_is_near(task.shape->field, j->lower, j->upper);
    j->view.mesh = task.shape->mesh;
    return mesh_is_near(j);
}

#endif

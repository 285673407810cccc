/* Products with the mass matrix, its factor along the kinematic chains, M = L' D L, and solves by it.
 *
 * Method: Featherstone, Rigid Body Dynamics Algorithms, 2008, 6.5. A row holds a dof's chain, so that a
 * dof only ever meets its ancestors and nothing fills in. */
#include "step/dynamics/dynamics.h"
#include "step/dynamics/free_body.h"

TB_EXTERN void tb_dynamics_mass_multiply(const tb_dynamics *dynamics, const tb_real *x, tb_real *y)
{
    const tb_dynamics *d = dynamics;
    const tb_model *m = d->model;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const tb_model_tree *tree = &m->trees[t];
        const int32_t first = tree->dof, end = tree->dof + tree->number_of_dofs;
        if (tree->single_free) {
            const tb_model_body *body = &m->bodies[tree->body];
            const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
            const tb_vec3 w = tb_v3(x[first + 3], x[first + 4], x[first + 5]);
            const tb_vec3 iw = tb_m33_mul_v3(&inertia, w);
            for (int k = 0; k < 3; k++) {
                y[first + k] = TB_R(body->mass + m->dofs[first + k].armature) * x[first + k];
                y[first + 3 + k] =
                    tb_v3_at(iw, k) + TB_R(m->dofs[first + 3 + k].armature) * x[first + 3 + k];
            }
            continue;
        }
        for (int32_t i = first; i < end; i++) y[i] = 0;
        for (int32_t i = first; i < end; i++) {
            const tb_real *row = d->mass + d->mass_row[i];
            y[i] += *row++ * x[i];
            for (int32_t j = m->dofs[i].parent; j >= 0; j = m->dofs[j].parent, row++) {
                y[i] += *row * x[j];
                y[j] += *row * x[i];
            }
        }
    }
}

/* Lanes that work on a tree: one, if trees are dealt out, or all. */
typedef struct tree_lanes {
    int32_t lane, lanes;
} tree_lanes;

TB_STATIC void sync_tree(tree_lanes by)
{
    if (by.lanes > 1) tb_team_sync();
}

/* Whether all lanes go from tree to tree: where there are few. */
TB_STATIC bool trees_together(const tb_model *m)
{
    return 4 * m->number_of_jointed_trees <= tb_team_lanes();
}

TB_STATIC tree_lanes one_lane(void)
{
    return TB_VALUE(tree_lanes){0, 1};
}

TB_STATIC tree_lanes all_lanes(void)
{
    return TB_VALUE(tree_lanes){tb_team_lane(), tb_team_lanes()};
}

/* y -= a x. On a card, numbers are read by four before the first is written: a read behind a write waits
 * for it. Behind the end the last one is read again. */
TB_STATIC void subtract_scaled(tb_real *y, const tb_real *x, tb_real a, int32_t count)
{
#ifdef TB_DEVICE
    TB_ROLLED
    for (int32_t k = 0; k < count; k += 4) {
        tb_real own[4], other[4];
        for (int32_t c = 0; c < 4; c++) {
            const int32_t n = k + c < count ? k + c : count - 1;
            own[c] = y[n], other[c] = x[n];
        }
        for (int32_t c = 0; c < 4; c++)
            if (k + c < count) y[k + c] = own[c] - a * other[c];
    }
#else
    for (int32_t k = 0; k < count; k++) y[k] -= a * x[k];
#endif
}

/* The row of a dof, and where the rows of a lane's first two ancestors begin. Nothing that is computed changes this,
 * so it is read while the row before it is worked on. */
typedef struct factor_row {
    int32_t at, length, of_ancestor[2];
} factor_row;

TB_STATIC factor_row factor_row_of(const tb_dynamics *d, int32_t k, int32_t end, tree_lanes by)
{
    const int32_t *chains = d->model->chains, *start = d->mass_row;
    factor_row row = {.at = start[k]};
    row.length = end - row.at;
    for (int32_t turn = 0; turn < 2; turn++) {
        const int32_t i = 1 + by.lane + turn * by.lanes;
        row.of_ancestor[turn] = i < row.length ? start[chains[row.at + i]] : 0;
    }
    return row;
}

/* From the leaves to the root, every dof takes from all pairs of its ancestors the part that it
 * explains. Ancestors are dealt out; the quotients of a lane's first two wait until all lanes have read
 * the row. */
TB_STATIC tb_status factor_tree(tb_dynamics *d, const tb_model_tree *tree, tree_lanes by,
                                tb_error *error)
{
    const tb_model *m = d->model;
    const int32_t *chains = m->chains, *start = d->mass_row;
    tb_real *mass = d->mass, *inverse_root = d->inverse_root;
    const int32_t first = tree->dof, end = first + tree->number_of_dofs;
    factor_row next = {.at = start[end]};
    if (by.lanes > 1 && end > first) next = factor_row_of(d, end - 1, next.at, by);
    for (int32_t k = end - 1; k >= first; k--) {
        const factor_row now = next;
        const int32_t at = by.lanes > 1 ? now.at : start[k];
        const int32_t length = by.lanes > 1 ? now.length : start[k + 1] - at;
        tb_real *row = mass + at;
        if (by.lanes > 1 && k > first) next = factor_row_of(d, k - 1, now.at, by);
        const tb_real pivot = row[0];
        if (!(pivot > 0) || !(pivot <= TB_REAL_MAX))
            return tb_fail(error, TB_FAILED_PRECONDITION,
                           "dof %d of body '%s' has no inertia (mass matrix is singular)", k,
                           tb_model_thing_name(m, TB_HANDLE_BODY, m->dofs[k].body));
        if (by.lanes == 1) {
            for (int32_t i = 1; i < length; i++) {
                const tb_real a = row[i] / pivot;
                subtract_scaled(mass + start[chains[at + i]], row + i, a, length - i);
                row[i] = a; /* no later ancestor reads it */
            }
            continue;
        }
        tb_real a0 = 0, a1 = 0;
        int32_t i = 1 + by.lane;
        TB_ROLLED
        for (int32_t turn = 0; i < length; i += by.lanes, turn++) {
            const tb_real a = row[i] / pivot;
            const int32_t to = turn < 2 ? now.of_ancestor[turn > 0] : start[chains[at + i]];
            subtract_scaled(mass + to, row + i, a, length - i);
            if (turn == 0) a0 = a;
            if (turn == 1) a1 = a;
        }
        tb_team_sync(); /* all have read the row */
        i = 1 + by.lane;
        if (i < length) row[i] = a0;
        if (i + by.lanes < length) row[i + by.lanes] = a1;
        TB_ROLLED
        for (i += 2 * by.lanes; i < length; i += by.lanes) row[i] /= pivot;
    }
    for (int32_t k = first + by.lane; k < end; k += by.lanes)
        inverse_root[k] = 1 / tb_sqrt(mass[start[k]]);
    return TB_OK;
}

TB_EXTERN tb_status tb_dynamics_factor(tb_dynamics *dynamics, tb_error *error)
{
    const tb_model *m = dynamics->model;
    const int32_t trees = m->number_of_jointed_trees;
    const bool together = trees_together(m);
    tb_status status = TB_OK;
    TB_EACH (t, together ? 0 : trees) {
        status = factor_tree(dynamics, &m->trees[m->jointed_trees[t]], one_lane(), error);
        if (status != TB_OK) break;
    }
    for (int32_t t = 0; together && t < trees && status == TB_OK; t++)
        status = factor_tree(dynamics, &m->trees[m->jointed_trees[t]], all_lanes(), error);
    tb_team_sync();
    return tb_team_any(status != TB_OK) ? TB_FAILED_PRECONDITION : TB_OK;
}

/* x_i of L x = D^-1 y; the x of its ancestors are known. */
TB_STATIC void substitute(const tb_dynamics *d, int32_t i, tb_real *x)
{
    const int32_t at = d->mass_row[i], length = d->mass_row[i + 1] - at;
    const int32_t *chain = d->model->chains + at;
    const tb_real *row = d->mass + at, root = d->inverse_root[i];
    tb_real own = x[i] * (root * root);
#ifdef TB_DEVICE
    /* four products at once; behind the row's end the last one again, which is not subtracted */
    TB_ROLLED
    for (int32_t j = 1; j < length; j += 4) {
        tb_real product[4];
        for (int32_t c = 0; c < 4; c++) {
            const int32_t k = j + c < length ? j + c : length - 1;
            product[c] = row[k] * x[chain[k]];
        }
        for (int32_t c = 0; c < 4; c++)
            if (j + c < length) own -= product[c];
    }
#else
    for (int32_t j = 1; j < length; j++) own -= row[j] * x[chain[j]];
#endif
    x[i] = own;
}

#ifdef TB_DEVICE
/* A lane's first two ancestors of a dof, and their numbers of L, which are read while the dof below is worked on. */
typedef struct ancestors {
    int32_t at, length, dof[2];
    tb_real factor[2];
} ancestors;

TB_STATIC ancestors ancestors_of(const tb_dynamics *d, int32_t i, int32_t end, tree_lanes by)
{
    ancestors a = {.at = d->mass_row[i]};
    a.length = end - a.at;
    for (int32_t turn = 0; turn < 2; turn++) {
        const int32_t j = 1 + by.lane + turn * by.lanes;
        a.dof[turn] = j < a.length ? d->model->chains[a.at + j] : -1;
        a.factor[turn] = j < a.length ? d->mass[a.at + j] : TB_R(0);
    }
    return a;
}

/* x <- L^-T x for a tree. Lanes share a dof's ancestors. */
TB_STATIC void pass_to_root(const tb_dynamics *d, const tb_model_tree *tree, tree_lanes by,
                            tb_real *x)
{
    const int32_t last = tree->dof + tree->number_of_dofs - 1;
    ancestors next = ancestors_of(d, last, d->mass_row[last + 1], by);
    for (int32_t i = last; i >= tree->dof; i--) {
        const ancestors now = next;
        const tb_real own = x[i];
        tb_real other[2] = {0, 0};
        for (int32_t turn = 0; turn < 2; turn++)
            if (now.dof[turn] >= 0) other[turn] = x[now.dof[turn]];
        if (i > tree->dof) next = ancestors_of(d, i - 1, now.at, by);
        for (int32_t turn = 0; turn < 2; turn++)
            if (now.dof[turn] >= 0) x[now.dof[turn]] = other[turn] - now.factor[turn] * own;
        TB_ROLLED
        for (int32_t j = 1 + by.lane + 2 * by.lanes; j < now.length; j += by.lanes)
            x[d->model->chains[now.at + j]] -= d->mass[now.at + j] * own;
        sync_tree(by);
    }
}
#else
/* x <- L^-T x for a tree. Lanes share a dof's ancestors. */
TB_STATIC void pass_to_root(const tb_dynamics *d, const tb_model_tree *tree, tree_lanes by,
                            tb_real *x)
{
    const int32_t *chains = d->model->chains, *start = d->mass_row;
    const tb_real *mass = d->mass;
    int32_t at = start[tree->dof + tree->number_of_dofs];
    for (int32_t i = tree->dof + tree->number_of_dofs - 1; i >= tree->dof; i--) {
        const int32_t length = at - start[i];
        const tb_real own = x[i];
        at = start[i];
        TB_ROLLED
        for (int32_t j = 1 + by.lane; j < length; j += by.lanes)
            x[chains[at + j]] -= mass[at + j] * own;
        sync_tree(by);
    }
}
#endif

/* x <- L^-1 D^-1 x for all jointed trees, the dofs of equal depth dealt out. */
TB_STATIC void return_from_roots(const tb_dynamics *d, tb_real *x)
{
    const tb_model *m = d->model;
    for (int32_t depth = 0; depth < m->longest_chain; depth++) {
        const int32_t *dofs = m->depth_dofs + m->depth_start[depth];
        TB_EACH (k, m->depth_start[depth + 1] - m->depth_start[depth]) substitute(d, dofs[k], x);
        tb_team_sync();
    }
}

TB_EXTERN void tb_dynamics_solve(const tb_dynamics *dynamics, tb_real *x)
{
    const tb_model *m = dynamics->model;
    const bool together = trees_together(m);
    TB_EACH (t, m->number_of_trees) {
        const tb_model_tree *tree = &m->trees[t];
        if (tree->single_free) {
            tb_free_body_solve(tree, x + tree->dof);
        } else if (!together) {
            pass_to_root(dynamics, tree, one_lane(), x);
            for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++)
                substitute(dynamics, i, x);
        }
    }
    for (int32_t t = 0; together && t < m->number_of_jointed_trees; t++)
        pass_to_root(dynamics, &m->trees[m->jointed_trees[t]], all_lanes(), x);
    if (together) return_from_roots(dynamics, x);
    tb_team_sync();
}

TB_EXTERN void tb_dynamics_unwhiten_tree(const tb_dynamics *dynamics, const tb_model_tree *tree,
                                         double *x)
{
    const tb_dynamics *d = dynamics;
    const tb_model *m = d->model;
    if (tree->single_free) {
        tb_free_body_unwhiten(tree, x + tree->dof);
        return;
    }
    for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++) {
        const tb_real *row = d->mass + d->mass_row[i] + 1;
        x[i] *= (double)d->inverse_root[i];
        for (int32_t j = m->dofs[i].parent; j >= 0; j = m->dofs[j].parent)
            x[i] -= (double)*row++ * x[j];
    }
}

TB_EXTERN void tb_dynamics_unwhiten(const tb_dynamics *dynamics, double *x)
{
    const tb_model *m = dynamics->model;
    TB_EACH (t, m->number_of_trees) tb_dynamics_unwhiten_tree(dynamics, &m->trees[t], x);
    tb_team_sync();
}

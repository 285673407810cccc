/* Products with the mass matrix, its factor along the kinematic chains, M = L' D L, and solves by it.
 *
 * Method: Featherstone, Rigid Body Dynamics Algorithms, 2008, 6.5. A row holds a dof's chain, so that a
 * dof only ever meets its ancestors and nothing fills in. The inverse of H = D^1/2 L has the same rows, and
 * takes the place of M: the numbers of a product with it do not wait for each other. */
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

TB_STATIC bool is_pivot(tb_real x)
{
    return x > 0 && x <= TB_REAL_MAX;
}

#ifdef TB_DEVICE
/* ---- on a card: depth by depth, the numbers of all rows of one depth dealt out ---- */

/* A number of the rows of one depth: the dof's place among the depth's, and the number's in its row. */
typedef struct row_place {
    int32_t dof, at;
} row_place;

/* `by` numbers further on, where rows have `length` numbers. */
TB_STATIC row_place place_behind(row_place place, int32_t by, int32_t length, int32_t dofs)
{
    place.at += by;
    while (place.at >= length && place.dof < dofs) {
        place.at -= length;
        place.dof++;
    }
    return place;
}

/* Number `at` of the row of dof k, without what the dofs behind it, from `first` to `last`, explain: their rows
 * are done, and their inverse pivots are in inverse_root. */
TB_STATIC tb_real eliminated(const tb_dynamics *d, int32_t k, int32_t at, int32_t first,
                             int32_t last)
{
    const int32_t *start = d->mass_row;
    const int32_t length = start[k + 1] - start[k];
    tb_real y = d->mass[start[k] + at];
    for (int32_t i = last; i >= first; i--) {
        const tb_real *row = d->mass + start[i + 1] - length; /* from k on */
        y -= row[0] * d->inverse_root[i] * row[at];
    }
    return y;
}

/* Takes from the rows of the run of dofs that ends with `last` what the dofs behind it explain: all numbers of
 * these rows at once, which lie one behind the other. */
TB_STATIC void eliminate_behind(const tb_dynamics *d, int32_t last)
{
    const tb_model_dof *dofs = d->model->dofs;
    const int32_t *start = d->mass_row;
    int32_t first = last;
    while (dofs[first].parent >= 0 && dofs[dofs[first].parent].last == last)
        first = dofs[first].parent;
    TB_EACH (n, start[last + 1] - start[first]) {
        int32_t k = first, at = n;
        for (; at >= start[k + 1] - start[k]; k++) at -= start[k + 1] - start[k];
        d->mass[start[first] + n] = eliminated(d, k, at, last + 1, dofs[last].end - 1);
    }
    tb_team_sync();
}

/* The same of all runs that end with one of `count` dofs at one depth. */
TB_STATIC void eliminate_behind_runs(const tb_dynamics *d, const int32_t *dofs, int32_t count)
{
    for (int32_t base = 0; base < count; base += tb_team_lanes()) {
        const int32_t at = base + tb_team_lane();
        const tb_model_dof *dof = at < count ? &d->model->dofs[dofs[at]] : NULL;
        uint32_t ending = tb_team_ballot(dof && dof->last == dofs[at] && dof->end > dofs[at] + 1);
        for (; ending; ending &= ending - 1)
            eliminate_behind(d, dofs[base + tb_count_bits((ending & (0 - ending)) - 1)]);
    }
}

/* U = D L in the place of M = U' D^-1 U for the rows of `count` dofs at one depth, those behind them being done,
 * and D^-1 in the place of D^-1/2. False if a pivot is not positive. */
TB_STATIC bool eliminate_rows(tb_dynamics *d, const int32_t *dofs, int32_t count, int32_t length)
{
    bool positive = true;
    row_place place = {0, 0};
    eliminate_behind_runs(d, dofs, count);
    place = place_behind(place, tb_team_lane(), length, count);
    while (place.dof < count) {
        const int32_t k = dofs[place.dof];
        const tb_real y = eliminated(d, k, place.at, k + 1, d->model->dofs[k].last);
        d->mass[d->mass_row[k] + place.at] = y;
        if (place.at == 0) {
            d->inverse_root[k] = 1 / y;
            positive = positive && is_pivot(y);
        }
        place = place_behind(place, tb_team_lanes(), length, count);
    }
    tb_team_sync();
    return positive;
}

/* Number `at` of row i of H^-1, but the first: H H^-1 = 1, and the rows of i's ancestors are done. The
 * numbers of row i up to `at` are still those of U. */
TB_STATIC tb_real inverted(const tb_dynamics *d, int32_t i, int32_t at)
{
    const int32_t *start = d->mass_row, *chain = d->model->chains + start[i];
    const tb_real *row = d->mass + start[i];
    tb_real sum = 0;
    for (int32_t p = at; p > 0; p--) sum += row[p] * d->mass[start[chain[p]] + at - p];
    return -sum * d->inverse_root[i];
}

/* H^-1 in the place of U for the rows of `count` dofs at one depth, those of their ancestors being done, and
 * D^-1/2 in the place of D^-1. The farthest ancestors come first, because nearer ones need nothing of them. */
TB_STATIC void invert_rows(tb_dynamics *d, const int32_t *dofs, int32_t count, int32_t length)
{
    const int32_t above = length - 1, lanes = tb_team_lanes();
    row_place place = {0, 0};
    if (above > 0) place = place_behind(place, tb_team_lane(), above, count);
    for (int32_t first = 0; first < above * count; first += lanes) {
        const bool own = place.dof < count;
        const int32_t i = own ? dofs[place.dof] : 0, at = above - place.at;
        const tb_real number = own ? inverted(d, i, at) : 0;
        tb_team_sync(); /* all have read U */
        if (own) d->mass[d->mass_row[i] + at] = number;
        place = place_behind(place, lanes, above, count);
    }
    TB_EACH (k, count) {
        const int32_t i = dofs[k];
        d->mass[d->mass_row[i]] = d->inverse_root[i] = tb_sqrt(d->inverse_root[i]);
    }
    tb_team_sync();
}

TB_EXTERN tb_status tb_dynamics_factor(tb_dynamics *dynamics, tb_error *error)
{
    const tb_model *m = dynamics->model;
    const int32_t *start = m->depth_start, *dofs = m->depth_dofs;
    bool positive = true;
    (void)error; /* a card tells no messages */
    for (int32_t k = m->longest_chain - 1; k >= 0; k--)
        if (!eliminate_rows(dynamics, dofs + start[k], start[k + 1] - start[k], k + 1))
            positive = false;
    if (tb_team_any(!positive)) return TB_FAILED_PRECONDITION;
    for (int32_t k = 0; k < m->longest_chain; k++)
        invert_rows(dynamics, dofs + start[k], start[k + 1] - start[k], k + 1);
    return TB_OK;
}
#else
/* ---- on a processor: dof by dof, every sum in the same order ---- */

/* From the leaves to the root, U in the place of M, and D^-1 in that of D^-1/2: every dof takes from all
 * pairs of its ancestors the part that it explains. */
TB_STATIC tb_status eliminate_tree(tb_dynamics *d, const tb_model_tree *tree, tb_error *error)
{
    const tb_model *m = d->model;
    const int32_t *chains = m->chains, *start = d->mass_row;
    for (int32_t k = tree->dof + tree->number_of_dofs - 1; k >= tree->dof; k--) {
        const int32_t at = start[k], length = start[k + 1] - at;
        const tb_real *row = d->mass + at;
        if (!is_pivot(row[0]))
            return tb_fail(error, TB_FAILED_PRECONDITION,
                           "dof %d of body '%s' has no inertia (mass matrix is singular)", k,
                           tb_model_thing_name(m, TB_HANDLE_BODY, m->dofs[k].body));
        const tb_real inverse = d->inverse_root[k] = 1 / row[0];
        for (int32_t i = 1; i < length; i++) {
            const tb_real a = row[i] * inverse;
            tb_real *to = d->mass + start[chains[at + i]];
            for (int32_t j = i; j < length; j++) to[j - i] -= a * row[j];
        }
    }
    return TB_OK;
}

/* From the root to the leaves, H^-1 in the place of U, and D^-1/2 in that of D^-1. The farthest ancestors come
 * first, because nearer ones need nothing of them, and two at a time: so a vector that a pass reads is one
 * that the pass before it wrote. Parts of two such vectors would have to wait for both. */
TB_STATIC void invert_tree(tb_dynamics *d, const tb_model_tree *tree)
{
    const int32_t *start = d->mass_row;
    for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++) {
        const int32_t length = start[i + 1] - start[i], *chain = d->model->chains + start[i];
        const tb_real inverse = d->inverse_root[i];
        tb_real *row = d->mass + start[i];
        int32_t p = length - 1;
        if (p % 2 == 1) row[p] *= d->mass[start[chain[p]]], p--;
        for (; p > 0; p -= 2) {
            const tb_real *far = d->mass + start[chain[p]], *near = d->mass + start[chain[p - 1]];
            const tb_real of_far = row[p], of_near = row[p - 1];
            row[p - 1] = of_near * near[0];
            row[p] = of_far * far[0] + of_near * near[1];
            for (int32_t k = 1; k < length - p; k++)
                row[p + k] = row[p + k] + of_far * far[k] + of_near * near[k + 1];
        }
        for (int32_t k = 1; k < length; k++) row[k] = -row[k] * inverse;
        row[0] = d->inverse_root[i] = tb_sqrt(inverse);
    }
}

TB_EXTERN tb_status tb_dynamics_factor(tb_dynamics *dynamics, tb_error *error)
{
    const tb_model *m = dynamics->model;
    tb_status status = TB_OK;
    for (int32_t t = 0; t < m->number_of_jointed_trees && status == TB_OK; t++) {
        const tb_model_tree *tree = &m->trees[m->jointed_trees[t]];
        status = eliminate_tree(dynamics, tree, error);
        if (status == TB_OK) invert_tree(dynamics, tree);
    }
    return status;
}
#endif

/* ---- products with the inverse ---- */

/* Number k of H^-T x. */
TB_STATIC tb_real pulled_back(const tb_dynamics *d, int32_t k, const tb_real *x)
{
    const int32_t *start = d->mass_row;
    const int32_t length = start[k + 1] - start[k], end = d->model->dofs[k].end;
    tb_real y = 0;
    for (int32_t i = k; i < end; i++) y += d->mass[start[i + 1] - length] * x[i];
    return y;
}

/* Number i of H^-1 x. */
TB_STATIC tb_real carried_on(const tb_dynamics *d, int32_t i, const tb_real *x)
{
    const int32_t at = d->mass_row[i], length = d->mass_row[i + 1] - at;
    const int32_t *chain = d->model->chains + at;
    tb_real y = 0;
    for (int32_t p = 0; p < length; p++) y += d->mass[at + p] * x[chain[p]];
    return y;
}

/* The same of numbers in double. */
TB_STATIC double carried_on_double(const tb_dynamics *d, int32_t i, const double *x)
{
    const int32_t at = d->mass_row[i], length = d->mass_row[i + 1] - at;
    const int32_t *chain = d->model->chains + at;
    double y = 0;
    for (int32_t p = 0; p < length; p++) y += (double)d->mass[at + p] * x[chain[p]];
    return y;
}

/* Dofs, ancestors before those that they carry: of a list, or `first` and the following. They are taken in groups
 * of one a lane: a number of H^-T x needs dofs that come later, so that the first group comes first; one of H^-1 x
 * needs dofs that come earlier. */
typedef struct dof_list {
    const int32_t *dofs; /* or NULL */
    int32_t first, count;
} dof_list;

/* The dofs of all jointed trees. */
TB_STATIC dof_list jointed_dofs(const tb_model *m)
{
    return TB_VALUE(dof_list){m->depth_dofs, 0, m->depth_start[m->longest_chain]};
}

/* The lane's own dof of the group from the list's number `from` on; -1: none. */
TB_STATIC int32_t dof_of_lane(const dof_list *list, int32_t from)
{
    const int32_t at = from + tb_team_lane();
    if (at >= list->count) return -1;
    return list->dofs ? list->dofs[at] : list->first + at;
}

TB_STATIC int32_t last_group(const dof_list *list)
{
    const int32_t lanes = tb_team_lanes();
    return list->count > 0 ? (list->count - 1) / lanes * lanes : -lanes;
}

/* x <- M^-1 x */
TB_STATIC void solve_dofs(const tb_dynamics *d, const dof_list *list, tb_real *x)
{
    const int32_t lanes = tb_team_lanes(), last = last_group(list);
    for (int32_t from = 0; from <= last; from += lanes) {
        const int32_t i = dof_of_lane(list, from);
        const tb_real y = i >= 0 ? pulled_back(d, i, x) : 0;
        tb_team_sync(); /* all have read the group's numbers */
        if (i >= 0) x[i] = y;
    }
    tb_team_sync();
    for (int32_t from = last; from >= 0; from -= lanes) {
        const int32_t i = dof_of_lane(list, from);
        const tb_real y = i >= 0 ? carried_on(d, i, x) : 0;
        tb_team_sync();
        if (i >= 0) x[i] = y;
    }
    tb_team_sync();
}

TB_EXTERN void tb_dynamics_solve(const tb_dynamics *dynamics, tb_real *x)
{
    const tb_model *m = dynamics->model;
    const dof_list list = jointed_dofs(m);
    TB_EACH (t, m->number_of_trees)
        if (m->trees[t].single_free) tb_free_body_solve(&m->trees[t], x + m->trees[t].dof);
    solve_dofs(dynamics, &list, x);
}

TB_EXTERN void tb_dynamics_unwhiten_tree(const tb_dynamics *dynamics, const tb_model_tree *tree,
                                         double *x)
{
    if (tree->single_free) {
        tb_free_body_unwhiten(tree, x + tree->dof);
        return;
    }
    for (int32_t i = tree->dof + tree->number_of_dofs - 1; i >= tree->dof; i--)
        x[i] = carried_on_double(dynamics, i, x);
}

TB_EXTERN void tb_dynamics_unwhiten(const tb_dynamics *dynamics, double *x)
{
    const tb_model *m = dynamics->model;
    const dof_list list = jointed_dofs(m);
    TB_EACH (t, m->number_of_trees)
        if (m->trees[t].single_free) tb_free_body_unwhiten(&m->trees[t], x + m->trees[t].dof);
    for (int32_t from = last_group(&list); from >= 0; from -= tb_team_lanes()) {
        const int32_t i = dof_of_lane(&list, from);
        const double y = i >= 0 ? carried_on_double(dynamics, i, x) : 0;
        tb_team_sync(); /* all have read the group's numbers */
        if (i >= 0) x[i] = y;
    }
    tb_team_sync();
}

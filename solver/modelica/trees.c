/* Sums by trees, and reductions that a card makes side by side.
 *
 * sum() of Reals and the product of two vectors, alone in the statements of a function, are trees on each
 * back end (prelude.inc). In the rounds of a kernel a tree would cost registers and hide the products of
 * matrices: a sum there is in the order of its terms, on each back end too. Smaller and larger are the
 * same in any order; a sum that the source writes as a loop keeps the order of the loop, unless the
 * function has the annotation __Tribod_reorder = true. */
#include "modelica/loops.h"

static void clear_tree(const mo_s *s, void *context)
{
    if (s->tree == *(const int32_t *)context) ((mo_s *)(uintptr_t)s)->tree = 0;
}

static void find_tree(const mo_s *s, void *context)
{
    int32_t *tree = context;
    if (s->tree == *tree) *tree = 0;
}

/* whether a kernel in a list of statements, up to the tree's own last step, makes steps of the tree */
static bool kernels_step(const mo_s *s, int32_t tree)
{
    for (; s != NULL && s->tree != tree; s = s->next) {
        int32_t found = tree;
        if (s->loop != NULL && s->loop->depth > 0)
            tb_mo_each_statement(s->body, find_tree, &found);
        else if (kernels_step(s->body, tree) || kernels_step(s->orelse, tree))
            return true;
        if (found != tree) return true;
    }
    return false;
}

/* Makes the sum that a list opens one in order: its last step goes. */
static void demote(mo_s *open)
{
    const int32_t tree = open->tree;
    mo_s *last = open;
    while (last->next != NULL && last->next->tree != tree) last = last->next;
    if (last->next != NULL) last->next = last->next->next;
    open->tree = 0;
    tb_mo_each_statement(open->next, clear_tree, (void *)(uintptr_t)&tree);
}

/* whether the tree is a loop's alone, and the loop a kernel that reduces it */
static bool is_whole(const mo_s *open)
{
    const mo_s *loop = open->next;
    return loop != NULL && loop->op == MO_S_FOR && loop->loop != NULL && loop->loop->fold != NULL &&
           loop->loop->fold->count == 1 && loop->loop->fold->statement[0]->tree == open->tree &&
           loop->next != NULL && loop->next->tree == open->tree;
}

static void settle_list(mo_s *s, bool in_kernel)
{
    for (; s != NULL; s = s->next) {
        if (s->tree > 0 && s->tree_step == MO_TREE_OPEN && !is_whole(s) &&
            (in_kernel || kernels_step(s->next, s->tree)))
            demote(s);
        const bool kernel = in_kernel || (s->loop != NULL && s->loop->depth > 0);
        settle_list(s->body, kernel);
        settle_list(s->orelse, kernel);
    }
}

static bool is_parallel(const mo_function *f, const mo_s *s)
{
    const mo_x *x = s->value;
    if (x->op == MO_X_MINIMUM || x->op == MO_X_MAXIMUM) return true;
    return x->op == MO_X_ADD && x->base == MO_T_REAL && (s->tree > 0 || f->reorder);
}

static void mark_folds(const mo_function *f, const mo_s *s)
{
    for (; s != NULL; s = s->next) {
        mo_fold *fold = s->loop != NULL ? s->loop->fold : NULL;
        if (fold != NULL) fold->parallel = true;
        for (int32_t q = 0; fold != NULL && q < fold->count; q++)
            fold->parallel = fold->parallel && is_parallel(f, fold->statement[q]);
        mark_folds(f, s->body);
        mark_folds(f, s->orelse);
    }
}

void tb_mo_settle_trees(mo_function *f)
{
    settle_list(f->body, false);
    mark_folds(f, f->body);
}

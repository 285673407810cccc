/* The stages of a large world in their order. The including file defines how a stage is launched:
 *
 *     TB_LARGE_LAUNCH(stage, items)    a stage of many lanes, for about `items` items
 *     TB_LARGE_COOPERATIVE(stage)         one whose lanes wait for each other
 *     TB_LARGE_SORT(keys, to, values, values_to, count, bits)    stable, ascending
 *     TB_LARGE_SUM(from, to, count)    exclusive prefix sums
 *     TB_LARGE_MARK(name)              a place between stages, for clocks
 *
 * `f` is the large world. Counts are those of the capacities: the counts in use are known only on
 * the card. */

/* One step. */
#define TB_LARGE_STEP(f)                                                                           \
    TB_LARGE_MARK(begin)                                                                           \
    TB_LARGE_LAUNCH(begin, (f)->plan.trees + (f)->plan.fixed)                                      \
    TB_LARGE_LAUNCH(boxes, (f)->plan.shapes)                                                       \
    TB_LARGE_MARK(tree)                                                                            \
    TB_LARGE_LAUNCH(codes, (f)->plan.small)                                                        \
    TB_LARGE_SORT((f)->codes, (f)->sorted_codes, (f)->order, (f)->sorted_order, (f)->plan.small,   \
                  TB_BOX_TREE_CODE_BITS)                                                           \
    TB_LARGE_LAUNCH(tree, (f)->plan.shapes)                                                        \
    TB_LARGE_LAUNCH(climb, (f)->plan.small)                                                        \
    TB_LARGE_MARK(pairs)                                                                           \
    TB_LARGE_LAUNCH(find, (f)->plan.shapes)                                                        \
    TB_LARGE_SUM((f)->found, (f)->found_from, (f)->plan.shapes + 1)                                \
    TB_LARGE_LAUNCH(pairs, (f)->plan.shapes)                                                       \
    TB_LARGE_MARK(narrow)                                                                          \
    TB_LARGE_LAUNCH(narrow, (f)->capacity.pairs)                                                   \
    if ((f)->plan.surfaces > 0) {                                                                  \
        TB_LARGE_LAUNCH(near_surfaces, (f)->capacity.pairs)                                        \
    }                                                                                              \
    if (!(f)->plan.only_balls || (f)->plan.surfaces > 0) {                                         \
        TB_LARGE_SUM((f)->hard_of, (f)->hard_from, (f)->capacity.pairs + 1)                        \
        TB_LARGE_LAUNCH(list_hard, (f)->capacity.pairs)                                            \
        TB_LARGE_SORT((f)->kinds, (f)->sorted_kinds, (f)->hard_pairs, (f)->sorted_hard,            \
                      (f)->capacity.hard, 8)                                                       \
    }                                                                                              \
    if (!(f)->plan.only_balls) {                                                                   \
        TB_LARGE_LAUNCH(hard, (f)->capacity.hard)                                                  \
    }                                                                                              \
    if ((f)->plan.surfaces > 0) {                                                                  \
        TB_LARGE_LAUNCH(surfaces, (f)->capacity.teams)                                             \
    }                                                                                              \
    TB_LARGE_SUM((f)->touching, (f)->touching_from, (f)->capacity.pairs + 1)                       \
    TB_LARGE_MARK(colour)                                                                          \
    TB_LARGE_LAUNCH(units, (f)->capacity.pairs)                                                    \
    TB_LARGE_COOPERATIVE(colour)                                                                   \
    TB_LARGE_SORT((f)->colours, (f)->sorted_colours, (f)->unit_numbers, (f)->sorted_units,         \
                  (f)->capacity.units,                                                             \
                  (f)->capacity.colours < 255     ? 8                                              \
                  : (f)->capacity.colours < 65535 ? 16                                             \
                                                  : 32)                                            \
    TB_LARGE_LAUNCH(order, (f)->capacity.units)                                                    \
    TB_LARGE_MARK(rows)                                                                            \
    if ((f)->plan.round && (f)->plan.rolls) {                                                      \
        TB_LARGE_LAUNCH(rows_round_rolls, (f)->capacity.units)                                     \
        TB_LARGE_MARK(solve)                                                                       \
        TB_LARGE_COOPERATIVE(solve_round_rolls)                                                    \
    } else if ((f)->plan.round) {                                                                  \
        TB_LARGE_LAUNCH(rows_round, (f)->capacity.units)                                           \
        TB_LARGE_MARK(solve)                                                                       \
        TB_LARGE_COOPERATIVE(solve_round)                                                          \
    } else if ((f)->plan.rolls) {                                                                  \
        TB_LARGE_SUM((f)->sizes, (f)->unit_from, (f)->capacity.units + 1)                          \
        TB_LARGE_LAUNCH(rows_rolls, (f)->capacity.units)                                           \
        TB_LARGE_MARK(solve)                                                                       \
        TB_LARGE_COOPERATIVE(solve_rolls)                                                          \
    } else {                                                                                       \
        TB_LARGE_SUM((f)->sizes, (f)->unit_from, (f)->capacity.units + 1)                          \
        TB_LARGE_LAUNCH(rows, (f)->capacity.units)                                                 \
        TB_LARGE_MARK(solve)                                                                       \
        TB_LARGE_COOPERATIVE(solve)                                                                \
    }                                                                                              \
    TB_LARGE_MARK(finish)                                                                          \
    TB_LARGE_LAUNCH(check, (f)->plan.trees)                                                        \
    TB_LARGE_LAUNCH(commit, (f)->capacity.contacts)                                                \
    TB_LARGE_LAUNCH(finish, 1)                                                                     \
    TB_LARGE_MARK(end)

/* The cache from the records that came with a state. */
#define TB_LARGE_TAKE_RECORDS(f)                                                                   \
    TB_LARGE_LAUNCH(sort_records, (f)->plan.shapes)                                                \
    TB_LARGE_SORT((f)->record_keys, (f)->sorted_record_keys, (f)->record_numbers,                  \
                  (f)->sorted_records, (f)->number_of_records, 32)                                 \
    TB_LARGE_LAUNCH(take_records, (f)->number_of_records)

/* Records of the last step's contacts. */
#define TB_LARGE_WRITE_RECORDS(f)                                                                  \
    TB_LARGE_LAUNCH(list_records, (f)->number_of_records)                                          \
    TB_LARGE_SORT((f)->record_keys, (f)->sorted_record_keys, (f)->record_numbers,                  \
                  (f)->sorted_records, (f)->number_of_records, 64)                                 \
    TB_LARGE_LAUNCH(write_records, (f)->number_of_records)

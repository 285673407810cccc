/* The stages of field mode in their order. Whoever includes this defines what it is to launch one:
 *
 *     TB_FIELD_LAUNCH(stage, items)    a stage of many lanes, for about so many items
 *     TB_FIELD_TOGETHER(stage)         one whose lanes wait for each other
 *     TB_FIELD_SORT(keys, to, values, values_to, count, bits)    stable, ascending
 *     TB_FIELD_SUM(from, to, count)    exclusive prefix sums
 *     TB_FIELD_MARK(name)              a place between stages, for clocks
 *
 * `f` is the field. Counts are those of the capacities: how much of them is in use only the card
 * knows. */

/* One step. */
#define TB_FIELD_STEP(f)                                                                           \
    TB_FIELD_MARK(begin)                                                                           \
    TB_FIELD_LAUNCH(begin, (f)->plan.trees + (f)->plan.fixed)                                      \
    TB_FIELD_LAUNCH(boxes, (f)->plan.shapes)                                                       \
    TB_FIELD_MARK(tree)                                                                            \
    TB_FIELD_LAUNCH(codes, (f)->plan.small)                                                        \
    TB_FIELD_SORT((f)->codes, (f)->sorted_codes, (f)->order, (f)->sorted_order, (f)->plan.small,   \
                  TB_FIELD_CODE_BITS)                                                              \
    TB_FIELD_LAUNCH(tree, (f)->plan.shapes)                                                        \
    TB_FIELD_LAUNCH(climb, (f)->plan.small)                                                        \
    TB_FIELD_MARK(pairs)                                                                           \
    TB_FIELD_LAUNCH(find, (f)->plan.shapes)                                                        \
    TB_FIELD_SUM((f)->found, (f)->found_from, (f)->plan.shapes + 1)                                \
    TB_FIELD_LAUNCH(pairs, (f)->plan.shapes)                                                       \
    TB_FIELD_MARK(narrow)                                                                          \
    TB_FIELD_LAUNCH(narrow, (f)->capacity.pairs)                                                   \
    if (!(f)->plan.only_balls) {                                                                   \
        TB_FIELD_SUM((f)->hard_of, (f)->hard_from, (f)->capacity.pairs + 1)                        \
        TB_FIELD_LAUNCH(list_hard, (f)->capacity.pairs)                                            \
        TB_FIELD_SORT((f)->kinds, (f)->sorted_kinds, (f)->hard_pairs, (f)->sorted_hard,            \
                      (f)->capacity.hard, 8)                                                       \
        TB_FIELD_LAUNCH(hard, (f)->capacity.hard)                                                  \
    }                                                                                              \
    TB_FIELD_SUM((f)->touching, (f)->touching_from, (f)->capacity.pairs + 1)                       \
    TB_FIELD_MARK(colour)                                                                          \
    TB_FIELD_LAUNCH(units, (f)->capacity.pairs)                                                    \
    TB_FIELD_TOGETHER(colour)                                                                      \
    TB_FIELD_SORT((f)->colours, (f)->sorted_colours, (f)->unit_numbers, (f)->sorted_units,         \
                  (f)->capacity.units,                                                             \
                  (f)->capacity.colours < 255     ? 8                                              \
                  : (f)->capacity.colours < 65535 ? 16                                             \
                                                  : 32)                                            \
    TB_FIELD_LAUNCH(order, (f)->capacity.units)                                                    \
    TB_FIELD_MARK(rows)                                                                            \
    if ((f)->plan.round) {                                                                         \
        TB_FIELD_LAUNCH(rows_round, (f)->capacity.units)                                           \
        TB_FIELD_MARK(solve)                                                                       \
        TB_FIELD_TOGETHER(solve_round)                                                             \
    } else {                                                                                       \
        TB_FIELD_SUM((f)->sizes, (f)->unit_from, (f)->capacity.units + 1)                          \
        TB_FIELD_LAUNCH(rows, (f)->capacity.units)                                                 \
        TB_FIELD_MARK(solve)                                                                       \
        TB_FIELD_TOGETHER(solve)                                                                   \
    }                                                                                              \
    TB_FIELD_MARK(finish)                                                                          \
    TB_FIELD_LAUNCH(check, (f)->plan.trees)                                                        \
    TB_FIELD_LAUNCH(commit, (f)->capacity.contacts)                                                \
    TB_FIELD_LAUNCH(finish, 1)                                                                     \
    TB_FIELD_MARK(end)

/* The cache from the records that came with a state. */
#define TB_FIELD_TAKE_RECORDS(f)                                                                   \
    TB_FIELD_LAUNCH(sort_records, (f)->plan.shapes)                                                \
    TB_FIELD_SORT((f)->record_keys, (f)->sorted_record_keys, (f)->record_numbers,                  \
                  (f)->sorted_records, (f)->number_of_records, 32)                                 \
    TB_FIELD_LAUNCH(take_records, (f)->number_of_records)

/* Records of the last step's contacts. */
#define TB_FIELD_WRITE_RECORDS(f)                                                                  \
    TB_FIELD_LAUNCH(list_records, (f)->number_of_records)                                          \
    TB_FIELD_SORT((f)->record_keys, (f)->sorted_record_keys, (f)->record_numbers,                  \
                  (f)->sorted_records, (f)->number_of_records, 64)                                 \
    TB_FIELD_LAUNCH(write_records, (f)->number_of_records)

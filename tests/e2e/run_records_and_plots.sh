#!/bin/sh
# Recordings hold a row a step, as CSV and as JSON lines; plots are SVG files with all that was asked for.
. tests/e2e/common.sh
write_scene "$dir/scene.xml"
scene=$dir/scene.xml

run 0 run "$scene" --steps 50 --quiet --record "$dir/a.csv" --plot "$dir/a.svg"
check "a header and 50 rows" test "$(wc -l <"$dir/a.csv")" -eq 51
check "rows as wide as the header" awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' "$dir/a.csv"
for column in time box.x box.qw body2.vz lift.position lift.velocity contacts residual energy; do
    check "a column $column" grep -qE "(^|,)$column(,|$)" "$dir/a.csv"
done
check "time moves on by dt" awk -F, 'NR == 3 { exit !($1 > 0.00399 && $1 < 0.00401) }' "$dir/a.csv"
check "no number is missing" sh -c "! grep -qiE '(nan|inf)' '$dir/a.csv'"
check "an SVG" grep -q "^<svg " "$dir/a.svg"
check "that ends" grep -q "^</svg>" "$dir/a.svg"
for text in "time (s)" "height (m)" "slides (m)" residual box body2 lift; do
    check "the plot says $text" grep -qF ">$text<" "$dir/a.svg"
done

run 0 run "$scene" --steps 50 --quiet --record "$dir/a.jsonl"
check "50 objects" test "$(grep -c '^{"time":.*"certificate":{.*}}$' "$dir/a.jsonl")" -eq 50

# the same numbers in both
z=$(tail -n 1 "$dir/a.csv" | cut -d , -f 4)
check "CSV and JSON lines agree" sh -c "tail -n 1 '$dir/a.jsonl' | grep -qF -- '$z'"

run 1 run "$scene" --steps 5 --record "$dir/a.txt"
says ".csv or .jsonl"
run 1 run "$scene" --steps 5 --plot "$dir/a.png"
says "a.png: a plot ends in .svg"
check "nothing was written" test ! -e "$dir/a.png"
run 0 run "$scene" --steps 5 --plot "$dir/A.SVG" --quiet
check "capitals are as good" grep -q "^<svg " "$dir/A.SVG"
run 1 run "$scene" --steps 5 --record "$dir/absent/a.csv"
says "absent/a.csv"
finish

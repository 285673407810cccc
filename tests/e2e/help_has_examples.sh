#!/bin/sh
# Every command explains itself with examples and exit codes; wrong words are answered by the
# right ones.
. tests/e2e/common.sh

run 0 --help
has examples
for command in run function solve info export scene grasp bench demo version; do
    run 0 "$command" --help
    has "usage: tribo $command"
    has "examples:"
    has "exit codes: 0"
    cp "$dir/out" "$dir/long"
    run 0 help "$command"
    check "help $command says the same as $command --help" cmp "$dir/out" "$dir/long"
done

# help lists defaults, of solving and of stepping
run 0 solve --help
has 'residual that counts as solved (1e-08)'
has 'each file (100000)'

run 2
run 2 rnu
says "did you mean 'run'"
run 2 run --toleranse 1 x.xml
says "did you mean '--tolerance'"
run 2 run --steps many x.xml
says "--steps"
run 2 run --steps -3 x.xml
run 2 run --dt 0 x.xml
says "--dt must be above 0"
run 2 run --dt nan x.xml
run 2 run --solver soor x.xml
says "did you mean 'sor'"
run 2 run --scheme moreu x.xml
says "did you mean 'moreau'"
run 2 run
says "MODEL is missing"
run 2 run a.xml b.xml
says "b.xml"
run 2 run --steps
says "--steps needs a value"
run 2 export x.xml
says "--problem"

run 0 version
has "tribo 0."
has sor
run 0 --version --json
has '"version":"0.'
finish

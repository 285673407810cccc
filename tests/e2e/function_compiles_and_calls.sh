#!/bin/sh
# tribo function compiles Modelica, calls it with files of NumPy, and says where a source or a call is
# wrong.
. tests/e2e/common.sh
export XDG_CACHE_HOME="$dir/cache"

cat >"$dir/heat.mo" <<'MO'
function heat "explicit conduction on a grid"
  input Real u[:, :];
  input Real a = 0.25;
  input Integer steps = 1;
  output Real v[size(u, 1), size(u, 2)];
  output Real mean;
protected
  Real w[size(u, 1), size(u, 2)];
algorithm
  v := u;
  for s in 1:steps loop
    w := v;
    for i in 2:size(u, 1) - 1, j in 2:size(u, 2) - 1 loop
      v[i, j] := w[i, j] + a * (w[i - 1, j] + w[i + 1, j] + w[i, j - 1] + w[i, j + 1]
        - 4 * w[i, j]);
    end for;
  end for;
  mean := sum(v) / (size(v, 1) * size(v, 2));
  annotation(gpuFunction = true);
end heat;
MO
run 0 function compile "$dir/heat.mo"
has 'heat  (card)'
has 'Real[:,:]'
has 'kernel over (i, j)'
has 'loop over s at line 11 takes several rounds a launch, in tiles'
has "kernel over (elements, elements), which reduces"
run 0 function compile --json "$dir/heat.mo"
has '"card":true'

# a 3 x 4 array of numbers 1 to 12, little endian
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }"
    printf '\0\0\0\0\0\0\360\77\0\0\0\0\0\0\0\100\0\0\0\0\0\0\10\100\0\0\0\0\0\0\20\100'
    printf '\0\0\0\0\0\0\24\100\0\0\0\0\0\0\30\100\0\0\0\0\0\0\34\100\0\0\0\0\0\0\40\100'
    printf '\0\0\0\0\0\0\42\100\0\0\0\0\0\0\44\100\0\0\0\0\0\0\46\100\0\0\0\0\0\0\50\100'
} >"$dir/u.npy"
for backend in interpreter cpu auto; do
    run 0 function call "$dir/heat.mo" --function heat --backend $backend --input u="$dir/u.npy" \
        --input a=0.125 --input steps=2 --output v="$dir/v.$backend.npy"
    has 'mean = 6.5'
    has 'v3 x 4'
done
check 'interpreter and C give the same bytes' cmp "$dir/v.interpreter.npy" "$dir/v.cpu.npy"
run 0 function call "$dir/heat.mo" --json --backend cpu --input u="$dir/u.npy"
has '"backend":"cpu"'
has '"shape":[3,4]'
check 'compiled code is cached' [ "$(ls "$dir"/cache/tribo/functions/*.so | wc -l)" -eq 1 ]

# an integrator of rates, and a function that is none
cat >"$dir/decay.mo" <<'MO'
function rates
  input Real x;
  input Real k;
  output Real dx;
algorithm
  dx := -k * x;
end rates;
MO
"$TRIBO" function integrate "$dir/decay.mo" --method implicit_euler >"$dir/steps.mo"
run 0 function call "$dir/steps.mo" --function rates_implicit_euler --backend interpreter \
    --input x0=8 --input k=1 --input dt=1 --input n_steps=3
has 'x = 1'
run 1 function integrate "$dir/heat.mo" --method euler
says "output 'mean' of 'heat' is no rate of its input 'a'"
run 2 function integrate "$dir/decay.mo" --method adams
says 'method'

# failures of a call
run 1 function call "$dir/heat.mo" --input u=0.5
says "input 'u' is an array"
run 1 function call "$dir/heat.mo" --input u="$dir/none.npy"
says none.npy
run 1 function call "$dir/heat.mo"
says "input 'u' is missing"
run 1 function call "$dir/heat.mo" --input u="$dir/u.npy" --input b=1
says "no input 'b'"
run 1 function call "$dir/heat.mo" --input u="$dir/u.npy" --output w=w.npy
says "no output 'w'"
run 2 function call "$dir/heat.mo" --function haet --input u="$dir/u.npy"
says "no function 'haet'"
run 2 function run "$dir/heat.mo"
run 2 function call "$dir/heat.mo" --input u
says 'expected NAME=VALUE'

# an error in a source names file, line, column and the expected token, with a caret
place() { # SOURCE-LINE... WHERE WHAT
    printf '%s\n' "$1" >"$dir/bad.mo"
    run 1 function compile "$dir/bad.mo"
    says "bad.mo:$2: $3"
    says '^'
}
place 'function f output Real y; algorithm y := 1 +; end f;' 1:45 "unexpected ';', expected"
place 'function f output Real y; algorithm y := x; end f;' 1:42 "no variable or constant 'x'"
place 'function f output Real y; algorithm y := {1, 2}; end f;' 1:37 "'y' is Real, its value is Integer[:]"
place 'function f output Real y; algorithm y := {1, 2} + {1, 2, 3} * 2; end f;' 1:49 'sizes of'
place 'function f output Real y; algorithm when true then end when; end f;' 1:37 "'when' is left out"
place 'model m end m;' 1:1 "'model' is left out"
place 'function f output Real y; algorithm y := 1; end g;' 1:49 "'end g' closes 'f'"

# where a call fails
fails() { # BODY WHERE WHAT
    printf 'function f input Real x = 0; input Integer k = 5; output Real y; protected Real a[3];\nalgorithm\n%s\nend f;\n' "$1" >"$dir/f.mo"
    for backend in interpreter cpu; do
        run 1 function call "$dir/f.mo" --backend $backend
        says "f.mo:$2: $3"
    done
}
fails 'y := 1 / x;' 3:8 'division by zero'
fails 'y := a[k];' 3:6 "index 5 is outside of 1:3 in dimension 1 of 'a'"
fails 'assert(x > 1, "x is too small"); y := 1;' 3:1 'assertion failed: x is too small'
fails 'y := sqrt(x - 1);' 3:6 'sqrt of a negative number'
fails 'y := k * 4503599627370496 * 4096;' 3:27 'the result is outside of Integer'
run 1 function call "$dir/f.mo" --backend interpreter --memory 0.000001
says 'limit'
printf 'function f output Real y; algorithm y := 0; while true loop y := y + 1; end while; end f;\n' >"$dir/f.mo"
for backend in interpreter cpu; do
    run 1 function call "$dir/f.mo" --backend $backend --seconds 0.2
    says 'longer than its limit of 0.2 s'
done
finish

#!/bin/sh
# `make install`: the installed files work from their place. A C program finds the library by
# pkg-config (shared and static), another finds the client; the command and the daemon run; the
# systemd unit and the configuration name the places where things are.
. tests/e2e/common.sh
build=${TRIBO_BUILD#"$PWD/"}
root=$dir/root
prefix=$root/usr/local
: "${CC:=cc}"

# installs built files only: a build would replace binaries that other tests run
install() {
    ran="make install $*"
    if make -o products -o "$build/libtribo_client.a" -o "$build/libtribo_gpu.so" BUILD="$build" install "$@" >"$dir/out" 2>"$dir/err"
    then pass; else fail 'it failed'; fi
}
install DESTDIR="$root"
for file in bin/tribo bin/tribod $(cd solver && printf 'include/%s ' tribo*.h) include/tribo_client.h lib/libtribo.a \
    lib/libtribo_client.a lib/pkgconfig/tribo.pc lib/pkgconfig/tribo-client.pc \
    lib/systemd/system/tribod.service include/tribo/v1/simulation.pb-c.h share/man/man1/tribo.1 share/man/man1/tribo-run.1 \
    share/bash-completion/completions/tribo share/zsh/site-functions/_tribo share/fish/vendor_completions.d/tribo.fish; do
    check "there is $file" [ -s "$prefix/$file" ]
done
check 'the shared library is found by both of its names' [ -s "$prefix/lib/libtribo.so" ]
soname=$(objdump -p "$prefix/lib/libtribo.so" | awk '$1 == "SONAME" { print $2 }')
check 'and by its soname' [ -s "$prefix/lib/${soname:-none}" ]
check 'nothing of the tests' sh -c "! find '$root' -name '*failing*' | grep -q ."
check 'no place of the build or of DESTDIR in what is installed' sh -c \
    "! grep -rlI -e '$root' -e '$PWD' '$root'"

# ---- the command and the daemon ----

installed() { TRIBO=$prefix/bin/tribo TRIBOD=$prefix/bin/tribod; }
version=$("$TRIBO" version | awk 'NR == 1 { print $2 }')
installed
run 0 version
has "tribo $version"
ran='tribod --check-config'
"$TRIBOD" --check-config --config "$root/etc/tribod.ini" >"$dir/out" 2>"$dir/err"
is_right=$?
check 'the configuration is taken' [ "$is_right" -eq 0 ]
"$TRIBOD" --print-config --config "$root/etc/tribod.ini" >"$dir/printed" 2>"$dir/err"
"$TRIBOD" --print-config >"$dir/initial" 2>"$dir/err"
check 'and says what is so without it' cmp "$dir/printed" "$dir/initial"

unit=$prefix/lib/systemd/system/tribod.service
check 'the unit starts what is installed' grep -q \
    '^ExecStart=/usr/local/bin/tribod --config /etc/tribod.ini' "$unit"
check 'no place is left open in it' sh -c "! grep '@[A-Z]*@' '$unit'"

# ---- C programs ----

package() {
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --define-prefix "$@"
}
ran=pkg-config
check 'its version' [ "$(package --modversion tribo)" = "$version" ]
check 'the way to the library for the loader' \
    [ "$(package --variable=rpath tribo)" = "-Wl,-rpath,$prefix/lib" ]
cat >"$dir/drop.c" <<'C'
#include <stdio.h>

#include <tribo.h>

int main(void)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_handle ball;
    tb_body_def body = tb_body_defaults();
    tb_joint_def joint = tb_joint_defaults();
    tb_shape_def shape = tb_shape_defaults();
    if (tb_scene_create(NULL, &scene, &error) != TB_OK) return 1;
    body.position[2] = 10;
    if (tb_scene_add_body(scene, &body, &ball, &error) != TB_OK) return 1;
    joint.body = shape.body = ball;
    joint.type = TB_JOINT_FREE;
    shape.type = TB_SHAPE_SPHERE;
    shape.size[0] = 0.1;
    if (tb_scene_add_joint(scene, &joint, NULL, &error) != TB_OK) return 1;
    if (tb_scene_add_shape(scene, &shape, NULL, &error) != TB_OK) return 1;
    if (tb_scene_compile(scene, &model, &error) != TB_OK) return 1;
    if (tb_state_create(model, &state, &error) != TB_OK) return 1;
    if (tb_stepper_create(NULL, &stepper, &error) != TB_OK) return 1;
    if (tb_step(stepper, state, (int)(1 / tb_model_dt(model) + 0.5), NULL, &error) != TB_OK)
        return 1;
    printf("%s, fell to %.2f m\n", TB_VERSION, tb_state_q(state)[2]);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
    return 0;
}
C
compile() { # OUT SOURCE FLAG...: pkg-config's flags are words
    out=$1 source=$2
    shift 2
    ran="$CC $source"
    if $CC -std=c11 -Wall -Wextra -Werror "$source" -o "$out" "$@" >"$dir/out" 2>"$dir/err"
    then pass; else fail 'it does not compile'; fi
}
# shellcheck disable=SC2046
compile "$dir/shared" "$dir/drop.c" $(package --cflags --libs tribo)
# shellcheck disable=SC2046
compile "$dir/static" "$dir/drop.c" $(package --cflags tribo) \
    $(package --static --libs tribo | sed 's/-ltribo\b/-l:libtribo.a/')
for kind in shared static; do
    ran="the $kind program"
    LD_LIBRARY_PATH=$prefix/lib "$dir/$kind" >"$dir/out" 2>"$dir/err"
    check 'it runs' [ $? -eq 0 ]
    # semi-implicit Euler falls a little more than g t^2 / 2 = 4.905 m
    check 'and a ball falls' grep -Eq "^$version, fell to 5\.0[89] m$" "$dir/out"
done
check 'one needs the shared library' sh -c "ldd '$dir/shared' | grep -q '$soname'"
check 'the other does not' sh -c "! ldd '$dir/static' | grep -q '$soname'"

# ---- a client of the installed daemon ----

. tests/e2e/common_daemon.sh
installed
write_scene "$dir/scene.xml"
daemon store --config "$root/etc/tribod.ini"
run 0 info --server "$grpc"
has "tribod $version"
# shellcheck disable=SC2046
compile "$dir/step" clients/c/examples/step.c $(package --cflags --libs tribo-client)
ran='the example of the C client'
LD_LIBRARY_PATH=$prefix/lib "$dir/step" "$grpc" "$dir/scene.xml" 500 >"$dir/out" 2>"$dir/err"
check 'it runs' [ $? -eq 0 ]
has '1.000 s, body 1 at'
stop

# ---- again: the machine owner's files stay ----

echo '# mine' >>"$root/etc/tribod.ini"
install DESTDIR="$root" PREFIX=/opt/tribod SYSCONFDIR=/etc
check 'the configuration is left alone' grep -q '^# mine' "$root/etc/tribod.ini"
check 'another prefix' grep -q '^ExecStart=/opt/tribod/bin/tribod' \
    "$root/opt/tribod/lib/systemd/system/tribod.service"
# ---- a prefix of one's own: nothing is written outside of it ----

home=$dir/home
install PREFIX="$home/x"
check 'the configuration is below the prefix' [ -s "$home/x/etc/tribod.ini" ]
check 'the unit names it there' grep -q "$home/x/etc/tribod.ini" \
    "$home/x/lib/systemd/system/tribod.service"
make -n -o products -o "$build/libtribo_client.a" -o "$build/libtribo_gpu.so" BUILD="$build" install PREFIX="$home/x" >"$dir/out" 2>"$dir/err"
check 'no command of the installation names another place to write to' sh -c \
    "! grep -E '^install|^ln| > ' '$dir/out' | grep -v stamp | grep -vq '$home/x'"
finish

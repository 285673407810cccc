#!/bin/sh
# Builds and installs the programs below OUT for an image or a package.
#
#   deploy/image/install.sh OUT COMMIT [GPU_ARCHITECTURES]
#
# GPU_ARCHITECTURES: compute capabilities of the plug-in, such as "75 80 86 89 90 100 120"; none:
# no plug-in. The newest one is also kept as PTX, for cards to come. A plug-in that was compiled
# before, build/plugin/libtribo_gpu.so, is taken as it is.
set -eu
out=$1 commit=$2 architectures=${3:-}
cd "$(dirname "$0")/../.."

nvcc=
compiled=build/plugin/libtribo_gpu.so
if [ -n "$architectures" ] && ! [ -e "$compiled" ]; then
    nvcc=$(deploy/find_nvcc.sh build)
    [ -n "$nvcc" ] || { echo 'install.sh: a plug-in is asked for, but there is no CUDA 13 compiler' >&2; exit 1; }
fi
dashboard=
[ ! -e build/dashboard/dist/index.html ] || dashboard=build/dashboard/dist
make -j"$(nproc)" install PREFIX=/usr SYSCONFDIR=/etc DESTDIR="$out" COMMIT="$commit" NVCC="$nvcc" \
    DASHBOARD_DIST="$dashboard" \
    GPU_ARCHITECTURES="$architectures"
strip --strip-unneeded "$out"/usr/bin/tribo "$out"/usr/bin/tribod "$out"/usr/lib/*.so.*.*
if [ -n "$architectures" ] && [ -e "$compiled" ]; then install -D -m 755 "$compiled" "$out/usr/lib/tribo/libtribo_gpu.so"; fi
if [ -e "$out/usr/lib/tribo/libtribo_gpu.so" ]; then strip --strip-unneeded "$out/usr/lib/tribo/libtribo_gpu.so"; fi

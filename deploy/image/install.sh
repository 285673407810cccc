#!/bin/sh
# Builds and installs the programs below OUT for an image or a package.
#
#   deploy/image/install.sh OUT COMMIT [GPU_ARCHITECTURES]
#
# GPU_ARCHITECTURES: compute capabilities of the plug-in, such as "75 80 90 100 120"; none:
# no plug-in. The newest one is also kept as PTX, for cards to come.
set -eu
out=$1 commit=$2 architectures=${3:-}
cd "$(dirname "$0")/../.."

nvcc=
if [ -n "$architectures" ]; then
    nvcc=$(deploy/find_nvcc.sh build)
    [ -n "$nvcc" ] || { echo 'install.sh: a plug-in is asked for, but there is no CUDA 13 compiler' >&2; exit 1; }
fi
dashboard=
[ ! -e build/dashboard/dist/index.html ] || dashboard=build/dashboard/dist
make -j"$(nproc)" install PREFIX=/usr SYSCONFDIR=/etc DESTDIR="$out" COMMIT="$commit" NVCC="$nvcc" \
    DASHBOARD_DIST="$dashboard" \
    GPU_ARCHITECTURES="$architectures"
strip --strip-unneeded "$out"/usr/bin/tribo "$out"/usr/bin/tribod "$out"/usr/lib/*.so.*.*
if [ -e "$out/usr/lib/tribo/libtribo_gpu.so" ]; then strip --strip-unneeded "$out/usr/lib/tribo/libtribo_gpu.so"; fi

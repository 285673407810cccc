#!/bin/sh
# Builds Debian packages of the committed tree into BUILD/deb: tribod, libtribo0, libtribo-dev, and
# tribod-gpu where NVCC names a compiler of CUDA 13 or PLUGIN a plug-in.
#
#   NVCC=... BUILD=build deploy/deb.sh
#
# GPU_ARCHITECTURES  compute capabilities of the plug-in; default EVERY_CARD of deploy/config.mk
# PLUGIN             libtribo_gpu.so of an earlier build of the same sources, in place of one that
#                    the packages' build compiles, which can take an hour
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${BUILD:-build}")/deb
version=$(sed -n 's/^.define TB_VERSION "\(.*\)"/\1/p' solver/tribo.h)
commit=$(git rev-parse --short=12 HEAD)
tree=$build/tribod-$version

rm -rf "$build"
mkdir -p "$tree"
git archive HEAD | tar -x -C "$tree"
if [ -e "${BUILD:-build}/dashboard/dist/index.html" ]; then
    mkdir -p "$tree/build/dashboard"
    cp -r "${BUILD:-build}/dashboard/dist" "$tree/build/dashboard/"
fi
if [ -n "${PLUGIN:-}" ]; then
    mkdir -p "$tree/build/plugin"
    cp "$PLUGIN" "$tree/build/plugin/libtribo_gpu.so"
fi
architectures=${GPU_ARCHITECTURES:-$(sed -n 's/^EVERY_CARD := //p' deploy/config.mk)}
cp -r "$tree/deploy/debian" "$tree/debian"
{
    echo "tribod ($version) unstable; urgency=medium"
    echo
    echo "  * Commit $commit; CHANGELOG.md.gz beside this file lists the changes."
    echo
    echo " -- Tribod developers <tribod@tribod.invalid>  $(git log -1 --format=%cD)"
} >"$tree/debian/changelog"
echo 'CHANGELOG.md' >"$tree/debian/tribod.docs"

cd "$tree"
COMMIT=$commit NVCC=${NVCC:-} GPU_ARCHITECTURES=$architectures \
    SOURCE_DATE_EPOCH=$(sed -n '/^ -- /{s/.*>  //p;q}' debian/changelog | xargs -0 date +%s -d) \
    dpkg-buildpackage --build=binary --unsigned-changes --no-check-builddeps -j"$(nproc)"
rm -rf "$tree"
ls -l "$build"/*.deb

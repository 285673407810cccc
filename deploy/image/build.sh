#!/bin/sh
# Builds the images tribod:cpu and tribod:gpu, or one of them.
#
#   deploy/image/build.sh [cpu] [gpu]            none named: cpu, and gpu if GPU_ARCHITECTURES is set
#
# ENGINE             podman (default where it is) or docker
# BASE               image that the build stage begins with; default debian:bookworm-slim, or a base
#                    made by mmdebstrap where the registry cannot be reached
# GPU_ARCHITECTURES  compute capabilities of the gpu image; default EVERY_CARD of deploy/config.mk
#                    the build takes this machine's CUDA 13 compiler where podman can mount one
#                    (deploy/find_nvcc.sh), else it installs NVIDIA's packages from PyPI
# PLUGIN             libtribo_gpu.so of an earlier build of the same sources, for the gpu image in
#                    place of one that the build compiles, which can take an hour
# BUILD_ARGUMENTS    more arguments of `podman build`, such as --volume
set -eu
cd "$(dirname "$0")/../.."
engine=${ENGINE:-$(command -v podman || command -v docker || true)}
[ -n "$engine" ] || { echo 'build.sh: neither podman nor docker is here; install one, or set ENGINE' >&2; exit 1; }
[ $# -gt 0 ] || set -- cpu

# in a container without privileges of its own podman needs these; docker does without
isolation=
case $engine in *podman) isolation='--isolation chroot --network host' ;; esac

if [ -z "${BASE:-}" ]; then
    BASE=docker.io/library/debian:bookworm-slim
    if ! "$engine" image inspect "$BASE" >/dev/null 2>&1 && ! timeout 60 "$engine" pull -q "$BASE" >/dev/null 2>&1; then
        BASE=localhost/tribo-base:bookworm
        if ! "$engine" image inspect "$BASE" >/dev/null 2>&1; then
            command -v mmdebstrap >/dev/null || { echo 'build.sh: no registry and no mmdebstrap; install mmdebstrap, or set BASE' >&2; exit 1; }
            echo "build.sh: no registry can be reached; mmdebstrap makes $BASE"
            mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm - | "$engine" import -q - "$BASE" >/dev/null
        fi
    fi
fi

commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
epoch=$(git log -1 --format=%ct 2>/dev/null || echo 0)
version=$(sed -n 's/^.define TB_VERSION "\(.*\)"/\1/p' solver/tribo.h)
for target in "$@"; do
    architectures='' compiler=''
    rm -rf build/plugin
    case $target in
    cpu) ;;
    gpu)
        if [ -n "${PLUGIN:-}" ]; then
            mkdir -p build/plugin
            cp "$PLUGIN" build/plugin/libtribo_gpu.so
        else
            architectures=${GPU_ARCHITECTURES:-$(sed -n 's/^EVERY_CARD := //p' deploy/config.mk)}
            nvcc=$(deploy/find_nvcc.sh "${BUILD:-build}")
            case $engine in *podman) [ -z "$nvcc" ] || compiler="--volume ${nvcc%/bin/nvcc}:/usr/local/cuda:ro" ;; esac
        fi
        ;;
    *) echo "build.sh: no image '$target'; there are cpu and gpu" >&2; exit 2 ;;
    esac
    # shellcheck disable=SC2086
    "$engine" build $isolation $compiler ${BUILD_ARGUMENTS:-} --target "$target" --tag "tribod:$target" --tag "tribod:$version-$target" \
        --build-arg BASE="$BASE" --build-arg COMMIT="$commit" --build-arg VERSION="$version" \
        --build-arg SOURCE_DATE_EPOCH="$epoch" --build-arg GPU_ARCHITECTURES="$architectures" \
        $(case $engine in *podman) echo --timestamp "$epoch" --format docker --layers ;; esac) \
        -f deploy/image/Containerfile .
    rm -rf build/plugin
    size=$("$engine" save "tribod:$target" | gzip -1 | wc -c)
    echo "tribod:$target: $((size / 1000000)) MB compressed"
done

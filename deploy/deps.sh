#!/bin/sh
# Installs the packages that Tribod needs, by groups:
#
#   deploy/deps.sh [GROUP...]         none named: build test clang python dashboard web gpu
#
#   build   compiler and libraries
#   test    libcheck, clang-format 14, curl, jq and openssl
#   clang   clang with libFuzzer, and libomp with Archer: `make fuzz`, `make check-tsan`
#   python  a Python environment in build/python for the client and its tests
#   dashboard  Node, and in build/dashboard the packages of clients/web
#   web     Node, Chromium and in build/web the Connect packages of npm: clients_agree.py
#   gpu     a CUDA compiler of version 13: one that is there, else NVIDIA's in build/cuda, with NVRTC
#   fuzz    in build/protobuf-c the source of the installed protobuf-c, for the fuzz targets
#   clients Go, Rust and Node for the gRPC clients of `make check-clients`
#   image   podman with runc, and mmdebstrap, which makes a base image without a registry: `make image`
#   helm    Go, catatonit, helm and kubeconform in build/helm: `make helm-check`
#   deb     debhelper, help2man and lintian: `make deb`
#   ray     Ray and pyarrow in the environment of python: `make check-ray`
#   learn   torch, JAX, stable-baselines3, CoACD (6 GiB) in build/learn: `make check-learn`
#   alerts  Prometheus, for `make alerts-check`; as a service it is not started
#   collector  Go, and OpenTelemetry's collector in build/otelcol: `make collector-check`
#   postgres  PostgreSQL, for runs_reach_the_fleet.py; as a service it is not started
#   peers   a Python environment in build/peers with the programs that Tribod is compared with
#   gpu-peers  the same in build/gpu-peers for those that need a GPU: `make bench-gpu`
#
# Safe to run twice: present parts are left alone, without use of the network. Debian and
# Ubuntu install by apt-get (with sudo unless root); elsewhere it lists missing parts and stops.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- build test clang python dashboard web gpu

# the Debian packages of a group that are not there yet
missing=
need() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
have() { command -v "$1"; }
library() { pkg-config --exists "$1"; }
hdf5() { library hdf5-serial || library hdf5; }
sundials() { [ -e /usr/include/arkode/arkode_erkstep.h ]; }
compiler() { have gcc && have g++ && have make && [ -e /usr/include/stdlib.h ]; }
formatter() { have clang-format-14 || have clang-format; }
fuzzer() { [ -e "$(clang -print-resource-dir)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" ]; }
archer() { [ -e "$(clang -print-resource-dir)/../../libarcher.so" ]; }
postgres() { have initdb || ls /usr/lib/postgresql/*/bin/initdb; }
browser() { have chromium || have chromium-browser; }
virtual_environment() { python3 -c 'import ensurepip, venv'; }

find_missing() {
    missing=
    for group in "$@"; do
        case $group in
        build)
            need build-essential compiler
            need pkg-config have pkg-config
            need flex have flex
            need bison have bison
            need libxml2-dev library libxml-2.0
            need libhdf5-dev hdf5
            need libqhull-dev library qhull_r
            need libjansson-dev library jansson
            need libsodium-dev library libsodium
            need libpng-dev library libpng
            need liblapack-dev library lapack
            need libblas-dev library blas
            need libnghttp2-dev library libnghttp2
            need protobuf-compiler have protoc
            need protobuf-c-compiler have protoc-gen-c
            need libprotobuf-c-dev library libprotobuf-c
            need libmicrohttpd-dev library libmicrohttpd
            need libsqlite3-dev library sqlite3
            need libinih-dev library inih
            need libgnutls28-dev library gnutls
            need libpq-dev library libpq
            need zlib1g-dev library zlib
            need libsundials-dev sundials
            ;;
        test)
            need check library check
            need libgmp-dev library gmp
            need curl have curl
            need jq have jq
            need openssl have openssl
            need clang-format-14 formatter
            ;;
        clang)
            need clang have clang
            need libclang-rt-14-dev fuzzer
            need libomp-dev archer
            ;;
        fuzz)
            need libprotobuf-c-dev library libprotobuf-c
            need dpkg-dev have dpkg-source
            ;;
        helm)
            need golang-go have go
            need catatonit have catatonit
            ;;
        collector) need golang-go have go ;;
        python | ray | learn | peers | gpu-peers) need python3-venv virtual_environment ;;
        gpu)
            need build-essential compiler
            [ -n "$(deploy/find_nvcc.sh "${BUILD:-build}")" ] ||
                need python3-venv virtual_environment
            ;;
        clients)
            need golang-go have go
            need cargo have cargo
            need nodejs have node
            need npm have npm
            need default-jdk-headless have javac
            need maven have mvn
            ;;
        deb)
            need debhelper have dh
            need dpkg-dev have dpkg-buildpackage
            need help2man have help2man
            need lintian have lintian
            ;;
        alerts) need prometheus have prometheus ;;
        postgres) need postgresql postgres ;;
        image)
            if ! docker info >/dev/null 2>&1; then
                need podman have podman
                need buildah have buildah
                need runc have runc
            fi
            need mmdebstrap have mmdebstrap
            ;;
        dashboard)
            need nodejs have node
            need npm have npm
            ;;
        web)
            need curl have curl
            need nodejs have node
            need npm have npm
            need chromium browser
            ;;
        *)
            echo "deps.sh: no group '$group'; there are build, test, clang, python, dashboard, web, gpu, fuzz, clients, image, deb, helm, alerts, collector, postgres, ray, learn, peers, gpu-peers" >&2
            exit 2
            ;;
        esac
    done
}

install_missing() {
    if ! have apt-get >/dev/null; then
        echo "deps.sh: no apt-get here. Please install what these Debian packages hold:$missing" >&2
        exit 1
    fi
    sudo=
    if [ "$(id -u)" -ne 0 ]; then
        if ! have sudo >/dev/null; then
            echo "deps.sh: not root and no sudo. Please install:$missing" >&2
            exit 1
        fi
        sudo=sudo
    fi
    echo "installing:$missing"
    $sudo apt-get -q -o DPkg::Lock::Timeout=120 update

    # where clang 14 is gone, the distribution's own will do
    packages=
    for package in $missing; do
        if ! apt-cache show "$package" >/dev/null 2>&1; then
            case $package in
            clang-format-14) package=clang-format ;;
            libclang-rt-14-dev) package=libclang-rt-dev ;;
            esac
        fi
        packages="$packages $package"
    done
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
        install --no-install-recommends $packages
}

find_missing "$@"
if [ -n "$missing" ]; then
    install_missing
    find_missing "$@"
    if [ -n "$missing" ]; then
        echo "deps.sh: still missing after the installation:$missing" >&2
        exit 1
    fi
fi

case " $* " in
*" python "*)
    environment=${BUILD:-build}/python
    python=$environment/bin/python
    if ! [ -e "$environment/complete" ]; then
        echo "installing: the Python client's packages into $environment"
        python3 -m venv "$environment"
        "$python" -m pip install --quiet --disable-pip-version-check setuptools wheel \
            grpcio grpcio-tools grpcio-health-checking grpcio-reflection protobuf numpy \
            typing_extensions tqdm pytest pytest-asyncio ruff mypy types-grpcio types-protobuf
        touch "$environment/complete"
    fi
    if ! "$python" -c 'import cffi, gymnasium, opentelemetry.proto' 2>/dev/null; then
        "$python" -m pip install --quiet --disable-pip-version-check cffi gymnasium \
            opentelemetry-proto
    fi
    ;;
esac

case " $* " in
*" ray "*)
    environment=${BUILD:-build}/python
    # opentelemetry-proto, of the tests, makes Ray believe that all of OpenTelemetry is there
    if ! "$environment/bin/python" -c 'import ray, pyarrow, opentelemetry.sdk.metrics, opentelemetry.exporter.prometheus' 2>/dev/null; then
        echo "installing: Ray and pyarrow into $environment"
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check ray pyarrow \
            opentelemetry-sdk opentelemetry-exporter-prometheus
    fi
    ;;
esac

case " $* " in
*" helm "*)
    tools=$(mkdir -p "${BUILD:-build}/helm/bin" && cd "${BUILD:-build}/helm/bin" && pwd)
    for tool in helm.sh/helm/v3/cmd/helm@v3.16.4 \
        github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7; do
        name=${tool%@*}
        if ! [ -x "$tools/${name##*/}" ]; then
            echo "installing: ${name##*/} into $tools"
            GOBIN=$tools go install "$tool"
        fi
    done
    environment=${BUILD:-build}/python
    "$environment/bin/python" -c 'import yaml' 2>/dev/null ||
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check pyyaml
    ;;
esac

# a collector of the parts that the check needs; the releases of the whole one are not in the Go proxy
case " $* " in
*" collector "*)
    folder=${BUILD:-build}/otelcol version=v0.165.0
    if ! [ -x "$folder/otelcol" ]; then
        echo "installing: OpenTelemetry's collector into $folder"
        mkdir -p "$folder/bin"
        GOBIN=$(cd "$folder/bin" && pwd) go install "go.opentelemetry.io/collector/cmd/builder@$version"
        cat >"$folder/builder.yaml" <<Y
dist: {name: otelcol, output_path: $folder/source, version: ${version#v}}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version}]
exporters: [{gomod: go.opentelemetry.io/collector/exporter/debugexporter $version}]
processors: []
extensions: []
Y
        GOFLAGS=-buildvcs=false "$folder/bin/builder" --config "$folder/builder.yaml" >"$folder/log" 2>&1 || {
            tail -n 20 "$folder/log" >&2
            exit 1
        }
        mv "$folder/source/otelcol" "$folder/otelcol"
    fi
    ;;
esac

case " $* " in
*" learn "*)
    environment=${BUILD:-build}/learn
    if ! [ -e "$environment/complete" ]; then
        echo "installing: torch, JAX, stable-baselines3, CoACD, viser into $environment"
        python3 -m venv "$environment"
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check setuptools wheel \
            grpcio grpcio-tools protobuf numpy typing_extensions cffi gymnasium pandas pytest \
            pytest-asyncio torch 'jax[cpu]' stable-baselines3 trimesh scipy coacd ezdxf viser
        touch "$environment/complete"
    fi
    ;;
esac

# NVIDIA's own packages of the compiler, without the rest of the toolkit; a driver is not needed
case " $* " in
*" gpu "*)
    environment=${BUILD:-build}/cuda
    if [ -z "$(deploy/find_nvcc.sh "${BUILD:-build}")" ]; then
        echo "installing: a CUDA compiler into $environment"
        rm -rf "$environment"
        python3 -m venv "$environment"
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
            'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*' \
            'nvidia-nvvm==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-nvrtc==13.0.*' \
            'nvidia-cuda-cuobjdump==13.*'
        if [ -z "$(deploy/find_nvcc.sh "${BUILD:-build}")" ]; then
            echo "deps.sh: no working nvcc in $environment after the installation" >&2
            exit 1
        fi
    elif [ -e "$environment/bin/python" ] &&
        ! ls "$environment"/lib/python3*/site-packages/nvidia/cu13/bin/cuobjdump >/dev/null 2>&1; then
        echo "installing: NVRTC and cuobjdump into $environment"
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
            'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-cuobjdump==13.*'
    fi
    ;;
esac

# Installs exactly the versions of FOLDER's lock file into $2; none of their scripts runs.
install_packages() {
    from=$1 environment=$2
    lock=package-lock.json
    if ! cmp -s "$from/$lock" "$environment/complete"; then
        echo "installing: the packages of $from into $environment"
        mkdir -p "$environment"
        cp "$from/package.json" "$from/$lock" "$environment/"
        (cd "$environment" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
        cp "$environment/$lock" "$environment/complete"
    fi
}
case " $* " in
*" dashboard "*) install_packages clients/web "${BUILD:-build}/dashboard" ;;
esac
case " $* " in
*" web "*) install_packages tests/e2e/web "${BUILD:-build}/web" ;;
esac

# Debian's source package of the very version that is installed, patched as Debian builds it. The
# machine's list of sources may name binaries alone: a copy of it that names sources, with lists and
# a cache of its own, leaves the machine's as they are and needs no root. apt checks signatures.
fetch_source() {
    package=$1 version=$2 folder=$3
    if [ -z "$version" ] || ! have apt-get >/dev/null; then
        echo "deps.sh: $package is not Debian's here: please put its source into $folder" >&2
        return 1
    fi
    rm -rf "$folder" "$folder.part"
    mkdir -p "$folder.part/sources" "$folder.part/lists/partial" \
        "$folder.part/cache/archives/partial"
    part=$(cd "$folder.part" && pwd)
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$list" \
            >"$part/sources/${list##*/}.list"
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" \
            >"$part/sources/${list##*/}"
    done
    set -- -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$part/sources" \
        -o "Dir::State::lists=$part/lists" -o "Dir::Cache=$part/cache" \
        -o "APT::Sandbox::User=$(id -un)"
    (cd "$part" && apt-get "$@" update &&
        apt-get "$@" source --download-only "$package=$version" &&
        dpkg-source --extract "$package"_*.dsc "$part/tree") >"$folder.log" 2>&1 || {
        echo "deps.sh: the source of $package $version could not be had; $folder.log says why" >&2
        return 1
    }
    mv "$part/tree" "$folder"
    rm -rf "$part"
    touch "$folder/complete-$version"
}

case " $* " in
*" fuzz "*)
    folder=${BUILD:-build}/protobuf-c
    version=$(dpkg-query -W -f '${source:Version}' libprotobuf-c-dev 2>/dev/null || true)
    complete=$folder/complete-$version
    [ -n "$version" ] || complete=$folder/protobuf-c/protobuf-c.c
    if ! [ -e "$complete" ]; then
        echo "installing: the source of protobuf-c into $folder"
        mkdir -p "${BUILD:-build}"
        fetch_source protobuf-c "$version" "$folder"
    fi
    ;;
esac

# the peers come from PyPI; some are needed for their models alone, so without their dependencies.
# The needs of the Python client and of its extras `local` and `meshes` come with them.
case " $* " in
*" peers "*)
    environment=${BUILD:-build}/peers
    python=$environment/bin/python
    if ! [ -e "$environment/complete-with-extras" ]; then
        python3 -m venv "$environment"
        "$python" -m pip install --quiet --disable-pip-version-check setuptools wheel \
            'mujoco==4.0.*' numpy grpcio grpcio-tools protobuf typing_extensions cffi trimesh scipy \
            coacd
        "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
            gymnasium-robotics mujoco-warp pybullet
        touch "$environment/complete-with-extras"
    fi
    ;;
esac

# Siconos is Debian's, but brings a BLAS that would replace the machine's: its packages and their
# missing dependencies are unpacked in the environment instead, without root.
case " $* " in
*" peers "*)
    folder=${BUILD:-build}/peers/siconos
    wanted=libsiconos-numerics-dev
    if ! [ -e "$folder/version" ] && have apt-cache >/dev/null &&
        apt-cache show $wanted >/dev/null 2>&1; then
        echo "installing: Siconos into $folder"
        rm -rf "$folder"
        mkdir -p "$folder/packages"
        (
            cd "$folder/packages"
            # shellcheck disable=SC2046
            apt-get -q -o "APT::Sandbox::User=$(id -un)" download $(apt-get install -s \
                --no-install-recommends $wanted | awk '/^Inst/ { print $2 }') >log 2>&1
            for package in *.deb; do dpkg-deb -x "$package" ..; done
        )
        apt-cache show $wanted | sed -n 's/^Version: //p' | head -n 1 >"$folder/version"
        rm -r "$folder/packages"
    fi
    ;;
esac

# MuJoCo Warp, and Newton with its exact-contact solver Kamino; they bring their CUDA libraries
case " $* " in
*" gpu-peers "*)
    environment=${BUILD:-build}/gpu-peers
    python=$environment/bin/python
    if ! [ -e "$environment/complete" ]; then
        echo "installing: MuJoCo Warp and Newton into $environment"
        python3 -m venv "$environment"
        "$python" -m pip install --quiet --disable-pip-version-check \
            'mujoco==4.0.*' 'mujoco-warp==4.0.*' 'newton==1.8.*' 'warp-lang==1.19.*' numpy
        touch "$environment/complete"
    fi
    ;;
esac

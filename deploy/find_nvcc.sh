#!/bin/sh
# Prints the path of a CUDA compiler of version 13, nothing where there is none:
#
#   deploy/find_nvcc.sh BUILD_FOLDER
#
# Looked for in PATH, in /usr/local/cuda, then where deps.sh installs one.
version_13() { "$1" --version 2>/dev/null | grep -q 'release 13\.'; }

for nvcc in "$(command -v nvcc)" /usr/local/cuda/bin/nvcc \
    "${1:-build}"/cuda/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
    if [ -n "$nvcc" ] && [ -x "$nvcc" ] && version_13 "$nvcc"; then
        realpath "$nvcc"
        exit 0
    fi
done

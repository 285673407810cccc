#!/bin/sh
# Gathers the root of an image: the programs below OUT and the Debian packages they load, file by
# file, into ROOT, with an SPDX 2.3 list of both at /usr/share/tribo/sbom.spdx.json.
#
#   deploy/image/root.sh OUT ROOT COMMIT
#
# A package is taken if one of its shared libraries is loaded by a program of OUT, or by a library
# that is loaded later by name (MORE below). Of a package come its libraries and its copyright
# file; /var/lib/dpkg/status.d names it for scanners of images.
set -eu
out=$1 root=$2 commit=$3
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0}
library_path=/usr/lib/$(uname -m)-linux-gnu

# loaded by dlopen: HDF5 for problem files, by the name that the build took from its package,
# PostgreSQL's library for the database of a fleet, and, where there is a plug-in for cards, the parts
# of the C library that the driver is linked with: a container runtime mounts the driver alone
MORE="$(ls "$library_path"/libhdf5_serial.so.*[0-9] 2>/dev/null | head -n 1) $library_path/libpq.so.5"
if [ -e "$out/usr/lib/tribo/libtribo_gpu.so" ]; then
    for part in libdl.so.2 libpthread.so.0 librt.so.1; do MORE="$MORE $library_path/$part"; done
fi

mkdir -p "$root/usr/bin" "$root/etc" "$root/data" "$root/tmp" "$root/var/lib/dpkg/status.d" "$root/usr/share/tribo"
cp "$out/usr/bin/tribo" "$out/usr/bin/tribod" "$root/usr/bin/"
cp "$out/etc/tribod.ini" "$root/usr/share/tribo/tribod.ini"
cp LICENSE CHANGELOG.md "$root/usr/share/tribo/"
chmod 1777 "$root/tmp"
chown 65532:65532 "$root/data"
printf 'root:x:0:0:root:/:/sbin/nologin\ntribod:x:65532:65532:tribod:/data:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\ntribod:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
grep -E '^(PRETTY_NAME|NAME|VERSION_ID|VERSION|VERSION_CODENAME|ID)=' /etc/os-release >"$root/etc/os-release"

# /lib is a link to /usr/lib in Debian, and the linker's path begins there
mkdir -p "$root/usr/lib64" "$root$library_path"
ln -sfn usr/lib "$root/lib"
ln -sfn usr/lib64 "$root/lib64"

# every library that the programs load
for f in "$out/usr/bin/tribo" "$out/usr/bin/tribod" $MORE; do ldd "$f"; done |
    sed -nE 's|.*=> (/[^ ]*) .*|\1|p; s|^[[:space:]]*(/[^ ]*ld-linux[^ ]*) .*|\1|p' >/tmp/loaded
printf '%s\n' $MORE >>/tmp/loaded
sort -u /tmp/loaded | while read -r library; do
    real=$(realpath "$library")
    mkdir -p "$root$(dirname "$real")"
    cp -p "$real" "$root$real"
    name=$(basename "$library")
    [ "$name" = "$(basename "$real")" ] || ln -sfn "$(basename "$real")" "$root$(dirname "$real")/$name"
    echo "$real"
done | sort -u >/tmp/libraries

# the ABI puts the loader under /lib64
loader=$(sed -n 's|^[[:space:]]*\(/lib64/[^ ]*\) .*|\1|p' <<L
$(ldd "$out/usr/bin/tribod")
L
)
ln -sfn "$(realpath "$loader" | sed 's|^/usr||; s|^|..|')" "$root/usr/lib64/$(basename "$loader")"
# BLAS and LAPACK are alternatives in a folder of their own, which the cache of the loader knows
mkdir -p "$root/etc/ld.so.conf.d"
cp /etc/ld.so.conf "$root/etc/"
cp /etc/ld.so.conf.d/*.conf "$root/etc/ld.so.conf.d/"
xargs -n 1 dirname </tmp/libraries | sort -u | grep -v "^$library_path\$" >"$root/etc/ld.so.conf.d/tribo.conf" || true
ldconfig -r "$root"

# the packages, for scanners and for the SPDX list
while read -r library; do
    dpkg -S "$library" 2>/dev/null || dpkg -S "${library#/usr}"
done </tmp/libraries | sed 's/: .*//; s/:.*//' | sort -u >/tmp/packages
while read -r package; do
    dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
    mkdir -p "$root/usr/share/doc/$package"
    cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/" 2>/dev/null || {
        echo "root.sh: $package has no copyright file" >&2
        exit 1
    }
done </tmp/packages

# the SPDX list; licences are those in the machine-readable form of the copyright files
version=$("$out/usr/bin/tribod" --version | sed -n 's/^tribod \([^ ]*\).*/\1/p')
while read -r package; do
    licences=$(sed -n 's/^License: *//p' "/usr/share/doc/$package/copyright" | sort -u | paste -sd ';' -)
    dpkg-query -W -f '${Package}\t${Version}\t${Homepage}\t${Source}\n' "$package" |
        jq -R --arg licences "$licences" 'split("\t") | {name: .[0], version: .[1], homepage: .[2], licences: $licences}'
done </tmp/packages | jq -s \
    --arg version "$version" --arg commit "$commit" \
    --arg created "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" \
    --arg tribo "$(sha256sum "$root/usr/bin/tribo" | cut -d' ' -f1)" \
    --arg tribod "$(sha256sum "$root/usr/bin/tribod" | cut -d' ' -f1)" '
    {spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT",
     name: "tribod-\($version)", documentNamespace: "https://tribod.invalid/spdx/\($version)/\($commit)",
     creationInfo: {created: $created, creators: ["Tool: deploy/image/root.sh"]},
     packages: ([{SPDXID: "SPDXRef-tribod", name: "tribod", versionInfo: $version, downloadLocation: "NOASSERTION",
                  licenseConcluded: "Apache-2.0", licenseDeclared: "Apache-2.0", filesAnalyzed: false,
                  sourceInfo: "commit \($commit)",
                  comment: "sha256 of /usr/bin/tribo \($tribo), of /usr/bin/tribod \($tribod)"}]
                + map({SPDXID: "SPDXRef-deb-\(.name | gsub("[^A-Za-z0-9.-]"; "-"))", name, versionInfo: .version,
                       downloadLocation: "NOASSERTION", licenseConcluded: "NOASSERTION",
                       licenseDeclared: "NOASSERTION", filesAnalyzed: false,
                       licenseComments: "names in /usr/share/doc/\(.name)/copyright: \(.licences)",
                       externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl",
                                       referenceLocator: "pkg:deb/debian/\(.name)@\(.version | @uri)"}]})),
     relationships: ([{spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: "SPDXRef-tribod"}]
                + map({spdxElementId: "SPDXRef-tribod", relationshipType: "DEPENDS_ON",
                       relatedSpdxElement: "SPDXRef-deb-\(.name | gsub("[^A-Za-z0-9.-]"; "-"))"}))}' \
    >"$root/usr/share/tribo/sbom.spdx.json"

# one time for all files, so that two builds make the same layer
find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
echo "root.sh: $(wc -l </tmp/packages) packages, $(du -sm "$root" | cut -f1) MiB"

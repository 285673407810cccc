#!/bin/sh
# Checks the C sources against .clang-format, or rewrites them (--fix). Prints each file that
# differs and a closing count. Versions of clang-format disagree in details, so that only version 14
# (Debian 12's) is believed; without it the check is skipped visibly.
cd "$(dirname "$0")/.." || exit 1

tool=${CLANG_FORMAT:-$(command -v clang-format-14 || command -v clang-format)}
case $("${tool:-false}" --version 2>/dev/null) in
*"version 14."*) ;;
*)
    echo "SKIPPED format: clang-format 14 is not installed"
    [ "$1" != --fix ]
    exit
    ;;
esac

# clients/python has no C but the header that its build generates
files=$(find solver clients server db tests -path clients/python -prune -o -name '*.[ch]' -print 2>/dev/null | sort)
all=$(echo "$files" | wc -l)
# one process for all: it begins lines with the name of a file that differs
told=$("$tool" --dry-run -Werror $files 2>&1)
status=$?
differing=$(echo "$told" | sed -n 's/^\([^ :]*\.[ch]\):[0-9].*/\1/p' | sort -u)
if [ $status -ne 0 ] && [ -z "$differing" ]; then
    echo "$told"
    echo "0 passed, 1 failed"
    exit 1
fi
failed=0
for file in $differing; do
    if [ "$1" = --fix ]; then
        "$tool" -i "$file" && echo "formatted $file"
    else
        echo "not formatted: $file (run make format)"
        failed=$((failed + 1))
    fi
done
echo "$((all - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]

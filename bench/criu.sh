#!/bin/sh
# criu.sh DIR - put Debian trixie's CRIU into DIR (with debootstrap, as root, from the mirror
# that this machine's apt uses) and make DIR/run-criu, which runs it with that folder's own
# loader and libraries. Debian 12's CRIU 3.17 does not start on current kernels.
set -eu

suite=trixie
if [ $# -ne 1 ]; then
	echo "usage: criu.sh DIR" >&2
	exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)

# Debian's archive only: suites such as -security live elsewhere.
mirror() {
	apt-get indextargets --format '$(CODENAME) $(REPO_URI)' \
		'Identifier: Packages' 'Origin: Debian' 'Label: Debian' |
		awk '$1 !~ /-/ { print $2; exit }'
}

if [ ! -x "$dir/usr/sbin/criu" ]; then
	if ! command -v debootstrap >/dev/null; then
		echo "criu.sh: debootstrap is not installed" >&2
		exit 1
	fi
	from=$(mirror)
	if [ -z "$from" ]; then
		echo "criu.sh: apt knows no Debian mirror (apt-get update?)" >&2
		exit 1
	fi
	debootstrap --variant=minbase --include=criu "$suite" "$dir" "$from" >"$dir.log" 2>&1 || {
		tail -n 5 "$dir.log" >&2
		exit 1
	}
	rm -f "$dir.log"
fi

cat >"$dir/run-criu" <<'END'
#!/bin/sh
d=$(dirname "$0")
exec "$d/lib64/ld-linux-x86-64.so.2" \
	--library-path "$d/usr/lib/x86_64-linux-gnu:$d/usr/lib" "$d/usr/sbin/criu" "$@"
END
chmod +x "$dir/run-criu"
"$dir/run-criu" --version | head -n 1

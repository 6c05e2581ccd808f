#!/bin/bash
# on_kernel.sh [OPTION...] KERNEL MODULES [COMMAND [ARG...]]: run a command, such as a test, under another
# kernel, in a virtual machine that sees the files of this one (doc/testing.md). Takes root, qemu-system-x86,
# busybox-static, kmod and cpio.
#
#	KERNEL		its vmlinuz
#	MODULES		its /lib/modules/VERSION, wherever that was unpacked to
#	COMMAND		is run by root in the same working directory, which must not be in /tmp or /var/tmp; the
#			exit status is its own. Without one: "bash", on this terminal
#	-o FOLDER	what is written here stays; all else that the command writes is gone with the machine
#	-m MIB		memory (6144)
#	-p COUNT	processors (2)
#	-t SECONDS	the machine is ended after this time, status 124
#	-a WORDS	more for the kernel's command line
#
# /var/tmp and TMPDIR are on an ext4 file system, /tmp is a tmpfs, and what is written elsewhere is in memory.
# Without KVM all takes 10 to 30 times as long: TEST_SLOW is set to 10 then (t/lib.sh) unless it is set.
set -eu

out='' memory=6144 processors=2 limit=0 words=''
while getopts o:m:p:t:a: option; do
	case $option in
	o) out=$(realpath "$OPTARG") ;;
	m) memory=$OPTARG ;;
	p) processors=$OPTARG ;;
	t) limit=$OPTARG ;;
	a) words=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || {
	sed -n '2,/^set/s/^#\( \|$\)//p' "$0" >&2
	exit 2
}
kernel=$(realpath "$1") modules=$(realpath "$2")
shift 2

# In a mount namespace of its own, / can be bound to where nothing is mounted on it: 9p could not tell files of
# several file systems apart by their inode numbers.
if [ -z "${ON_KERNEL_APART:-}" ]; then
	[ "$(id -u)" = 0 ] || {
		echo "on_kernel.sh: this takes root: all files are shown to the virtual machine" >&2
		exit 2
	}
	flags=(${out:+-o "$out"} -m "$memory" -p "$processors" -t "$limit" -a "$words")
	ON_KERNEL_APART=1 exec unshare --mount -- "$0" "${flags[@]}" "$kernel" "$modules" "$@"
fi
unset ON_KERNEL_APART
for program in qemu-system-x86_64 busybox modprobe cpio mkfs.ext4; do
	command -v $program >/dev/null || {
		echo "on_kernel.sh: $program is missing" >&2
		exit 2
	}
done
version=${modules##*/}
base=${modules%/lib/modules/*}
[ -e "$modules/modules.dep" ] || depmod -b "$base" "$version"

# What is bound to / is in no directory that is removed with all that is in it.
work=$(mktemp -d "${TMPDIR:-/tmp}/on_kernel.XXXXXX")
files=$(mktemp -d "${TMPDIR:-/tmp}/on_kernel-files.XXXXXX")
trap 'cd /; umount -l "$files"; rmdir "$files"; rm -rf "$work"' EXIT
mkdir -p "$work"/initramfs/{bin,dev,proc,sys,modules,lower,upper,new}
mount --bind / "$files"
cp "$(command -v busybox)" "$work/initramfs/bin/busybox"

# insmod of each module and of what it needs, in order
load=
for module in virtio_pci virtio_blk virtio_console 9pnet_virtio 9p overlay ext4; do
	while read -r what file _; do
		[ "$what" = insmod ] || continue
		plain=${file##*/} plain=${plain%.[xgz][zs]*}
		[ ! -e "$work/initramfs/modules/$plain" ] || continue
		case $file in
		*.xz) xz -dc "$file" ;;
		*.zst) zstd -dcq "$file" ;;
		*.gz) gzip -dc "$file" ;;
		*) cat "$file" ;;
		esac >"$work/initramfs/modules/$plain"
		load+="insmod /modules/$plain"$'\n'
	done < <(modprobe -d "$base" -S "$version" --show-depends "$module")
done

accelerator=tcg,thread=multi
! { [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; } || accelerator=kvm
[ $accelerator = kvm ] || : "${TEST_SLOW:=10}"

# What the command gets: variables of tests and of the user's shell, but not of this machine's session.
{
	echo "cd $(printf %q "$PWD")"
	for name in TEST_SLOW TEST_LIMIT QUICK KEEP_SCRATCH TERM PATH LANG ${!TRECR_@}; do
		[ -z "${!name:-}" ] || echo "export $name=$(printf %q "${!name}")"
	done
	echo "export HOME=/root TMPDIR=/var/tmp"
	if [ $# -gt 0 ]; then printf '%q ' "$@"; else echo bash; fi
} >"$work/initramfs/command"

cat >"$work/initramfs/init" <<END
#!/bin/busybox sh
PATH=/bin:/usr/sbin:/sbin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
$load
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro files /lower
mount -t tmpfs -o size=80% upper /upper
mkdir /upper/u /upper/w
mount -t overlay -o lowerdir=/lower,upperdir=/upper/u,workdir=/upper/w overlay /new
cd /new
mount --move /proc proc
mount --move /sys sys
mount --move /dev dev
mkdir -p dev/pts dev/shm dev/mqueue
mount -t devpts -o mode=620,ptmxmode=666,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t mqueue mqueue dev/mqueue
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=755 run run
mount -t cgroup2 cgroup sys/fs/cgroup
mount -t ext4 dev/vda var/tmp && chmod 1777 var/tmp
[ -z "$out" ] || { mkdir -p ".$out" && mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 out ".$out"; }
mkdir -p "usr/lib/modules/$version"
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro modules "usr/lib/modules/$version"
hostname on-kernel
ip link set lo up
ln -s /proc/self/fd dev/fd 2>/dev/null
ln -s /proc/self/fd/0 dev/stdin 2>/dev/null
ln -s /proc/self/fd/1 dev/stdout 2>/dev/null
ln -s /proc/self/fd/2 dev/stderr 2>/dev/null
cp /command /end run
exec switch_root /new /bin/sh /run/end
END
cat >"$work/initramfs/end" <<'END'
echo 1 >/proc/sys/kernel/printk
stty -F /dev/hvc0 raw -echo
setsid -c bash /run/command </dev/hvc0 >/dev/hvc0 2>&1
echo "on_kernel status $?" >/dev/ttyS0
sync
echo o >/proc/sysrq-trigger
while :; do sleep 60; done
END
chmod 755 "$work/initramfs/init"
(cd "$work/initramfs" && find . | cpio -o -H newc --quiet) >"$work/initramfs.cpio"
truncate -s 8G "$work/disk"
mkfs.ext4 -q -F "$work/disk"

share=(-fsdev "local,id=files,path=$files,security_model=none,multidevs=remap,readonly=on"
	-device "virtio-9p-pci,fsdev=files,mount_tag=files"
	-fsdev "local,id=modules,path=$modules,security_model=none,readonly=on"
	-device "virtio-9p-pci,fsdev=modules,mount_tag=modules")
[ -z "$out" ] || share+=(-fsdev "local,id=out,path=$out,security_model=none"
	-device "virtio-9p-pci,fsdev=out,mount_tag=out")
set +e
timeout --foreground "$limit" qemu-system-x86_64 -accel $accelerator -cpu max -smp "$processors" -m "$memory" \
	-nodefaults -no-user-config -display none -no-reboot \
	-kernel "$kernel" -initrd "$work/initramfs.cpio" \
	-append "console=ttyS0 panic=-1 quiet loglevel=4 no_timer_check $words" \
	-serial "file:$work/console" -device virtio-serial-pci -chardev stdio,id=terminal,signal=off \
	-device virtconsole,chardev=terminal \
	-drive "file=$work/disk,if=virtio,format=raw,cache=unsafe" "${share[@]}"
ended=$?
status=$(sed -n 's/\r//; s/^on_kernel status //p' "$work/console")
[ -z "$status" ] || exit "$status"
tail -n 30 "$work/console" >&2
[ $ended = 124 ] || ended=2
exit $ended

# Lets gdb see through calls of the GPU driver in a program that trecr-run has started:
#
#	gdb -p PID -ex 'source .../lib/trecr/current/trecr-gdb.py'
#
# gdb goes by what the program's dynamic linker knows. That knows nothing of the libraries of the
# lower half, and has the driver's name for the stub. So all libraries are taken from
# /proc/PID/maps here. To be sourced again when some have been loaded since.
import gdb
import os
import struct


def load_address(path):
    """Where an ELF file wants its first byte; None: it is no such file."""
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:5] != b"\x7fELF\x02":
            return None
        offset, = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        for _ in range(count):
            kind, _, at, address = struct.unpack_from("<IIQQ", file.read(size))
            if kind == 1:
                return address - at
    return None


def add(start, path):
    try:
        wanted = load_address(path)
    except OSError:
        return
    if wanted is not None:
        gdb.execute("add-symbol-file '%s' -o %#x" % (path, start - wanted), to_string=True)


def first_mappings(pid):
    with open("/proc/%d/maps" % pid) as maps:
        for line in maps:
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) == 6 and fields[5][0] == "/" and not int(fields[2], 16):
                yield int(fields[0].split("-")[0], 16), fields[5]


def take_all():
    pid = gdb.selected_inferior().pid
    program = os.readlink("/proc/%d/exe" % pid)
    confirm = gdb.parameter("confirm")
    gdb.execute("set confirm off")
    gdb.execute("nosharedlibrary")
    for start, path in first_mappings(pid):
        if path != program and not path.startswith(("/dev/", "/memfd:")):
            add(start, path)
    gdb.execute("set confirm %s" % ("on" if confirm else "off"))


take_all()

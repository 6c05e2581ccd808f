# Packages: dbus python3-dbus. Needs: dbus-daemon python3 python3:dbus
# A message bus: names, signals, calls, and descriptors of pipes and memfds that are passed through it.
import os
import subprocess
import sys
import threading
import time

import dbus
import dbus.service

NAME = "test.Server"


def serve():
    import dbus.mainloop.glib
    from gi.repository import GLib

    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.bus.BusConnection(os.environ["ADDRESS"])

    class Server(dbus.service.Object):
        kept = {}
        turns = 0

        @dbus.service.method(NAME, in_signature="sh", out_signature="u")
        def Keep(self, name, f):
            self.kept[str(name)] = f.take()
            return len(self.kept)

        @dbus.service.method(NAME, in_signature="s", out_signature="h")
        def Give(self, name):
            return dbus.types.UnixFd(self.kept[str(name)])

        @dbus.service.method(NAME, in_signature="s", out_signature="s")
        def Say(self, text):
            self.turns += 1
            self.Said(text)
            return text[::-1]

        @dbus.service.signal(NAME, signature="s")
        def Said(self, text):
            pass

    name = dbus.service.BusName(NAME, bus)
    kept = Server(bus, "/o")
    GLib.MainLoop().run()


if len(sys.argv) > 1:
    serve()
here = os.getcwd()
open("conf", "w").write(f"""<busconfig><type>session</type><listen>unix:path={here}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>""")
os.environ["ADDRESS"] = f"unix:path={here}/bus"
daemon = subprocess.Popen(["dbus-daemon", f"--config-file={here}/conf", "--nofork", "--nopidfile"], stderr=open("bus.log", "w"))
while not os.path.exists("bus"):
    assert daemon.poll() is None
    time.sleep(0.02)
server = subprocess.Popen([sys.executable, __file__, "serve"], stderr=open("server.log", "w"))
monitor = subprocess.Popen(["dbus-monitor", "--address", os.environ["ADDRESS"], f"type='signal',interface='{NAME}'"], stdout=open("heard", "w"))
while True:
    try:
        bus = dbus.bus.BusConnection(os.environ["ADDRESS"])
        break
    except dbus.DBusException:
        time.sleep(0.02)
while not bus.name_has_owner(NAME):
    assert server.poll() is None
    time.sleep(0.02)
o = dbus.Interface(bus.get_object(NAME, "/o"), NAME)
out, into = os.pipe()
o.Keep("pipe", dbus.types.UnixFd(into))
os.close(into)
memory = os.memfd_create("m", 0)
os.write(memory, b"in memory " * 1000)
print(o.Keep("memory", dbus.types.UnixFd(memory)))
print("ready", flush=True)
while not os.path.exists("go"):
    assert o.Say("turn") == "nrut"
    os.pwrite(memory, b"x" * 1000, 100)
    f = o.Give("memory").take()
    assert os.pread(f, 100, 50) == (b"in memory " * 10)[:50] + b"x" * 50
    os.close(f)
    time.sleep(0.002)
f = o.Give("pipe").take()
os.write(f, b"through")
print(os.read(out, 100), o.Say("last"), bus.get_object("org.freedesktop.DBus", "/").GetConnectionUnixProcessID(NAME) == server.pid, sorted(map(str, bus.list_names()))[-2:])
os.pwrite(memory, b"changed", 0)
print(os.pread(o.Give("memory").take(), 20, 0))
while '"last"' not in open("heard").read():
    time.sleep(0.02)
for p in server, monitor, daemon:
    p.terminate()
    print(p.wait())

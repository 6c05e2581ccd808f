#!/bin/bash
# Packages: pipewire pipewire-bin. Needs: pipewire pw-cli pw-cat pw-link
# A graph of sound without a device: a driver with a timer, buffers in memory that is passed from process to process.
export HOME=$PWD XDG_RUNTIME_DIR=$PWD XDG_CONFIG_HOME=$PWD PIPEWIRE_RUNTIME_DIR=$PWD DBUS_SESSION_BUS_ADDRESS=none:
cat >conf <<'END'
context.properties = { core.daemon = true core.name = pipewire-0 support.dbus = false mem.allow-mlock = false
	default.clock.rate = 48000 default.clock.quantum = 1024 }
context.spa-libs = { audio.convert.* = audioconvert/libspa-audioconvert support.* = support/libspa-support }
context.modules = [
	{ name = libpipewire-module-protocol-native }
	{ name = libpipewire-module-metadata }
	{ name = libpipewire-module-spa-node-factory }
	{ name = libpipewire-module-client-node }
	{ name = libpipewire-module-access args = { } }
	{ name = libpipewire-module-adapter }
	{ name = libpipewire-module-link-factory }
]
context.objects = [
	{ factory = adapter args = { factory.name = support.null-audio-sink node.name = sink media.class = Audio/Sink
		audio.position = [ FL FR ] monitor.channel-volumes = true } }
	{ factory = adapter args = { factory.name = support.null-audio-sink node.name = other media.class = Audio/Sink
		audio.position = [ FL FR ] monitor.channel-volumes = true } }
]
END
pipewire -c "$PWD/conf" >pipewire.log 2>&1 &
server=$!
until pw-cli ls Node 2>/dev/null | grep -q '"other"'; do kill -0 $server || exit 1; sleep 0.05; done
pw-link -io
pw-link sink:monitor_FL other:playback_FL
pw-link sink:monitor_FR other:playback_FR
echo ready
while [ ! -e go ]; do pw-cli info all | grep -q '"other"' || exit 1; sleep 0.02; done
pw-link -l | sed 's/^ *[0-9]* *//'
pw-cli ls Node | grep node.name
pw-link -d sink:monitor_FL other:playback_FL
pw-link -l | wc -l
kill $server
wait $server
echo "status $?"

#!/bin/bash
# Runs a server and its client: talk.sh SOCKET SERVER... -- CLIENT...
# The server's input is a pipe that ends with the client; what it prints first is given to the
# client after its other arguments, with SOCKET, if that is not empty, behind it.
socket=$1
shift
server=()
while [ "$1" != -- ]; do
	server+=("$1")
	shift
done
shift
coproc "${server[@]}" 2>server.err
serving=$!
read -r port <&"${COPROC[0]}"
exec {input}>&"${COPROC[1]}"
"$@" "$port" ${socket:+"$socket"} {input}>&-
echo "client $?"
eval "exec ${COPROC[1]}>&- {input}>&-"
wait "$serving"
echo "server $?"
rm -f ${socket:+"$socket"}
cat server.err

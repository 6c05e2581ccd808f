#!/bin/bash
# Packages: busybox. Needs: busybox
# Its web server, awk, shell and wget, all one program.
mkdir www www/cgi-bin
seq 20000 >www/data
printf '#!/bin/busybox sh\necho; busybox awk "BEGIN { for (i = 0; i < 1000; i++) s += i * i; print s }"\n' >www/cgi-bin/sum
chmod 755 www/cgi-bin/sum
busybox httpd -f -p "127.0.0.1:$PORT" -h www &
server=$!
get() {
	busybox wget -q -O - "http://127.0.0.1:$PORT/$1"
}
until get data >/dev/null 2>&1; do kill -0 $server || exit 1; sleep 0.02; done
echo ready
while [ ! -e go ]; do
	get cgi-bin/sum | grep -qx 332833500 || { echo wrong; break; }
done
get data | busybox sha256sum
get cgi-bin/sum
kill $server
wait $server
echo "status $?"

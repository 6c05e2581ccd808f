# Packages: aria2 python3. Needs: aria2c python3
# Downloads over several connections, slowly, into one file that is allocated beforehand.
import http.server
import os
import subprocess
import threading

port = int(os.environ["PORT"])
data = b"".join(b"%07d\n" % k for k in range(1 << 20))


class Parts(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        first, last = 0, len(data) - 1
        if "Range" in self.headers:
            parts = self.headers["Range"].split("=")[1].split("-")
            first, last = int(parts[0]), int(parts[1] or last)
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        try:
            self.wfile.write(data[first:last + 1])
        except (BrokenPipeError, ConnectionResetError):
            pass

    def log_message(self, *ignored):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Parts)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
print(subprocess.run(["aria2c", "--no-conf", "-q", "-x", "4", "-s", "4", "-k", "1M", "--max-overall-download-limit=1200K",
                      f"http://127.0.0.1:{port}/data"]).returncode)
print(open("data", "rb").read() == data)

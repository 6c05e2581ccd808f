"""What the panel's web servers have in common: clients of one on this machine, and one to stand behind it."""
import http.client
import http.server
import threading
import time


def connect(port, server):
    """A connection that stays open, as soon as the server's process listens."""
    while True:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            c.connect()
            return c
        except ConnectionRefusedError:
            assert server.poll() is None
            time.sleep(0.02)


def get(c, path):
    c.request("GET", path)
    return c.getresponse().read()


def serve_behind(port, answer, headers={}):
    """A server in a thread that gives answer(path) for each path."""
    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            data = answer(self.path)
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *ignored):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()

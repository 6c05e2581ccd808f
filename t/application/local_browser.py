"""A page that counts, in a worker and on a canvas, and a browser that shows it; its state at a certain step is the result."""
import http.server
import os
import subprocess
import threading
import time

STEPS, BEGIN = 400, 20
PAGE = b"""<canvas id=c width=64 height=64></canvas><script>
const g = document.getElementById("c").getContext("2d")
const worker = new Worker(URL.createObjectURL(new Blob(["let x=1n; onmessage=e=>{ " +
    "for(let k=0;k<1000;k++) x=(x*6364136223846793005n+1442695040888963407n)&0xffffffffffffffffn; postMessage(''+x) }"])))
let step = 0
worker.onmessage = async e => {
    const x = BigInt(e.data)
    g.fillStyle = "#" + Number(x & 0xffffffn).toString(16).padStart(6, "0")
    g.fillRect(Number(x >> 40n & 63n), Number(x >> 50n & 63n), 9, 9)
    let sum = 0
    for (const byte of g.getImageData(0, 0, 64, 64).data) sum = (sum * 31 + byte) % 1000003
    const answer = await fetch("/" + ++step + "/" + x + "/" + sum).then(a => a.text())
    if (answer == "on") setTimeout(() => worker.postMessage(0), 2)
}
worker.postMessage(0)
</script>"""
told = {}


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        data = b"on"
        if self.path == "/":
            data = PAGE
        elif self.path[1].isdigit():
            step, *state = self.path[1:].split("/")
            told[int(step)] = state
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *ignored):
        pass


def show(*command):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = dict(os.environ, HOME=os.getcwd(), TMPDIR=os.getcwd(), MOZ_ASSUME_USER_NS="0")
    browser = subprocess.Popen(list(command) + [f"http://127.0.0.1:{server.server_port}/"], env=settings,
                               stdin=subprocess.DEVNULL, stdout=open("browser.log", "w"), stderr=subprocess.STDOUT)
    wait(browser, lambda: BEGIN in told)
    print("ready", flush=True)
    wait(browser, lambda: os.path.exists("go"))
    wait(browser, lambda: STEPS in told)
    print([told[k] for k in range(BEGIN, STEPS + 1, 20)])
    browser.kill()
    browser.wait()


def wait(browser, happened):
    while not happened():
        assert browser.poll() is None
        time.sleep(0.02)

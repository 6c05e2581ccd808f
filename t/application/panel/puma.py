# Packages: puma python3. Needs: puma python3
# A web server in Ruby: a master, workers that it forks, threads, and connections that are kept.
import http.client
import os

from local_http import get
from local_server import ask_until_go, connect, end, start

port = int(os.environ["PORT"])
open("config.ru", "w").write("""
kept = Hash.new(0)
lock = Mutex.new
run lambda { |env|
  turn = lock.synchronize { kept[env['PATH_INFO']] += 1 }
  [200, {'Content-Type' => 'text/plain'}, [env['PATH_INFO'], ' ', (turn > 0).to_s, ' ', 'x' * 5000]]
}
""")
open("conf.rb", "w").write(f"workers 2\nthreads 2, 4\npreload_app!\nbind 'tcp://127.0.0.1:{port}'\npersistent_timeout 3600\n"
                           "first_data_timeout 3600\nworker_timeout 3600\n")
server = start("puma", "-C", "conf.rb", "config.ru")
connect(port, server).close()
kept = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(4)]


def ask():
    for k, c in enumerate(kept):
        assert get(c, f"/{k}") == b"/%d true " % k + b"x" * 5000


ask_until_go(ask)
print([len(get(http.client.HTTPConnection("127.0.0.1", port, timeout=60), f"/{k}")) for k in range(20)])
end(server)

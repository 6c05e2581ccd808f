# Packages: gearman-job-server gearman-tools python3. Needs: gearmand gearman python3
# A server of jobs with two workers, which start a program for each job; jobs in the background, too.
import os
import subprocess

from local_server import ask_until_go, connect, end, start

port = os.environ["PORT"]
server = start("gearmand", "-p", port, "-L", "127.0.0.1", "-t", "3", "--log-file=stderr")
connect(int(port), server).close()
client = ["gearman", "-h", "127.0.0.1", "-p", port]
workers = [subprocess.Popen([*client, "-w", "-f", name, "--", *command], stdin=subprocess.DEVNULL)
           for name, command in (("count", ["wc", "-c"]), ("sum", ["cksum"]))]
done = 0


def submit(function, data, *options):
    return subprocess.run([*client, "-f", function, *options], input=data, capture_output=True, check=True).stdout


def ask():
    global done
    done += 1
    data = os.urandom(done * 37 % 5000 + 1)
    assert int(submit("count", data)) == len(data)
    own = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout
    assert submit("sum", data) == own
    submit("count", data, "-b")


ask()
ask_until_go(ask)
for worker in workers:
    worker.terminate()
    worker.wait()
end(server)

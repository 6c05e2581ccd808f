# Packages: python3-jupyter-client python3-ipykernel. Needs: python3, python3:jupyter_client, python3:ipykernel. Options: --save-files
import os

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel()


def run(code):
    said = []
    client.execute_interactive(code, timeout=120, output_hook=lambda m: said.append(
        m["content"].get("text", "")))
    return "".join(said)


run("kept = [k * k for k in range(1000)]")
print("ready", flush=True)
while not os.path.exists("go"):
    run("sum(range(1000))")
print(run("print(sum(kept), len(kept))"))
client.stop_channels()
manager.shutdown_kernel()

# Packages: stockfish python3. Needs: /usr/games/stockfish python3
# A chess engine that thinks with two threads while it is asked for nothing.
import os
import subprocess
import time

engine = subprocess.Popen(["/usr/games/stockfish"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say(*lines):
    engine.stdin.write("".join(line + "\n" for line in lines))
    engine.stdin.flush()


def hear(word):
    while True:
        line = engine.stdout.readline()
        assert line
        if line.startswith(word):
            return line.strip()


say("uci")
hear("uciok")
say("setoption name Hash value 64", "setoption name Threads value 2", "isready")
hear("readyok")
print("ready", flush=True)
while not os.path.exists("go"):
    say("position startpos moves e2e4 e7e5", "go infinite")
    time.sleep(0.05)
    say("stop")
    hear("bestmove")
say("ucinewgame", "setoption name Threads value 1", "isready")
hear("readyok")
say("setoption name Clear Hash", "position fen r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4", "go depth 5")
print(hear("bestmove"))
say("position startpos", "go perft 6")
print(hear("Nodes searched"))
say("quit")
print(engine.wait())

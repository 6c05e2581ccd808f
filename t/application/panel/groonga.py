# Packages: groonga-bin python3. Needs: groonga python3. Options: --save-dirs=db
# A full-text search engine: its tables and index are files that it maps and writes to, some of them opened late.
import json
import os
import urllib.parse
import urllib.request

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
os.mkdir("db")
server = start("groonga", "--protocol", "http", "--port", str(port), "--bind-address", "127.0.0.1", "-s", "-n", "db/words")
connect(port, server).close()


def run(command, **arguments):
    query = urllib.parse.urlencode(arguments)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/d/{command}?{query}", timeout=300) as answer:
        header, *rest = json.load(answer)
    assert header[0] == 0, header
    return rest[0]


run("table_create", name="Texts", flags="TABLE_HASH_KEY", key_type="UInt32")
run("column_create", table="Texts", name="body", type="Text")
run("table_create", name="Terms", flags="TABLE_PAT_KEY", key_type="ShortText", default_tokenizer="TokenBigram",
    normalizer="NormalizerAuto")
run("column_create", table="Terms", name="index", flags="COLUMN_INDEX|WITH_POSITION", type="Texts", source="body")
turn = 0


def ask():
    global turn
    turn += 1
    run("load", table="Texts", values=json.dumps([{"_key": turn, "body": f"words of row{turn} common{turn % 7}"}]))
    found = run("select", table="Texts", match_columns="body", query=f"row{turn}", output_columns="_key")
    assert [row[0] for row in found[0][2:]] == [turn], (turn, found)
    common = run("select", table="Texts", match_columns="body", query="common3", limit=0)
    assert common[0][0][0] == (turn + 4) // 7, (turn, common)


ask_until_go(ask)
for k in range(1, 1 + turn, max(1, turn // 50)):
    found = run("select", table="Texts", match_columns="body", query=f"row{k}", output_columns="_key,body")
    assert found[0][2] == [k, f"words of row{k} common{k % 7}"], (k, found)
print("all found")
end(server)

# Packages: python3-plyvel. Needs: python3:plyvel
# Options: --save-files
# LevelDB: tables that it maps are made and removed while it runs, and CURRENT names the manifest of now.
import os
import random

import plyvel

SMALL = {"write_buffer_size": 65536, "max_file_size": 65536, "lru_cache_size": 65536}
db = plyvel.DB("db", create_if_missing=True, **SMALL)
model, chance, k = {}, random.Random(3), 0


def change():
    global k
    k += 1
    key = b"k%d" % chance.randrange(3000)
    if chance.random() < .85:
        model[key] = b"%d" % k * 40
        db.put(key, model[key])
    else:
        db.delete(key)
        model.pop(key, None)
    if k % 5000 == 0:
        db.compact_range()


while k < 3000:
    change()
print("ready", flush=True)
while k < 9000 or not os.path.exists("go"):
    change()
    if k % 1000 == 0:
        assert dict(db) == model
print("as it was" if dict(db) == model else "differs")
db.close()
db = plyvel.DB("db", **SMALL)
print("as it was" if dict(db) == model else "differs", "on the disk, too")

-- One transaction larger than the cache, so that it is partly in the journal and partly in the
-- file when checkpoints are made.
PRAGMA cache_size = 50;
CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT);
CREATE INDEX i ON t(x);
BEGIN;
INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
	SELECT i, hex(i * 7919 % 20011) FROM n;
.print ready
.shell while [ ! -e go ]; do sleep 0.05; done
INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 20001 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
	SELECT i, hex(i * 7919 % 20011) FROM n;
UPDATE t SET x = x || '-' WHERE id % 3 = 0;
COMMIT;
PRAGMA integrity_check;
SELECT count(*), sum(length(x)), min(x), max(x) FROM t;

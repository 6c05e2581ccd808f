#!/bin/bash
# Packages: mercurial subversion. Needs: hg svn svnadmin. Options: --save-dirs=one:two:repo:work
export HOME=$PWD HGPLAIN=1 HGRCPATH=
hg init one && cd one || exit 1
for ((k = 0; k < 40; k++)); do seq $k $((k + 5000)) >f$k; done
hg add -q
hg commit -q -u a -d '0 0' -m first
cd ..
svnadmin create repo
svn -q checkout "file://$PWD/repo" work
cp one/f* work
echo ready
for ((k = 0; k < 6; k++)); do
	seq 100 >>one/f$k
	hg -R one commit -q -u a -d "$k 0" -m "$k"
done
hg clone -q --pull one two
hg -R two verify -q || echo "verify $?"
hg -R two log -T '{node}\n' | cksum
cd work && svn -q add f{0..39} && svn -q commit -m first
for ((k = 0; k < 4; k++)); do
	seq 100 >>f$k
	svn -q commit -m "$k"
done
svnadmin verify -q ../repo || echo "verify $?"
svnadmin dump -q ../repo | grep -a -c '^Text-content-sha1'
cat f{0..39} | cksum

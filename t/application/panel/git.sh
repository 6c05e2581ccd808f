#!/bin/bash
# Packages: git. Needs: git. Options: --save-files
# A history that is packed by threads, and cloned by processes with pipes between them.
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q one
{
	for ((k = 0; k < 300; k++)); do
		printf 'commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 4\nword\n' $((1700000000 + k))
		for ((n = 0; n < 8; n++)); do
			text=$(seq $((k * n)) $((k * n + 900)))
			printf 'M 644 inline f%d\ndata %d\n%s\n' $((k * n % 50)) ${#text} "$text"
		done
	done
} | git -C one fast-import --quiet
echo ready
git -C one repack -q -a -d -f --window=60 --depth=40 --threads=3
git clone -q --no-local one two
git -C two checkout -q -b other HEAD~50
git -C two rebase -q --onto HEAD~20 HEAD~5 || echo "rebase $?"
git -C two fsck --full 2>&1 || echo "fsck $?"
git -C two log --format=%H other | cksum
git -C two gc -q --aggressive
git -C two archive HEAD | cksum

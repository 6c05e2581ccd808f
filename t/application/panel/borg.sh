#!/bin/bash
# Packages: borgbackup. Needs: borg. Options: --save-files
# Backups into a repository: chunks, an index that is mapped, locks, and a cache elsewhere.
export BORG_BASE_DIR=$PWD/base BORG_REPO=$PWD/repo BORG_PASSPHRASE=p BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
mkdir base data
for ((k = 0; k < 60; k++)); do seq $((k * 1000)) $((k * 1000 + 40000)) >data/$k; done
borg init -e repokey-blake2
echo ready
for archive in one two three; do
	borg create -C zlib,6 "::$archive" data || echo "create $?"
	seq 100000 >data/$archive
done
borg delete ::two
borg check --verify-data || echo "check $?"
borg list --format '{archive}{NL}'
mkdir back && cd back && borg extract ::three && cat data/{0..59} data/{one,two} | cksum

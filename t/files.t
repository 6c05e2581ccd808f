#!/bin/bash
# Descriptors of every supported kind: where they point, what they share, what is in them.
. "$(dirname "$0")/lib.sh"

for v in file_offsets unlinked file_attributes reopened closed directory devices pipes fifo eventfd epoll epoll_fired epoll_moved signalfd locks fd_owner removed \
	inotify fanotify pidfd process_files ended_files tree_locks mapped_locks; do
	cycle $v
done

scenario "fanotify: marks keep their order" once "$victim/fanotify"

# Where there are no numbers above the program's.
ulimit -n 256
cycle highest
done_testing

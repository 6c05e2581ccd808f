#!/bin/bash
# Packages: emacs-nox. Needs: emacs emacsclient
# A daemon with a buffer, an undo list, a process in a pty, and a timer.
export HOME=$PWD
emacs -Q --fg-daemon="$PWD/s" >emacs.log 2>&1 &
server=$!
ask() {
	timeout 60 emacsclient -s "$PWD/s" -e "$1"
}
until ask t >/dev/null 2>&1; do kill -0 $server || exit 1; sleep 0.05; done
ask '(progn (find-file "text") (dotimes (i 1000) (insert (format "line %d\n" i)) (undo-boundary))
	(setq beats 0) (run-at-time 0 0.05 (lambda () (setq beats (1+ beats))))
	(setq child (start-process "child" "child" "cat")) (process-send-string child "before\n") nil)' >/dev/null
echo ready
while [ ! -e go ]; do ask '(set-buffer "text")' >/dev/null; done
ask '(progn (process-send-string child "after\n") (while (accept-process-output child 0.5)) nil)'
ask '(with-current-buffer "child" (buffer-string))'
ask '(with-current-buffer "text" (undo-only 3) (goto-char (point-max)) (forward-line -1)
	(list (buffer-size) (buffer-substring (point) (point-max))))'
before=$(ask beats)
until [ "$(ask beats)" -gt "$before" ]; do :; done
ask '(let (kill-emacs-query-functions (inhibit-message t)) (with-current-buffer "text" (save-buffer)) (kill-process child) (kill-emacs 3))' >/dev/null 2>&1
wait $server
echo "status $?"
cksum text

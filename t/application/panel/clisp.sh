#!/bin/bash
# Packages: clisp. Needs: clisp
# CLISP: write barriers by mprotect(2), and a heap at addresses of its own.
cat >work.lisp <<'END'
(defvar *table* (make-hash-table :test 'equal))
(defun work (n)
  (let ((s 0))
    (dotimes (k n s)
      (setf (gethash (format nil "key~d" (mod (* k 7919) 5003)) *table*) (list k (expt 3 (mod k 60))))
      (setf s (mod (+ s (length (gethash (format nil "key~d" (mod k 5003)) *table* '()))
                      (mod (expt 7 (mod k 200)) 1000003)) 1000003)))))
(dotimes (k 8) (format t "~d ~d~%" k (work 15000)) (finish-output) (gc))
END
echo ready
clisp -q -norc work.lisp
echo "status $?"

#!/bin/bash
# Packages: ecl. Needs: ecl
# Embeddable Common Lisp: Boehm's collector, which stops threads by signals.
cat >work.lisp <<'END'
(require :asdf)
(defun work (id n)
  (let ((s id) (h (make-hash-table)))
    (dotimes (k n s)
      (setf (gethash (mod (* k 31) 997) h) (cons k (gethash (mod k 997) h nil)))
      (when (zerop (mod k 1000)) (clrhash h))
      (setf s (mod (+ (* s 31) k) 1000003)))))
(let ((threads (loop for i below 4 collect
        (let ((i i)) (mp:process-run-function 'worker (lambda () (list i (work i 1200000))))))))
  (dolist (p threads) (print (mp:process-join p))))
(terpri)
(ext:quit 0)
END
echo ready
ecl --norc --shell work.lisp
echo "status $?"

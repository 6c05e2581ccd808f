#!/bin/bash
# Packages: chezscheme gambc chicken-bin picolisp. Needs: chezscheme gsi csi picolisp
# Four runtimes, each with a collector of garbage of its own: what they compute meanwhile is compared.
cat >lib.scm <<'END'
(define (sieve n)
  (let ((v (make-vector (+ n 1) #t)))
    (let loop ((i 2) (found '()))
      (cond ((> i n) (reverse found))
            ((vector-ref v i)
             (do ((j (* i i) (+ j i))) ((> j n)) (vector-set! v j #f))
             (loop (+ i 1) (cons i found)))
            (else (loop (+ i 1) found))))))
(define (sum l) (let loop ((l l) (s 0)) (if (null? l) s (loop (cdr l) (+ s (car l))))))
(define (work n) (let loop ((k 0) (s 0)) (if (= k n) s (loop (+ k 1) (modulo (+ (* s 31) (sum (sieve (+ 20000 k)))) 1000003)))))
(define (power b e) (if (= e 0) 1 (* b (power b (- e 1)))))
(display (work 150)) (newline) (display (modulo (power 7 2500) 1000000007)) (newline)
END
cat >lib.l <<'END'
(de fibo (N) (if (>= 2 N) 1 (+ (fibo (dec N)) (fibo (- N 2)))))
(println (fibo 25) (% (** 7 2500) 1000000007))
(let S 0 (for K 200 (setq S (% (+ (* S 31) (apply + (range 1 (+ 3000 K)))) 1000003))) (println S))
(bye)
END
echo ready
chezscheme --script lib.scm >chez &
gsi lib.scm >gambit &
csi -s lib.scm >chicken &
picolisp lib.l >pico &
wait
cat chez gambit chicken pico

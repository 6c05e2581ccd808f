#lang racket/base
; Packages: racket. Needs: racket
; Green threads, places (threads of the system), continuations and a garbage collector.
(define (work n seed)
  (for/fold ([s seed]) ([k (in-range n)])
    (modulo (+ (* s 69069) k (string-length (number->string (expt 3 (modulo s 50))))) 1048576)))
(define results (make-channel))
(define kept (make-hash))
(for ([k 50000]) (hash-set! kept k (list k (number->string k))))
(define counter
  (thread (lambda () (let loop ([n 0])
                       (if (file-exists? "go") (channel-put results 'counted) (begin (sleep 0.005) (loop (+ n 1))))))))
(define again #f)
(define times 0)
(displayln (call/cc (lambda (k) (set! again k) 'first)))
(unless (= times 3) (set! times (+ times 1)) (again times))
(displayln "ready") (flush-output)
(let loop () (unless (file-exists? "go") (work 2000 1) (collect-garbage 'minor) (loop)))
(displayln (channel-get results))
(displayln (work 200000 7))
(displayln (for/sum ([(k v) (in-hash kept)]) (+ k (string-length (cadr v)))))

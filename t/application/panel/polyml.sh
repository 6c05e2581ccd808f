#!/bin/bash
# Packages: polyml. Needs: poly
# Poly/ML: compiles into memory, and collects garbage with several threads.
cat >work.sml <<'END'
fun sieve (p :: xs) = p :: sieve (List.filter (fn x => x mod p <> 0) xs) | sieve [] = [];
fun queens n = let fun ok (r, qs) = let fun g (_, []) = true | g (d, q :: t) = q <> r andalso abs (q - r) <> d andalso g (d + 1, t) in g (1, qs) end;
  fun go (0, qs) = 1 | go (k, qs) = List.foldl (fn (r, s) => if ok (r, qs) then s + go (k - 1, r :: qs) else s) 0 (List.tabulate (n, fn i => i)) in go (n, []) end;
fun power (b : IntInf.int, 0) = 1 | power (b, n) = b * power (b, n - 1);
val _ = List.app (fn k => (print (Int.toString k ^ " " ^ Int.toString (List.foldl op + 0 (sieve (List.tabulate (9000, fn i => i + 2)))) ^ " " ^ Int.toString (queens 9) ^ " " ^ IntInf.toString (power (3, 2000) mod 1000003) ^ "\n"); TextIO.flushOut TextIO.stdOut)) (List.tabulate (40, fn i => i));
END
echo ready
poly -q --error-exit <work.sml
echo "status $?"

#!/bin/bash
# Packages: coq. Needs: coqc coqtop
export HOME=$PWD
cat >proof.v <<'END'
Require Import Arith List Lia.
Fixpoint fib (n : nat) : nat := match n with 0 => 0 | S k => match k with 0 => 1 | S m => fib k + fib m end end.
Fixpoint ack (m : nat) : nat -> nat := match m with 0 => S | S p => fix a (n : nat) := match n with 0 => ack p 1 | S q => ack p (a q) end end.
Lemma ack_23 : ack 3 6 = 509. Proof. vm_compute. reflexivity. Qed.
Lemma fib_pos : forall n, fib (S n) >= 1 /\ fib (S (S n)) >= 1.
Proof. induction n as [|n [A B]]; simpl in *; lia. Qed.
Lemma fib_25 : fib 25 = 25 * 25 * 120 + 25. Proof. vm_compute. reflexivity. Qed.
Fixpoint sum (l : list nat) := match l with nil => 0 | x :: r => x + sum r end.
Lemma sum_app : forall a b, sum (a ++ b) = sum a + sum b. Proof. induction a; simpl; intros; auto. rewrite IHa; lia. Qed.
END
for ((k = 1; k < 40; k++)); do
	echo "Lemma l$k : forall a b c d, a <= b -> c <= d -> 2 * a + $k * c + $k <= 2 * b + $k * d + $k + c. Proof. intros; nia. Qed."
done >>proof.v
echo 'Compute (sum (map fib (seq 0 21))). Print Assumptions sum_app.' >>proof.v
echo ready
coqc proof.v
echo "status $?"
coqchk -silent proof 2>&1 | head -n 3

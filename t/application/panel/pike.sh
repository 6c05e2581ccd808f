#!/bin/bash
# Packages: pike8.0. Needs: pike8.0
# Pike: threads under one lock, mappings and big numbers.
cat >work.pike <<'END'
array(int) found = allocate(4);
void work(int n) {
  int s = n; mapping(string:int) m = ([]);
  for (int k = 0; k < 1500000; k++) { s = (s * 31 + k) % 1000003; m["k" + s % 4001] += k % 7; }
  found[n] = s + `+(@values(m));
}
int main() {
  write("ready\n");
  array(Thread.Thread) t = map(({0, 1, 2, 3}), lambda(int n) { return Thread.Thread(work, n); });
  t->wait();
  write("%{%d %}%d\n", found, 3->pow(2000) % 1000003);
}
END
pike8.0 work.pike
echo "status $?"

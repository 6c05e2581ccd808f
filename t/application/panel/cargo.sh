#!/bin/bash
# Packages: cargo. Needs: /usr/bin/cargo, /usr/bin/rustc. Options: --save-files
# A build of several crates, by processes that share a job server, under locks.
export PATH=/usr/bin:/bin TMPDIR=$PWD HOME=$PWD CARGO_HOME=$PWD/home CARGO_NET_OFFLINE=true
mkdir -p src
members=
for ((n = 0; n < 6; n++)); do
	mkdir -p c$n/src
	printf '[package]\nname = "c%d"\nversion = "0.1.0"\nedition = "2021"\n' $n >c$n/Cargo.toml
	for ((k = 0; k < 60; k++)); do
		echo "pub fn f$k(x: u64) -> u64 { let mut s = vec![$k; (x % 9 + 1) as usize]; for i in 0..x { s.push(i ^ $n); } s.iter().sum() }"
	done >c$n/src/lib.rs
	members+="c$n = { path = \"c$n\" }"$'\n'
done
printf '[package]\nname = "all"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n%s' "$members" >Cargo.toml
{
	echo 'fn main() { let mut s = 0u64;'
	for ((n = 0; n < 6; n++)); do for ((k = 0; k < 60; k++)); do echo "s = s.wrapping_mul(31) + c$n::f$k($k);"; done; done
	echo 'println!("{s}"); }'
} >src/main.rs
echo ready
cargo build -q -j 3 --release 2>&1 || echo "status $?"
target/release/all
cargo build -q -j 2 2>&1 && target/debug/all

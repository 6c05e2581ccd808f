// Packages: rustc. Needs: rustc gcc
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

fn work(seed: u64, n: u64) -> u64 {
    let mut seen = BTreeMap::new();
    let mut s = seed;
    for _ in 0..n {
        s = (s * 69069 + 1) % 1048576;
        *seen.entry(s % 997).or_insert(0u64) += s % 1000;
    }
    seen.iter().fold(s, |sum, (k, v)| sum.wrapping_mul(31).wrapping_add(k * v))
}

fn main() {
    let (send, receive) = mpsc::channel();
    for id in 0..4u64 {
        let send = send.clone();
        thread::spawn(move || {
            let first = work(id, 100000);
            send.send((id, 0)).unwrap();
            while !Path::new("go").exists() {
                work(id, 1000);
            }
            send.send((id, first ^ work(id + 7, 100000))).unwrap();
        });
    }
    for _ in 0..4 {
        receive.recv().unwrap();
    }
    println!("ready");
    let mut sums: Vec<_> = (0..4).map(|_| receive.recv().unwrap()).collect();
    sums.sort();
    println!("{:?}", sums);
}

#!/bin/bash
# Packages: cargo librust-tokio-dev. Needs: cargo /usr/share/cargo/registry
# A server and its clients as tasks on threads of tokio's, over TCP, with timers and channels.
mkdir -p src .cargo
cat >Cargo.toml <<'END'
[package]
name = "talk"
version = "0.1.0"
edition = "2021"
[dependencies]
tokio = { version = "1", features = ["rt-multi-thread", "net", "io-util", "time", "sync", "macros"] }
END
cat >.cargo/config.toml <<'END'
[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "/usr/share/cargo/registry"
END
cat >src/main.rs <<'END'
use std::{path::Path, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn answer(mut s: TcpStream) {
    let mut b = [0u8; 8];
    while s.read_exact(&mut b).await.is_ok() {
        let n = u64::from_le_bytes(b) * 69069 % 1048573;
        s.write_all(&n.to_le_bytes()).await.unwrap();
    }
}

async fn ask(s: &mut TcpStream, n: u64) -> u64 {
    let mut b = [0u8; 8];
    s.write_all(&n.to_le_bytes()).await.unwrap();
    s.read_exact(&mut b).await.unwrap();
    u64::from_le_bytes(b)
}

#[tokio::main(worker_threads = 3)]
async fn main() {
    let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = l.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (s, _) = l.accept().await.unwrap();
            tokio::spawn(answer(s));
        }
    });
    let (tell, mut hear) = tokio::sync::mpsc::channel(4);
    for k in 1..20u64 {
        let tell = tell.clone();
        tokio::spawn(async move {
            let mut s = TcpStream::connect(to).await.unwrap();
            while !Path::new("go").exists() {
                assert_eq!(ask(&mut s, k).await, k * 69069 % 1048573);
                tokio::time::sleep(Duration::from_millis(k)).await;
            }
            let mut n = k;
            for _ in 0..2000 {
                n = ask(&mut s, n).await;
            }
            tell.send(n).await.unwrap();
        });
    }
    drop(tell);
    println!("ready");
    let mut sum = 0;
    while let Some(n) = hear.recv().await {
        sum += n;
    }
    println!("{sum}");
}
END
# Built once for both runs: that takes minutes on a busy machine.
[ -x ../built/debug/talk ] || CARGO_HOME=$PWD/home CARGO_TARGET_DIR=../built cargo build -q --offline || exit
exec ../built/debug/talk

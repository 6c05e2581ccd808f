// A server and its clients in Go: many connections over TCP and a UNIX socket, with deadlines,
// each request answered by a goroutine of its own.
//
//	talk server SOCKET	prints the port it listens at; ends when its input does
//	talk client PORT SOCKET	prints ready, and what it got when the file "go" is there
package main

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

type request struct {
	Number int
	Text   []byte
}

type answer struct {
	Number int
	Hash   uint64
}

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func serve(c net.Conn) {
	defer c.Close()
	in, out := gob.NewDecoder(c), gob.NewEncoder(c)
	var writing sync.Mutex
	for {
		var r request
		if err := in.Decode(&r); err == io.EOF {
			return
		} else {
			check(err)
		}
		go func() {
			h := fnv.New64()
			h.Write(r.Text)
			writing.Lock()
			defer writing.Unlock()
			check(out.Encode(answer{r.Number, h.Sum64()}))
		}()
	}
}

func listen(l net.Listener) {
	for {
		c, err := l.Accept()
		check(err)
		go serve(c)
	}
}

func server(socket string) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	local, err := net.Listen("unix", socket)
	check(err)
	go listen(tcp)
	go listen(local)
	fmt.Println(tcp.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, bufio.NewReader(os.Stdin))
}

func gone() bool {
	_, err := os.Stat("go")
	return err == nil
}

// The sum of the answers to the first rounds, and how many there were.
func talk(network, address string, id int, sums chan<- uint64, ready *sync.WaitGroup) {
	const kept = 60
	c, err := net.Dial(network, address)
	check(err)
	in, out := gob.NewDecoder(c), gob.NewEncoder(c)
	sum := uint64(0)
	for round := 0; round < kept || !gone(); round++ {
		check(c.SetDeadline(time.Now().Add(time.Minute)))
		text := make([]byte, 1+(id*37+round*101)%30000)
		for i := range text {
			text[i] = byte(i * (id + round%kept))
		}
		const at_once = 4
		for n := 0; n < at_once; n++ {
			check(out.Encode(request{n, text[n*len(text)/at_once:]}))
		}
		for n := 0; n < at_once; n++ {
			var a answer
			check(in.Decode(&a))
			h := fnv.New64()
			h.Write(text[a.Number*len(text)/at_once:])
			if h.Sum64() != a.Hash {
				fmt.Println("differs: client", id, "round", round)
				os.Exit(1)
			}
			if round < kept {
				sum += a.Hash * uint64(a.Number+round+1)
			}
		}
		if round == 20 {
			ready.Done()
		}
	}
	c.Close()
	sums <- sum
}

func client(port, socket string) {
	const count = 12
	sums := make(chan uint64, count)
	var ready sync.WaitGroup
	ready.Add(count)
	for id := 0; id < count; id++ {
		if id%2 == 0 {
			go talk("tcp", "127.0.0.1:"+port, id, sums, &ready)
		} else {
			go talk("unix", socket, id, sums, &ready)
		}
	}
	ready.Wait()
	fmt.Println("ready")
	sum := uint64(0)
	for id := 0; id < count; id++ {
		sum += <-sums
	}
	fmt.Printf("%016x\n", sum)
}

func main() {
	if os.Args[1] == "server" {
		server(os.Args[2])
	} else {
		client(os.Args[2], os.Args[3])
	}
}

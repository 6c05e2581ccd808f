// A Go program as a victim: goroutines on several threads, channels, maps, garbage
// collection, and with the argument "timers" also timers (which open an epoll descriptor).
// It waits for SIGUSR1 in os/signal.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func worker(id int, in <-chan int, out chan<- int, done *sync.WaitGroup) {
	seen := map[int]int{}
	for v := range in {
		seen[v] = v * id
		out <- v
	}
	for k, v := range seen {
		if v != k*id {
			fmt.Println("differs: a map")
			os.Exit(1)
		}
	}
	done.Done()
}

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	in, out := make(chan int), make(chan int, 10)
	var done sync.WaitGroup
	for i := 1; i <= 8; i++ {
		done.Add(1)
		go worker(i, in, out, &done)
	}
	sum, want := 0, 0
	var adding sync.WaitGroup
	adding.Add(1)
	go func() {
		for v := range out {
			sum += v
		}
		adding.Done()
	}()
	send := func(from, to int) {
		for i := from; i < to; i++ {
			in <- i
			want += i
		}
	}
	send(0, 1000)
	var ticks *time.Ticker
	start := time.Now()
	if len(os.Args) > 1 && os.Args[1] == "timers" {
		ticks = time.NewTicker(5 * time.Millisecond)
		<-ticks.C
	}
	fmt.Println("ready")
	<-signals
	if os.Getenv("VICTIM_HURT") != "" {
		want++
	}
	send(1000, 5000)
	runtime.GC()
	if ticks != nil {
		<-ticks.C
		<-time.After(10 * time.Millisecond)
	}
	send(5000, 6000)
	close(in)
	done.Wait()
	close(out)
	adding.Wait()
	if sum != want {
		fmt.Println("differs: sum is", sum, "of", want)
		os.Exit(1)
	}
	if time.Since(start) < 0 {
		fmt.Println("differs: time")
		os.Exit(1)
	}
	fmt.Println("ok")
}

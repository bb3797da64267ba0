// A Go program that is profiled by a library of its own: threads of Go in loops without a call, which only a signal can stop, garbage to
// collect, and calls of C++. Ends with status 1 where something stands still.
package main

/*
#include <stdint.h>

void StrobeTestBegin(double wall_hz);
void StrobeTestRegister(void);
void StrobeTestUnregister(void);
int StrobeTestSignal(void);
int64_t StrobeTestEnd(void);
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

var sink []byte

// Counts rounds of a loop without a call: the runtime can stop it by its signal alone.
func spin(rounds *atomic.Uint64, shouldEnd *atomic.Bool) {
	runtime.LockOSThread()
	C.StrobeTestRegister()
	for !shouldEnd.Load() {
		value := uint64(1)
		for i := 0; i < 50_000_000; i++ {
			value = value*6364136223846793005 + 1442695040888963407
		}
		rounds.Add(1 | value&1)
	}
	C.StrobeTestUnregister()
	rounds.Store(0)
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	wallHz, _ := strconv.ParseFloat(os.Args[2], 64)
	C.StrobeTestBegin(C.double(wallHz))
	fmt.Println("signal", C.StrobeTestSignal())

	const threads = 2
	var rounds [threads]atomic.Uint64
	var collections atomic.Uint64
	var shouldEnd atomic.Bool
	for i := range rounds {
		go spin(&rounds[i], &shouldEnd)
	}
	// The world stops for each, and so every thread.
	go func() {
		for !shouldEnd.Load() {
			sink = make([]byte, 1<<20)
			runtime.GC()
			collections.Add(1)
		}
	}()

	// A stalled program would stall this as well: the process has an end that the runtime has no part in.
	const stall = 60 * time.Second
	begin := time.Now()
	last := begin
	seen := collections.Load()
	for time.Since(begin).Seconds() < seconds || seen < 2 {
		time.Sleep(10 * time.Millisecond)
		if now := collections.Load(); now != seen {
			seen, last = now, time.Now()
		}
		if time.Since(last) > stall {
			fmt.Println("no collection for", stall, "after", seen)
			os.Exit(1)
		}
	}
	shouldEnd.Store(true)
	for i := range rounds {
		for rounds[i].Load() != 0 {
			time.Sleep(time.Millisecond)
		}
	}
	fmt.Println("collections", seen, "samples", C.StrobeTestEnd())
}

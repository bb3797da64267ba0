// The loop of ../accuracy/workload.cc under Go's own profiler:  loop PHASE_NS TIME_NS OUTPUT
// Prints the true share of A in percent.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"syscall"
	"unsafe"
)

const clockMonotonic = 1
const clockThreadCPU = 3
const timerAbsolute = 1

func clockNs(clock uintptr) int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

func work(ns int64) int64 {
	begin := clockNs(clockThreadCPU)
	now := begin
	state := uint64(1)
	for now < begin+ns {
		for i := 0; i < 2000; i++ {
			state = state*6364136223846793005 + 1
		}
		now = clockNs(clockThreadCPU)
	}
	sink = state
	return now - begin
}

// Two functions that the profile tells apart.
//
//go:noinline
func workInA(ns int64) int64 { return work(ns) }

//go:noinline
func workInB(ns int64) int64 { return work(ns) }

var sink uint64

func main() {
	runtime.LockOSThread()
	phase, _ := strconv.ParseInt(os.Args[1], 10, 64)
	length, _ := strconv.ParseInt(os.Args[2], 10, 64)
	file, err := os.Create(os.Args[3])
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		panic(err)
	}
	const period = 4_000_000
	first := (clockNs(clockMonotonic)/period+2)*period + phase
	var a, b int64
	for next := first; next < first+length; next += period {
		until := syscall.NsecToTimespec(next)
		syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, clockMonotonic, timerAbsolute, uintptr(unsafe.Pointer(&until)), 0, 0, 0)
		a += workInA(period * 15 / 100)
		b += workInB(period * 35 / 100)
	}
	pprof.StopCPUProfile()
	file.Close()
	fmt.Printf("%.6f\n", 100*float64(a)/float64(a+b))
}

// Reads the profiles that are its arguments with pprof's own package, which checks them, and prints what they add up to: a line
// "<type>/<unit> <sum>" for each sample type.
package main

import (
	"fmt"
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	for _, name := range os.Args[1:] {
		file, err := os.Open(name)
		if err == nil {
			var read *profile.Profile
			if read, err = profile.Parse(file); err == nil {
				err = read.CheckValid()
				for i, kind := range read.SampleType {
					sum := int64(0)
					for _, sample := range read.Sample {
						sum += sample.Value[i]
					}
					fmt.Printf("%s/%s %d\n", kind.Type, kind.Unit, sum)
				}
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

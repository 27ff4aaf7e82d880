// SPDX-License-Identifier: Apache-2.0

// Command goes does what could go wrong where control flow is written anew, and prints what came of it.
package main

import "fmt"

var sink any

func main() {
	for _, c := range []struct {
		name string
		does func() any
	}{
		{"entries", entries}, {"gotos", gotos}, {"switches", switches}, {"labels", labels}, {"selects", selects}, {"recovers", recovers},
		{"frames", frames}, {"goexits", goexits}, {"repanics", repanics}, {"nestedDefers", nestedDefers}, {"openDefers", openDefers}, {"deferLoop", deferLoop},
		{"deferGoto", deferGoto}, {"nilInLoops", nilInLoops}, {"divides", divides}, {"rangeFuncs", rangeFuncs}, {"grows", grows}, {"growMid", growMid},
		{"bigFrames", bigFrames}, {"callers", callers}, {"stackTrace", stackTrace}, {"closures", closures}, {"reflects", reflects}, {"timers", timers},
		{"finalizers", finalizers}, {"pulls", pulls},
	} {
		fmt.Println(c.name, c.does())
	}
	fmt.Println("done")
}

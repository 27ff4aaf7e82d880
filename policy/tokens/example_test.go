// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"fmt"

	"github.com/weirproxy/weir/policy/tokens"
)

func ExampleCounter_Count() {
	c := tokens.New(tokens.O200k)
	fmt.Println(c.Count("Hello, world"))
	fmt.Println(c.Count("internationalization"))
	// Output:
	// 3
	// 2
}

func ExampleSet() {
	var s tokens.Set
	for _, name := range []string{"o200k", "cl100k", "claude"} {
		f, _ := tokens.ParseFamily(name)
		fmt.Println(f, f.Exact(), s.CountJSON(f, `He said: \"Jos\u00e9, wait!\"\n`))
	}
	// Output:
	// o200k true 8
	// cl100k true 9
	// claude false 10
}

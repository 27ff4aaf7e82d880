// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A fault is a change to one file that must make a test fail.
type fault struct {
	what     string // what is broken, and the property of the notes that it breaks
	file     string // from the root of the project
	old, new string
	test     string
}

// Every planted fault is seen by the test that is there for it, as a failure and not as code that does not build.
func TestFaultsAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the code once for each fault")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(strings.ReplaceAll(f.what, " ", "_"), func(t *testing.T) {
			out, err := runWith(t, root, f)
			if err == nil {
				t.Errorf("%s does not see it", f.test)
			}
			if !bytes.Contains(out, []byte("--- FAIL: "+f.test)) && !bytes.Contains(out, []byte("panic: ")) {
				t.Errorf("%s did not fail, but: %v\n%s", f.test, err, out)
			}
		})
	}
}

// runWith runs the test of a fault with the fault in place.
func runWith(t *testing.T, root string, f fault) ([]byte, error) {
	path := filepath.Join(root, f.file)
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(code, []byte(f.old)); n != 1 {
		t.Fatalf("%s has %q %d times: the list is out of date", f.file, f.old, n)
	}
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.go")
	if err := os.WriteFile(broken, bytes.Replace(code, []byte(f.old), []byte(f.new), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: broken}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-overlay", list, "-run", "^"+f.test+"$", "./"+filepath.Dir(f.file), "-rapid.nofailfile", "-rapid.checks=10000", "-rapid.shrinktime=0s")
	cmd.Dir = root
	return cmd.CombinedOutput()
}

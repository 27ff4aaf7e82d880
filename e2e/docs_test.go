// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

var shellBlocks = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// The commands of every page work as they are written, one after the other. Ports are replaced by free ones, and make, which
// built what is tested, does nothing.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatal(pages, err)
	}
	bin, err := filepath.Abs(filepath.Dir(binary))
	if err != nil {
		t.Fatal(err)
	}
	found, err := envoy.Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := shellBlocks.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			script := elsewhere +
				`weir() { if [ "$1" = up ]; then set -- "$@" --listen 127.0.0.1:10000 --status 127.0.0.1:10088; fi; command weir "$@"; }` + "\n"
			for _, b := range blocks {
				script += b[1]
			}
			for _, port := range []string{"10000", "10001", "10088", "10089", "10090", "18000", "18001", "18002", "6379"} {
				addr := freePort(t)
				script = strings.ReplaceAll(script, "127.0.0.1:"+port, addr)
				script = strings.ReplaceAll(script, "--port "+port, "--port "+addr[strings.LastIndexByte(addr, ':')+1:])
			}
			runScript(t, script, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "ENVOY_PATH="+found))
		})
	}
}

// elsewhere begins each page's script. What is for another machine, or a cluster, does nothing here but look whether the files
// are there that it is to read; those of a release are another test's.
const elsewhere = `set -euo pipefail
make() { :; }
reads() {
	local a
	for a in "$@"; do
		a=${a##*=}
		case $a in
		build/release/* | oci-archive:* | /*) ;;
		*.yaml | *.crt | *.key | *.service | envoy/*) test -e "$a" || { echo "$a is not there"; return 1; } ;;
		esac
	done
}
for command in kubectl helm docker skopeo sudo; do eval "$command() { reads \"\$@\"; }"; done
`

// runScript runs a script in a folder of its own, and ends all that it left running.
func runScript(t *testing.T, script string, env []string) {
	var out output
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), env, &out, &out
	drop, err := filepath.Abs("../envoy")
	if err == nil {
		err = os.Symlink(drop, filepath.Join(cmd.Dir, "envoy")) // pages are read at the top of the source
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 2 * time.Second // what it left running holds its output open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(4*time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) })
	err = cmd.Wait()
	limit.Stop()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	if err != nil && !strings.Contains(err.Error(), "WaitDelay") {
		t.Errorf("%v\n%s\nwrote:\n%s", err, script, tail(out.String(), 4000))
	}
}

// README's two commands are targets of the Makefile, and so is every other that a page names.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"../README.md", "../CONTRIBUTING.md", "../docs/get-started.md", "../docs/upgrade.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?:`|\n)make ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
				t.Errorf("%s names make %s, which there is not", page, m[1])
			}
		}
	}
}

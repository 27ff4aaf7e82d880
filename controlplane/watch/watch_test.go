// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/policyfile"
)

const (
	one = "apiVersion: weir/v1\nproviders: {openai: {upstream: 'https://api.openai.com'}}\n"
	two = one + "limits: {tenant: {default: {rpm: 7}}}\n"
	bad = one + "limits: {tenant: {default: {rpm: seven}}}\n"
)

// A follower runs a Watcher in a bubble, where time passes when everything waits.
type follower struct {
	t    *testing.T
	path string
	mu   sync.Mutex
	got  []string
}

func follow(t *testing.T, path string, steps func(f *follower)) {
	synctest.Test(t, func(t *testing.T) {
		f := &follower{t: t, path: path}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		w := &Watcher{Path: path, Changed: f.changed}
		go func() { defer close(done); w.Run(ctx) }()
		synctest.Wait()
		steps(f)
		cancel()
		<-done
	})
}

func (f *follower) changed(r *policyfile.Result, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.got = append(f.got, err.Error())
		return
	}
	f.got = append(f.got, string(r.JSON))
}

// want passes so many readings of the file and says what is to have come by then: parts of what was called back.
func (f *follower) want(readings int, parts ...string) {
	f.t.Helper()
	time.Sleep(time.Duration(readings)*Every + time.Millisecond)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.got) != len(parts) {
		f.t.Fatalf("got %d calls %q, want %d", len(f.got), f.got, len(parts))
	}
	for i, part := range parts {
		if !strings.Contains(f.got[i], part) {
			f.t.Errorf("call %d: got %q, want %q in it", i, f.got[i], part)
		}
	}
	f.got = nil
}

func (f *follower) write(content string) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func TestFollowsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	follow(t, path, func(f *follower) {
		f.want(0, "no such file")
		f.want(8) // the same error is not told again
		f.write(one)
		f.want(2, `"openai"`)
		f.write(one)
		f.want(8) // nor the same content
		f.write(bad)
		f.want(2, path+":3:")
		f.write(one)
		f.want(2, `"openai"`) // good again is worth telling
		os.Remove(path)
		f.want(2, "no such file")
	})
}

func TestTakesNothingHalfWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(two), 0o600); err != nil {
		t.Fatal(err)
	}
	follow(t, path, func(f *follower) {
		f.want(0, `"rpm":"7"`)
		f.write("")
		f.want(1)
		f.write(one) // a good policy, without its limits
		f.want(1)
		f.write(two)
		f.want(4) // what was there all along
	})
}

func TestFollowsWhatReplacesTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	// As a ConfigMap is mounted: policy.yaml → ..data/policy.yaml, and ..data → the newest version.
	version := func(name, content string) {
		t.Helper()
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name, "policy.yaml"), []byte(content), 0o600))
		must(t, os.Symlink(name, filepath.Join(dir, "..tmp")))
		must(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", one)
	must(t, os.Symlink(filepath.Join("..data", "policy.yaml"), path))
	follow(t, path, func(f *follower) {
		f.want(0, `"openai"`)
		version("..2", two)
		f.want(2, `"rpm":"7"`)
		// As editors do.
		other := filepath.Join(dir, "policy.yaml~")
		must(t, os.WriteFile(other, []byte(one), 0o600))
		must(t, os.Rename(other, path))
		f.want(2, `"openai"`)
	})
}

func TestTheFileMayBeAnything(t *testing.T) {
	dir := t.TempDir()
	follow(t, dir, func(f *follower) { f.want(0, dir+": a folder without a file") })

	large := filepath.Join(dir, "large")
	must(t, os.WriteFile(large, make([]byte, 2*policyfile.MaxSize), 0o600))
	follow(t, large, func(f *follower) { f.want(0, large) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The files that a policy names are followed, too: their changes, and that they are there at last.
func TestFollowsFilesThatThePolicyNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	reply := filepath.Join(filepath.Dir(path), "reply.json")
	say := func(text string) {
		if err := os.WriteFile(reply, []byte(`{"object":"text_completion","choices":[{"text":"`+text+`"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(one+"degrade: {m: {static: reply.json}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	follow(t, path, func(f *follower) {
		f.want(4, "no such file")
		say("first")
		f.want(4, "first")
		say("second")
		f.want(4, "second")
		f.write(one)
		f.want(4, "openai")
		say("third")
		f.want(4)
	})
}

// A folder is followed like a file, and a ConfigMap that changes by its symlink is seen whole: never half of it.
func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	mount := func(version string, files map[string]string) {
		t.Helper()
		at := filepath.Join(dir, ".."+version)
		must(t, os.Mkdir(at, 0o700))
		for name, content := range files {
			must(t, os.WriteFile(filepath.Join(at, name), []byte(content), 0o600))
		}
		must(t, os.Symlink(".."+version, filepath.Join(dir, "..next")))
		must(t, os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	}
	mount("1", map[string]string{"a.yaml": one, "b.yaml": "limits: {tenant: {x: {rpm: 5}}}\n"})
	for _, name := range []string{"a.yaml", "b.yaml"} {
		must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	follow(t, dir, func(f *follower) {
		f.want(0, `"x":{"rpm":"5"}`)
		mount("2", map[string]string{"a.yaml": one, "b.yaml": "limits: {tenant: {x: {rpm: 6}}}\n"})
		f.want(3, `"x":{"rpm":"6"}`)
		mount("3", map[string]string{"a.yaml": one, "b.yaml": "limits: {tenant: {x: {rpm: no}}}\n"})
		f.want(3, filepath.Join(dir, "b.yaml")+":1:28")
		mount("4", map[string]string{"a.yaml": one})
		f.want(3, `"upstream"`)
	})
}

// SPDX-License-Identifier: Apache-2.0

// Package watch follows a policy, in a file or in a folder.
//
// # Why does it read the file again and again, instead of asking the kernel for changes?
//
// Because reading is right everywhere and the kernel's notices are not. A ConfigMap changes by a symlink two directories up,
// editors write a new file and rename it over the old one, and network mounts tell nothing of what other machines write. Each
// of these needs other watches, and one that is missed is a policy that is never applied. A policy is small: reading it four
// times a second costs nothing that can be measured.
//
// # Why does a change have to stand still for one more look?
//
// Because who writes a file in place empties it first. What is seen in between may be no policy at all, or worse, a good one
// without its last limits.
package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weirproxy/weir/policyfile"
)

// Every is how often a file is read.
const Every = 250 * time.Millisecond

// A Watcher follows one file.
type Watcher struct {
	Path  string
	Every time.Duration // default Every

	// Changed gets each policy that differs from the last one it got, and each error that does. Calls come one after
	// another. A file that is good again, and says what it said before it was bad, is a change too.
	Changed func(*policyfile.Result, error)

	files []string // that the policy names
}

// A look is what one reading of the file has found.
type look struct {
	files  []policyfile.File
	err    error
	beside string // the files that the policy names
}

func (l look) equal(other look) bool {
	if l.err != nil || other.err != nil {
		return l.err != nil && other.err != nil && l.err.Error() == other.err.Error()
	}
	same := func(a, b policyfile.File) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) }
	return slices.EqualFunc(l.files, other.files, same) && l.beside == other.beside
}

// Run follows the file until ctx ends. The first look counts at once.
func (w *Watcher) Run(ctx context.Context) {
	every := w.Every
	if every <= 0 {
		every = Every
	}
	t := time.NewTicker(every)
	defer t.Stop()
	seen := w.take(w.look())
	taken := seen
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := w.look()
		if now.equal(seen) && !now.equal(taken) {
			now = w.take(now)
			taken = now
		}
		seen = now
	}
}

func (w *Watcher) look() look {
	files, err := policyfile.Load(w.Path)
	return w.alongside(look{files: files, err: err})
}

// alongside is the look with the files that the policy names.
func (w *Watcher) alongside(l look) look {
	l.beside = policyfile.Beside(w.files)
	return l
}

// take gives what was taken: the look, with the files that this policy names as they were before it was read.
func (w *Watcher) take(l look) look {
	if l.err != nil {
		w.Changed(nil, fmt.Errorf("policy: %w", pathError(l.err, w.Path)))
		return l
	}
	w.files = policyfile.Files(l.files)
	l = w.alongside(l)
	w.Changed(policyfile.ParseFiles(l.files))
	return l
}

// pathError makes sure that the error names the file.
func pathError(err error, path string) error {
	if pe := new(os.PathError); errors.As(err, &pe) {
		return err
	}
	return &os.PathError{Op: "read", Path: path, Err: err}
}

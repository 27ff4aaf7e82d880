// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weirproxy/weir/controlplane/store"
)

// What an admin has said lies in the store under one key, if there is a store. Whoever changes it leads for that moment, so that no
// two replicas write at once, and all look there twice a second.
const (
	adminLead   = "admin"
	adminRecord = "admin/said"
	adminLease  = 5 * time.Second
	adminLook   = 500 * time.Millisecond
)

// keep makes the change to what holds now, and writes it down. Without a store it is written nowhere.
func (s *Server) keep(ctx context.Context, change func(*overlay) error) (overlay, error) {
	if s.config.Store == nil {
		return changed(s.over.said.Load(), change)
	}
	term, err := s.leadAdmin(ctx)
	if err != nil {
		return overlay{}, err
	}
	defer func() { _ = s.config.Store.Resign(context.WithoutCancel(ctx), term) }() // or it runs out
	was, err := s.kept(ctx)
	if err != nil {
		return overlay{}, err
	}
	o, err := changed(&was, change)
	if err != nil {
		return overlay{}, err
	}
	b, err := json.Marshal(o)
	if err != nil {
		return overlay{}, err
	}
	return o, s.config.Store.Save(ctx, term, store.Record{Key: adminRecord, Value: b})
}

// changed is another overlay, without what is over.
func changed(was *overlay, change func(*overlay) error) (overlay, error) {
	o := was.at(time.Now())
	o.Grants = slices.Clone(o.Grants)
	err := change(&o)
	return o, err
}

// leadAdmin waits for its turn to write, a second at most.
func (s *Server) leadAdmin(ctx context.Context) (store.Term, error) {
	who := fmt.Sprintf("%s %d", s.xdsAddress(), s.started.UnixNano())
	for try := 0; ; try++ {
		term, err := s.config.Store.Lead(ctx, adminLead, who, adminLease)
		var held *store.HeldError
		if !errors.As(err, &held) || try == 10 {
			return term, err
		}
		select {
		case <-ctx.Done():
			return term, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *Server) xdsAddress() string { return s.config.XDS.Addr().String() }

// kept is what the store has.
func (s *Server) kept(ctx context.Context) (overlay, error) {
	o := overlay{Enforce: EnforceOn}
	records, err := s.config.Store.Load(ctx, adminRecord)
	if err != nil || len(records) == 0 {
		return o, err
	}
	if err := json.Unmarshal(records[0].Value, &o); err != nil {
		return o, fmt.Errorf("what an admin has said cannot be read: %w", err)
	}
	return o, nil
}

// followAdmin applies what other replicas have written, and ends grants when they are over.
func (s *Server) followAdmin(ctx context.Context) error {
	t := time.NewTicker(adminLook)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			s.lookAdmin(ctx)
		}
	}
}

func (s *Server) lookAdmin(ctx context.Context) {
	s.over.mu.Lock()
	n := s.over.n
	s.over.mu.Unlock()
	said, ok := s.saidElsewhere(ctx)
	s.over.mu.Lock()
	defer s.over.mu.Unlock()
	was := s.over.said.Load()
	if !ok || n != s.over.n { // somebody has said something here meanwhile, which may be newer
		said = *was
	}
	if said = said.at(time.Now()); said.equal(was) {
		return
	}
	s.log.Info("what an admin has said has changed", "enforce", said.Enforce, "grants", len(said.Grants))
	s.over.said.Store(&said)
	s.apply(ctx)
	s.board.hurry()
}

// saidElsewhere is what the store has; false: there is none, or it does not answer.
func (s *Server) saidElsewhere(ctx context.Context) (overlay, bool) {
	if s.config.Store == nil {
		return overlay{}, false
	}
	kept, err := s.kept(ctx)
	if err != nil && ctx.Err() == nil {
		level := slog.LevelDebug
		if s.over.first.CompareAndSwap(false, true) || !errors.Is(err, store.ErrUnavailable) {
			level = slog.LevelWarn
		}
		s.log.Log(ctx, level, "what an admin has said before is not known", "error", err)
	}
	return kept, err == nil
}

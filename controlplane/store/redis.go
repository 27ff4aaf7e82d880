// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/policy"
)

// Redis is a store in Redis or Valkey, which any number of control planes share. Each operation is one script, at Redis's time.
type Redis struct {
	client  redis.UniversalClient
	name    string // without secrets
	tag     string // puts all keys of a fleet into one slot of a cluster, for a script may touch no two
	scripts scripts
}

//go:embed rule.lua
var ruleLua string

//go:embed take.lua
var takeLua string

//go:embed keys.lua
var keysLua string

//go:embed settle.lua
var settleLua string

//go:embed lead.lua
var leadLua string

//go:embed save.lua
var saveLua string

//go:embed resign.lua
var resignLua string

type scripts struct{ take, keys, settle, lead, save, resign *redis.Script }

// redisTime is the time in microseconds, as each script begins.
const redisTime = "local time = redis.call('TIME')\nlocal now = time[1] * 1000000 + time[2]\n"

func newScripts(clock string) scripts {
	plain := func(s string) *redis.Script { return redis.NewScript(clock + "local max = math.max\n" + s) }
	rule := func(s string) *redis.Script { return redis.NewScript(clock + ruleLua + s) }
	return scripts{rule(takeLua), redis.NewScript(keysLua), rule(settleLua), plain(leadLua), redis.NewScript(saveLua), redis.NewScript(resignLua)}
}

// within bounds each operation, connecting and a second try included.
const within = 1500 * time.Millisecond

// String gives the address.
func (s *Redis) String() string { return s.name }

// Close closes the connections.
func (s *Redis) Close() error { return s.client.Close() }

func (s *Redis) key(kind, name string) string { return s.tag + kind + ":" + name }

// run runs a script.
func (s *Redis) run(ctx context.Context, op string, script *redis.Script, keys []string, args ...any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	v, err := script.Run(ctx, s.client, keys, args...).Result()
	if err != nil {
		return nil, unavailable(op, hide(err))
	}
	if list, ok := v.([]any); ok {
		return list, nil
	}
	return []any{v}, nil
}

// hide makes sure that no error shows what was asked: keys name tenants.
func hide(err error) error {
	var reply redis.Error
	if errors.As(err, &reply) {
		code, _, _ := strings.Cut(reply.Error(), " ")
		return fmt.Errorf("it answers %s", code)
	}
	var e *net.OpError
	if errors.As(err, &e) {
		return e
	}
	return err
}

type takeItem struct {
	Meters   []takeMeter `json:"meters"`
	InFlight int64       `json:"inFlight"`
	Shadow   bool        `json:"shadow"`
}

type takeMeter struct {
	ID     int64 `json:"id"`
	Unit   int   `json:"unit"`
	Kind   int   `json:"kind"`
	Paced  bool  `json:"paced"`
	Limit  int64 `json:"limit"`
	Burst  int64 `json:"burst"`
	Window int64 `json:"window"`
	Counts int64 `json:"counts"`
	From   int64 `json:"from"`
	Ends   int64 `json:"ends"`
	Guard  int64 `json:"guard"`
	Need   int64 `json:"need"`
}

// Take takes a call's cost.
func (s *Redis) Take(ctx context.Context, t *Take) (a Answer, err error) {
	if err := t.check(); err != nil {
		return a, err
	}
	keys := []string{s.key("call", t.ID)}
	items := make([]takeItem, len(t.Items))
	for i, item := range t.Items {
		keys = append(keys, s.key("bucket", item.Bucket))
		items[i] = takeItem{Meters: make([]takeMeter, len(item.Meters)), InFlight: item.InFlight, Shadow: item.Shadow}
		for k, m := range item.Meters {
			items[i].Meters[k] = takeMeter{
				m.ID, int(m.Unit), int(m.Kind), m.Paced, m.Limit, m.Burst, m.Window, m.Counts, m.From, m.Until, m.Guard, t.need(&m),
			}
		}
	}
	b, err := json.Marshal(items)
	if err != nil {
		return a, err
	}
	v, err := s.run(ctx, "take", s.scripts.take, keys, t.ID, t.Lease.Microseconds(), remember.Microseconds(), b)
	if err != nil {
		return a, err
	}
	n, err := integers(v, 9)
	if err != nil {
		return a, unavailable("take", err)
	}
	return Answer{Verdict(n[0]), refusalOf(n[1:5]), refusalOf(n[5:9])}, nil
}

func refusalOf(n []int64) Refusal {
	if n[0] == 0 {
		return Refusal{}
	}
	return Refusal{true, int(n[0]) - 1, int(n[1]) - 1, micro(n[2]), n[3]}
}

func integers(v []any, want int) ([]int64, error) {
	n := make([]int64, len(v))
	for i := range v {
		n[i], _ = v[i].(int64)
	}
	if len(n) != want {
		return nil, fmt.Errorf("it answers %d numbers, not %d", len(n), want)
	}
	return n, nil
}

// Settle makes a take count as what it cost.
func (s *Redis) Settle(ctx context.Context, id string, actual policy.Cost) (bool, error) {
	if err := errors.Join(checkNames(id), checkCost(actual)); err != nil {
		return false, err
	}
	keys := []string{s.key("call", id)}
	args := []any{id, remember.Microseconds()}
	for _, n := range units(actual) {
		args = append(args, n)
	}
	for range 3 {
		buckets, err := s.run(ctx, "settle", s.scripts.keys, keys[:1])
		if err != nil {
			return false, err
		}
		keys = keys[:1]
		for _, b := range buckets {
			key, _ := b.(string)
			keys = append(keys, key)
		}
		v, err := s.run(ctx, "settle", s.scripts.settle, keys, args...)
		if err != nil {
			return false, err
		}
		if n, _ := v[0].(int64); n != 2 { // 2: the take came in between
			return n == 1, nil
		}
	}
	return false, unavailable("settle", errors.New("its buckets change"))
}

// Lead makes who the leader, or renews that.
func (s *Redis) Lead(ctx context.Context, name, who string, lease time.Duration) (Term, error) {
	if err := checkNames(name, who); err != nil {
		return Term{}, err
	}
	// From before it was asked, so that the term ends here before it does there.
	until := time.Now().Add(lease)
	v, err := s.run(ctx, "lead", s.scripts.lead, []string{s.key("lead", name), s.key("token", name)}, who, max(lease.Milliseconds(), 1))
	if err != nil {
		return Term{}, err
	}
	if len(v) != 3 {
		return Term{}, unavailable("lead", errors.New("it answers something else"))
	}
	text, _ := v[0].(string)
	token, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return Term{}, unavailable("lead", err)
	}
	if token == 0 {
		by, _ := v[1].(string)
		ms, _ := v[2].(int64)
		return Term{}, &HeldError{name, by, time.Duration(max(ms, 0)) * time.Millisecond}
	}
	return Term{Name: name, Who: who, Token: token, Until: until}, nil
}

// Resign ends a term.
func (s *Redis) Resign(ctx context.Context, t Term) error {
	_, err := s.run(ctx, "resign", s.scripts.resign, []string{s.key("lead", t.Name)}, t.Who, strconv.FormatUint(t.Token, 10))
	return err
}

// Save writes records, if the term holds.
func (s *Redis) Save(ctx context.Context, t Term, records ...Record) error {
	if err := checkRecords(records); err != nil {
		return err
	}
	if !t.Holds() {
		return ErrFenced
	}
	args := []any{t.Who, strconv.FormatUint(t.Token, 10)}
	for _, r := range records {
		value := "-"
		if r.Value != nil {
			value = "+" + string(r.Value)
		}
		args = append(args, r.Key, value)
	}
	v, err := s.run(ctx, "save", s.scripts.save, []string{s.key("lead", t.Name), s.tag + "state"}, args...)
	if err != nil {
		return err
	}
	if n, _ := v[0].(int64); n != 1 {
		return ErrFenced
	}
	return nil
}

// Load gives records.
func (s *Redis) Load(ctx context.Context, prefix string) (records []Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	all, err := s.client.HGetAll(ctx, s.tag+"state").Result()
	if err != nil {
		return nil, unavailable("load", hide(err))
	}
	for k, v := range all {
		if strings.HasPrefix(k, prefix) {
			records = append(records, Record{k, []byte(v)})
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	return records, nil
}

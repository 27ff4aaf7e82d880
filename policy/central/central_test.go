// SPDX-License-Identifier: Apache-2.0

package central

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
)

var (
	aTake = Take{
		ID: ID{1, 2, 3}, Node: "egress-1", Lease: time.Minute, Tiers: Tiers(0).With(policy.TierTenant), Provider: "openai", Model: "gpt-4o",
		Caller: policy.Caller{Tenant: "acme", User: "u", Vouched: true}, Cost: policy.Cost{Requests: 1, Input: 300, Output: 4000, Spend: 7},
	}
	aSettle  = Settles{"egress-1", []Settle{{ID{9}, policy.Cost{Requests: 1, Input: 3}}, {ID: ID{8}}}}
	anAnswer = Answer{Verdict: policy.Deny, Refusal: policy.Refusal{
		Reason: policy.LimitExceeded, Tier: policy.TierTenant, Dimension: policy.TPM, Limit: 1000, Burst: 250, Need: 300,
		Window: time.Minute, Remaining: -20, Wait: 1500 * time.Microsecond,
	}}
)

func TestMessages(t *testing.T) {
	var take Take
	if b := aTake.Append(nil); take.Decode(b) != nil || take != aTake || len(b) > 80 {
		t.Errorf("%d bytes, got %+v", len(b), take)
	}
	var settle Settles
	if err := settle.Decode(aSettle.Append(nil)); err != nil || !reflect.DeepEqual(settle, aSettle) {
		t.Errorf("%v, got %+v", err, settle)
	}
	var answer Answer
	if err := answer.Decode(anAnswer.Append(nil)); err != nil || answer != anAnswer {
		t.Errorf("%v, got %+v", err, answer)
	}
	wait := Answer{Refusal: policy.Refusal{Reason: policy.LimitExceeded, Wait: 1}}
	if err := answer.Decode(wait.Append(nil)); err != nil || answer.Refusal.Wait != time.Microsecond {
		t.Errorf("a wait is not rounded up: %v", answer.Refusal.Wait)
	}
	if aTake.Tiers.Has(policy.TierUser) || !aTake.Tiers.Has(policy.TierTenant) {
		t.Error("tiers")
	}
}

func TestRefusesWhatIsNoMessage(t *testing.T) {
	good := aTake.Append(nil)
	for n := range good {
		if new(Take).Decode(good[:n]) == nil {
			t.Errorf("the first %d bytes are taken", n)
		}
	}
	if new(Take).Decode(append(good, 0)) == nil || new(Settles).Decode(good) == nil || new(Answer).Decode(good) == nil {
		t.Error("something else is taken")
	}
}

func TestAppendsWithoutMemory(t *testing.T) {
	buf := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() { buf = aTake.Append(buf[:0]); buf = aSettle.Append(buf[:0]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What is taken has just one form.
func FuzzDecode(f *testing.F) {
	f.Add(aTake.Append(nil))
	f.Add(aSettle.Append(nil))
	f.Add(anAnswer.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var take Take
		if take.Decode(b) == nil && !bytes.Equal(take.Append(nil), b) {
			t.Errorf("take %+v", take)
		}
		var settle Settles
		if settle.Decode(b) == nil && !bytes.Equal(settle.Append(nil), b) {
			t.Errorf("settle %+v", settle)
		}
		var answer Answer
		if answer.Decode(b) == nil && !bytes.Equal(answer.Append(nil), b) {
			t.Errorf("answer %+v", answer)
		}
	})
}

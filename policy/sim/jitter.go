// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Jitter says how a retry's delay is spread.
type Jitter uint8

// Kinds of jitter, of a delay d.
const (
	Additive Jitter = iota // d to 1.2 d
	Equal                  // d/2 to d
	Full                   // 0 to d
	numJitters
)

var jitterNames = [numJitters]string{"additive", "equal", "full"}

func (j Jitter) String() string {
	if j >= numJitters {
		return "unknown"
	}
	return jitterNames[j]
}

// UnmarshalText reads a kind of jitter.
func (j *Jitter) UnmarshalText(b []byte) error {
	for i, n := range jitterNames {
		if n == string(b) {
			*j = Jitter(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no jitter: write additive, equal or full", b)
}

// spread gives a delay of about d.
func (j Jitter) spread(d time.Duration, r *rand.Rand) time.Duration {
	u := r.Float64()
	switch j {
	case Equal:
		u = 0.5 + 0.5*u
	case Full:
	default:
		u = 1 + 0.2*u
	}
	return time.Duration(u * float64(d))
}

// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package policy

import "encoding/json"

// Encode writes a spec as canonical JSON: the same spec gives the same bytes. (The filter only reads them.)
func Encode(s *Spec) ([]byte, error) { return json.Marshal(s) }

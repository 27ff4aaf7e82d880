// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
)

const (
	defaultDimensions = 16 // short on purpose; a call may ask for more
	maxDimensions     = 4096
	maxVectors        = 2048 // OpenAI's bound
)

// embeddingsJSON is OpenAI's list of embeddings, in floats or in the base64 that
// the official clients ask for. All vectors are the same unit vector.
func embeddingsJSON(b text, a *answer) text {
	n := a.dimensions
	if n == 0 {
		n = defaultDimensions
	}
	vector := vectorJSON(min(n, maxDimensions), a.base64)
	b = b.s(`{"object":"list","data":[`)
	for i := range min(a.vectors, maxVectors) {
		if i > 0 {
			b = b.s(",")
		}
		b = b.s(`{"object":"embedding","index":`).n(i).s(`,"embedding":`).s(vector).s(`}`)
	}
	return b.s(`],"model":`).q(a.model).usage(a, "prompt_tokens", "", "").s(`}`)
}

func vectorJSON(n int64, inBase64 bool) string {
	if !inBase64 {
		return "[1" + strings.Repeat(",0", int(n-1)) + "]"
	}
	raw := make([]byte, 4*n)
	binary.LittleEndian.PutUint32(raw, math.Float32bits(1))
	return `"` + base64.StdEncoding.EncodeToString(raw) + `"`
}

// modelsJSON and modelsAnthropicJSON are the lists of models of the two providers.
func modelsJSON(b text, a *answer) text {
	b = b.s(`{"object":"list","data":[`)
	for i, m := range a.models {
		if i > 0 {
			b = b.s(",")
		}
		b = b.s(`{"id":`).q(m).s(`,"object":"model","created":1700000000,"owned_by":"mock"}`)
	}
	return b.s(`]}`)
}

func modelsAnthropicJSON(b text, a *answer) text {
	b = b.s(`{"data":[`)
	for i, m := range a.models {
		if i > 0 {
			b = b.s(",")
		}
		b = b.s(`{"type":"model","id":`).q(m).s(`,"display_name":`).q(m).s(`,"created_at":"2025-01-01T00:00:00Z"}`)
	}
	return b.s(`],"has_more":false,"first_id":`).q(a.models[0]).s(`,"last_id":`).q(a.models[len(a.models)-1]).s(`}`)
}

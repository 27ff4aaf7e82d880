// SPDX-License-Identifier: Apache-2.0

//go:build !weir_qwen

package tokens

const (
	qwenLinked = false
	qwenTable  = ""
)

// normal is what Qwen's texts go through first, see nfc.go.
type normal struct{}

func (*normal) nfc(s string) string { return s }

func (*normal) trim() {}

// SPDX-License-Identifier: Apache-2.0

//go:build !weir_deepseek

package tokens

const (
	deepseekLinked = false
	deepseekTable  = ""
)

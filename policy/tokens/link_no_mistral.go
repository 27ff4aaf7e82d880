// SPDX-License-Identifier: Apache-2.0

//go:build !weir_mistral

package tokens

const (
	mistralLinked = false
	mistralTable  = ""
)

// SPDX-License-Identifier: Apache-2.0

//go:build weir_deepseek

package tokens

import _ "embed"

const deepseekLinked = true

//go:embed deepseek.bin
var deepseekTable string

// SPDX-License-Identifier: Apache-2.0

//go:build weir_qwen

package tokens

import _ "embed"

const qwenLinked = true

//go:embed qwen.bin
var qwenTable string

// SPDX-License-Identifier: Apache-2.0

//go:build weir_mistral

package tokens

import _ "embed"

const mistralLinked = true

//go:embed mistral.bin
var mistralTable string

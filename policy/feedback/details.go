// SPDX-License-Identifier: Apache-2.0

package feedback

import "strings"

// maxDetails bounds how many details and violations of one refusal are read.
const maxDetails = 16

// readDetails reads Anthropic's error.details, an object with an error_code, and Google's, a list of typed objects.
func (t *told) readDetails(value string) {
	n := 0
	for detail := range items(value) {
		if n++; n > maxDetails || !isObject(detail) {
			return
		}
		for key, value := range members(detail) {
			switch key {
			case "error_code":
				t.codes[atDetail] = unquote(value)
			case "reason": // google.rpc.ErrorInfo
				if t.codes[atDetail] == "" {
					t.codes[atDetail] = unquote(value)
				}
			case "retryDelay":
				if n, ok := parseDuration(unquote(value)); ok {
					t.wait, t.hasWait = max(t.wait, n), true
				}
			case "violations":
				t.readViolations(value)
			}
		}
	}
}

// readViolations reads google.rpc.QuotaFailure. Several quotas may be violated at once; the one with the longest window says
// how long a wait helps.
func (t *told) readViolations(value string) {
	n := 0
	for violation := range items(value) {
		if n++; n > maxDetails {
			return
		}
		for key, value := range members(violation) {
			if key == "quotaId" || key == "quotaMetric" && t.quota.Quantity == Unknown {
				if d := quotaDimension(unquote(value)); t.quota == (Dimension{}) || d.Window > t.quota.Window {
					t.quota = d
				}
			}
		}
	}
}

// quotaDimension reads a name such as GenerateContentInputTokensPerModelPerMinute-FreeTier.
func quotaDimension(id string) (d Dimension) {
	switch {
	case strings.Contains(id, "InputToken") || strings.Contains(id, "input_token"):
		d.Quantity = InputTokens
	case strings.Contains(id, "OutputToken"):
		d.Quantity = OutputTokens
	case strings.Contains(id, "Token") || strings.Contains(id, "_token"):
		d.Quantity = Tokens
	case strings.Contains(id, "Request") || strings.Contains(id, "_request"):
		d.Quantity = Requests
	}
	switch {
	case strings.Contains(id, "PerMonth"):
		d.Window = month
	case strings.Contains(id, "PerDay"):
		d.Window = day
	case strings.Contains(id, "PerHour"):
		d.Window = hour
	case strings.Contains(id, "PerMinute"):
		d.Window = minute
	case strings.Contains(id, "PerSecond"):
		d.Window = second
	}
	return d
}

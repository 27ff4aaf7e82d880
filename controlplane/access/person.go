// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"strings"
)

// PersonToken gives the token of a list by which a person asks a control plane: an admin's, or one that is for everything, or else
// one that may only read.
func PersonToken(list []byte) (string, error) {
	if _, err := parseTokens(list); err != nil {
		return "", err
	}
	best := map[string]string{}
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		if role := f[0]; len(f) == 3 && best[role] == "" {
			best[role] = f[2]
		} else if len(f) == 1 && best[""] == "" {
			best[""] = f[0]
		}
	}
	for _, role := range []string{"admin", "", "read"} {
		if best[role] != "" {
			return best[role], nil
		}
	}
	return "", errors.New("no token of an admin or a reader in it")
}

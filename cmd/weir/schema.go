// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/weirproxy/weir/policyfile"

type schemaCmd struct{}

// Help is shown by weir schema --help.
func (schemaCmd) Help() string {
	return "Editors that know YAML take it to complete keys and mark mistakes; weir validate looks at more. In an editor with yaml-language-server begin the policy with:\n\n" +
		"  # yaml-language-server: $schema=weir.schema.json\n\nExample:\n\n  weir schema > weir.schema.json"
}

func (schemaCmd) Run(s streams) error {
	_, err := s.out.Write(policyfile.Schema())
	return err
}

// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"embed"
	"strings"
)

//go:embed scenarios/*.scenario
var scenarioFiles embed.FS

const scenarioFolder, scenarioExt = "scenarios", ".scenario"

// ScenarioNames lists the scenarios that come with weir, in order.
func ScenarioNames() []string {
	files, err := scenarioFiles.ReadDir(scenarioFolder)
	if err != nil {
		panic(err) // it is in the binary
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), scenarioExt))
	}
	return names
}

// ScenarioText gives the text of a scenario that comes with weir; false if there is none of that name.
func ScenarioText(name string) ([]byte, bool) {
	text, err := scenarioFiles.ReadFile(scenarioFolder + "/" + name + scenarioExt)
	return text, err == nil
}

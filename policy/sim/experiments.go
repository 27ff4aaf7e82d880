// SPDX-License-Identifier: Apache-2.0

package sim

// Experiments are all there are.
func Experiments() []Experiment {
	return []Experiment{
		AgentBurst(),
		Starvation(),
		AIMD(),
		Fleet(),
		SmallQuota(),
	}
}
